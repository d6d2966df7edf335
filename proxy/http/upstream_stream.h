/* An upstream stream is one request on a connection to an origin: what each says to the other,
 * whatever the protocol version. HTTP/1.1 carries one stream at a time, HTTP/2 many. */
#ifndef DURWARD_UPSTREAM_STREAM_H
#define DURWARD_UPSTREAM_STREAM_H

#include "http_head.h"

/* What the connection tells the request of a stream. After end or fail the stream is over. */
struct client_ops {
    void (*reply)(void *arg, const struct head *h);
    void (*data)(void *arg, const void *p, size_t n);
    void (*trailers)(void *arg, const struct head *fields); /* at most once, before end */
    void (*end)(void *arg);
    /* code: constant ("upstream_closed", "upstream_protocol", "upstream_timeout", …); detail for
     * the audit, valid during the call. "upstream_refused": the origin has done nothing of it. */
    void (*fail)(void *arg, const char *code, const char *detail);
    size_t (*room)(void *arg);
    void (*wanted)(void *arg);
};

/* What the request asks of the connection. Only resume calls the client_ops back. */
struct upstream_stream_ops {
    void (*data)(void *self, const void *p, size_t n);
    void (*end)(void *self); /* of the request */
    size_t (*room)(void *self);
    void (*resume)(void *self); /* the holder has room again */
    void (*drop)(void *self);   /* given up, from within client_ops too; no call follows */
};

struct upstream_stream {
    const struct upstream_stream_ops *ops; /* NULL: none */
    void *self;
};

#endif
