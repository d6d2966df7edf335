/* Shared by http2_client.c, http2_client_stream.c, http2_request.c and http2_reply.c only. */
#ifndef DURWARD_HTTP2_CLIENT_INTERNAL_H
#define DURWARD_HTTP2_CLIENT_INTERNAL_H

#include "http2_client.h"
#include "http2_memory.h"

#include <sys/queue.h>

struct event;

enum http2_state {
    H2_OPEN = 0,
    H2_DRAINING, /* no new streams */
    H2_LOST,     /* the connection is closed; replies that came whole are still handed out */
};

/* One request. It lives as long as nghttp2 knows it or its request goes on. */
struct http2_client_stream {
    struct http2_client *client;
    const struct client_ops *ops; /* NULL: its request is over */
    void *arg;
    int32_t id;
    bool open; /* nghttp2 knows it */
    char method[16];
    /* towards the origin */
    struct buf up;
    bool request_done;
    bool deferred; /* nghttp2 was told that nothing is there to send */
    bool want;     /* room came: say so */
    /* from the origin: gathered in nghttp2's callbacks, told outside of them */
    struct head *reply, *trailers; /* owned; NULL when told or not there */
    struct buf down;
    bool final, told; /* the reply's head came; was told */
    bool ended;       /* the reply is whole */
    bool reset;       /* by the origin */
    bool wide;
    bool tunnel;               /* a WebSocket is asked for */
    bool pushing;              /* within client_ops.data */
    const char *code, *detail; /* why it fails; constant, or the client's own text */
    unsigned interim;
    uint64_t received;
    uint64_t due; /* ms; 0: waits for nothing of the origin */
    bool ready;   /* stands in the client's list of those with something to tell */
    unsigned depth;
    LIST_ENTRY(http2_client_stream) link;
    TAILQ_ENTRY(http2_client_stream) ready_link;
};

struct http2_client {
    struct io *io; /* NULL: closed */
    nghttp2_session *session;
    struct http2_memory memory;
    const struct limits *limits;
    enum http2_state state;
    bool wipe, settled, goaway;
    bool unproven; /* in clear, where no handshake chose HTTP/2: no byte of a request before
                      SETTINGS */
    char address[64];
    char why[96];       /* why it was lost */
    const char *broken; /* it is to be lost with this code as soon as that is safe */
    struct event *soon;
    http2_owner_fn owner_fn;
    void *owner_arg;
    unsigned idle_seconds;
    unsigned in_use, wide;
    unsigned kept; /* all streams: those given up, too, until nghttp2 has forgotten them */
    LIST_HEAD(, http2_client_stream) streams;
    TAILQ_HEAD(, http2_client_stream) ready;
    /* the field block under way: one at a time on a connection (RFC 9113 4.3) */
    struct http2_client_stream *gathering;
    struct buf block;
    unsigned fields, status;
    /* what an origin may send that carries nothing: see http2_reply.c */
    unsigned spare;
    uint64_t spare_at;
    /* deadlines, ms */
    uint64_t armed, settings_due, ping_due, idle_due, refused_until, heard;
    int depth;
};

uint64_t http2_now(void); /* ms, monotonic */

/* ---- http2_client.c ---- */

/* The connection is of no use any more: lost with this code at the next safe moment. */
void http2_client_broken(struct http2_client *c, const char *code, const char *why);
void http2_client_idle(struct http2_client *c); /* its last stream is over */
void http2_client_due(struct http2_client *c, uint64_t *due, unsigned seconds);
/* Send what was submitted, unless something of this connection is on the stack; tell later. */
void http2_client_kick(struct http2_client *c);
/* The end of a stretch that began with depth++: do what was noted; may free c. */
void http2_client_leave(struct http2_client *c);

/* ---- http2_client_stream.c ---- */

struct http2_client_stream *http2_client_stream_new(struct http2_client *c,
                                                    const struct client_ops *ops, void *arg,
                                                    struct slice method);
struct upstream_stream http2_client_stream_handle(struct http2_client_stream *s);
/* Tell its holder what came; s may be gone after it. */
void http2_client_stream_tell(struct http2_client_stream *s);
void http2_client_stream_over(
    struct http2_client_stream *s); /* free it if nobody has it any more */
void http2_client_stream_free(struct http2_client_stream *s);
/* Something is to be told to the stream's request, soon. */
void http2_client_stream_ready(struct http2_client_stream *s);
/* It cannot be completed; the first reason counts. */
void http2_client_stream_fail(struct http2_client_stream *s, const char *code, const char *detail);
void http2_client_stream_reset(struct http2_client_stream *s, uint32_t error);
/* nghttp2 has forgotten it. */
void http2_client_stream_closed(struct http2_client_stream *s);
/* The deadline after which the wait for the origin is over; 0 takes it off. */
void http2_client_stream_due(struct http2_client_stream *s, unsigned seconds);
void http2_client_stream_moved(
    struct http2_client_stream *s); /* bytes went: it may stand still that long again */
/* http2_request.c: submits the head; 0, or -1. */
int http2_request_submit(struct http2_client_stream *s, const struct head *h,
                         const struct authority *a);

/* http2_reply.c: what nghttp2 calls. NULL: out of memory. */
nghttp2_session_callbacks *http2_reply_callbacks(void);

#endif
