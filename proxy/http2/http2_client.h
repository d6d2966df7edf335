/* One connection to an origin that speaks HTTP/2: many upstream streams at a time. Replies are
 * judged as strictly as those of HTTP/1 and by the same parser.
 *
 * Who made it owns it until it says HTTP2_LEFT: it takes no more requests then, and frees itself
 * when the last stream is over. Bounded whatever the origin does: what a stream holds by its
 * window, what nghttp2 holds by http2_memory, what costs work and carries nothing by a meter. */
#ifndef DURWARD_HTTP2_CLIENT_H
#define DURWARD_HTTP2_CLIENT_H

#include "request_limits.h"
#include "io.h"
#include "upstream_stream.h"

enum {
    HTTP2_CLIENT_STREAMS_MAX = 256,      /* on one connection, however many the origin would take */
    HTTP2_CLIENT_WINDOW = 64 * 1024 - 1, /* of a stream, bytes; the default of RFC 9113 */
    HTTP2_CLIENT_WINDOW_WIDE = 256 * 1024, /* of one whose bytes are taken as fast as they come */
    HTTP2_CLIENT_WIDE_MAX = 8,             /* streams of a connection with the wide one */
    HTTP2_CLIENT_WINDOW_ALL = 1024 * 1024, /* of the connection */
    HTTP2_CLIENT_UP = 64 * 1024,           /* request bytes a stream holds */
    HTTP2_CLIENT_SESSION_MAX = 16 << 20,   /* bytes of memory that nghttp2 may hold */
};

struct http2_client;

enum http2_news {
    HTTP2_SETTLED = 1, /* its SETTINGS came: it takes as many as it will */
    HTTP2_IDLE,        /* the last stream is over */
    HTTP2_LEFT,        /* never mention it again */
};
/* Runs from within any call but http2_client_takes; not from within http2_client_drain or _close */
typedef void (*http2_owner_fn)(void *arg, enum http2_news news);

/* Takes the connected and verified io over. In clear nothing that a request says is sent before the
 * origin's SETTINGS: what speaks HTTP/1.1 there could read a request of its own in it. address:
 * where it leads, for the audit. wipe: its memory holds secrets. NULL: out of memory, the io is
 * closed. */
struct http2_client *http2_client_new(struct event_base *base, struct io *io,
                                      const struct limits *l, bool wipe, const char *address);
/* idle_seconds: how long it stays open without a stream. */
void http2_client_owner(struct http2_client *c, unsigned idle_seconds, http2_owner_fn fn,
                        void *arg);
/* May another request go on it? Asks the socket for an end when nothing is under way. */
bool http2_client_takes(struct http2_client *c);
/* Send this request; the body, if h has one, follows by the stream. ops NULL: not possible. */
struct upstream_stream http2_client_open_stream(struct http2_client *c,
                                                const struct client_ops *ops, void *arg,
                                                const struct head *h, const struct authority *a);
/* Has its origin said that it takes an extended CONNECT (RFC 8441)? */
bool http2_client_connects(const struct http2_client *c);
unsigned http2_client_in_use(const struct http2_client *c);
const char *http2_client_address(const struct http2_client *c);
/* No more requests: it ends when the last is over. The owner has it no longer. */
void http2_client_drain(struct http2_client *c);
/* At once: its streams fail. The owner has it no longer. NULL is fine. */
void http2_client_close(struct http2_client *c);

#endif
