/* HTTP/2 towards the sandbox (RFC 9113): one connection, many requests, each a downstream of its
 * own. nghttp2 frames and keeps the connection's rules; heads are judged by the grammar of HTTP/1
 * (http2_head.h); what a request is for is the session's to say.
 *
 * Bounds, for each connection: HTTP2_STREAMS requests at once, HTTP2_WINDOW bytes of body not yet
 * taken by the backs, HTTP2_OUT_TOTAL (and HTTP2_OUT_LEAST a stream) of replies, the io's buffers.
 */
#ifndef DURWARD_HTTP2_SERVER_H
#define DURWARD_HTTP2_SERVER_H

#include "http2_head.h"
#include "requester.h"
#include "request_limits.h"
#include "io.h"

struct event_base;
struct http2_server;
struct faults;

enum {
    HTTP2_STREAMS = 100,
    HTTP2_STREAM_WINDOW = 64 * 1024,
    HTTP2_STREAM_WIDE = 512 * 1024, /* of a body that is taken as it comes, and of how many */
    HTTP2_WIDE_MAX = 2,
    HTTP2_WINDOW = 2 * 1024 * 1024,
    HTTP2_OUT_MAX = 64 * 1024, /* of a stream, as its room says */
    HTTP2_OUT_LEAST = 8 * 1024,
    HTTP2_OUT_TOTAL = 1024 * 1024,
};

struct http2_server_ops {
    size_t
        ahead; /* what an upstream may give beyond a stream's room, for which it had leave before */
    enum http2_schemes schemes; /* a request may say */
    /* A whole, well-formed request head. h may be taken. */
    void (*request)(void *session, const struct requester *by, struct head *h);
    /* A head that is refused; h as far as it was read. The session ends it through the downstream.
     */
    void (*refused)(void *session, const struct requester *by, const struct head *h,
                    const struct refusal *why);
    /* A breach that no request can be answered for: a stream that was reset, or a connection that
     * ends. code and detail: constant text. */
    void (*breach)(void *session, const char *code, const char *detail);
    void (*closed)(void *session); /* the connection is over; the server freed itself */
};

/* Borrows io (the session owns and closes it) and shared, its sandbox's faults; handles the io's
 * events from here on. NULL: no memory. */
struct http2_server *http2_server_new(struct event_base *base, struct io *io,
                                      const struct limits *l, struct faults *shared,
                                      const struct http2_server_ops *ops, void *session);
void http2_server_start(struct http2_server *s); /* speak, and look at input already there */
/* GOAWAY: what is under way ends, nothing new begins. */
void http2_server_drain(struct http2_server *s);
void http2_server_free(struct http2_server *s); /* cancels the exchanges; NULL is fine */

#endif
