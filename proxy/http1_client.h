/* One connection to an origin that speaks HTTP/1.1: one request at a time, the reply checked as
 * strictly as a request, then idle (in a pool) or closed. */
#ifndef DURWARD_HTTP1_CLIENT_H
#define DURWARD_HTTP1_CLIENT_H

#include "config.h"
#include "http_head.h"
#include "io.h"

struct http1_client;

/* What the connection tells the request that leases it. After end or fail it is not leased. */
struct http1_client_ops {
    void (*reply)(void *arg, const struct head *h);
    void (*data)(void *arg, const void *p, size_t n);
    void (*trailers)(void *arg, const struct head *fields); /* at most once, before end */
    void (*end)(void *arg);
    /* code: constant ("upstream_closed", "upstream_protocol", "upstream_timeout", …); detail for
     * the audit, valid during the call. The connection is closed already. */
    void (*fail)(void *arg, const char *code, const char *detail);
    size_t (*room)(void *arg);
    void (*wanted)(void *arg);
};

/* Takes the connected (and, for https, verified) io over. */
struct http1_client *http1_client_new(struct io *io, const struct limits *l);
/* Lease it for one request: head is the serialised head, sent at once; body says how data will be
 * framed. */
void http1_client_start(struct http1_client *c, const struct http1_client_ops *ops, void *arg,
                        struct slice head, struct slice method, enum body_kind body);
void http1_client_data(struct http1_client *c, const void *p, size_t n);
void http1_client_request_end(struct http1_client *c);
size_t http1_client_room(const struct http1_client *c);
void http1_client_resume(struct http1_client *c); /* the lease holder has room again */
/* After end: can it carry another request? */
bool http1_client_reusable(const struct http1_client *c);
/* While idle: fn runs when the peer ends or says anything; the connection is then of no use. */
void http1_client_idle(struct http1_client *c, unsigned seconds, void (*fn)(void *arg), void *arg);
bool http1_client_alive(const struct http1_client *c);      /* idle: nothing came, no end of file */
void http1_client_close(struct http1_client *c);            /* NULL is fine */
unsigned http1_client_served(const struct http1_client *c); /* requests started on it */

#endif
