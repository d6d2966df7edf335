/* HTTP/1.1 towards the sandbox: one connection, one request at a time, pipelining in order. It
 * parses, frames and relays; what a request is for is the session's to say. */
#ifndef DURWARD_HTTP1_SERVER_H
#define DURWARD_HTTP1_SERVER_H

#include "faults.h"
#include "request_limits.h"
#include "http_head.h"
#include "http1_head.h"
#include "io.h"
#include "stream.h"

struct event_base;
struct http1_server;

struct http1_server_ops {
    /* A whole, well-formed request head. The session starts an exchange with the given downstream
     * and returns its upstream, or an upstream with ops NULL when the downstream was already told
     * (fail) or the session took the connection over (http1_server_release). h may be taken. */
    void (*request)(void *session, struct http1_server *s, struct head *h,
                    struct downstream downstream);
    /* A head that is refused; h as far as it was read. The session ends it through the downstream.
     */
    void (*refused)(void *session, struct http1_server *s, const struct head *h,
                    struct downstream downstream, const struct refusal *why);
    /* Whose requests at fault count together, as far as it is known who asks: of a head that could
     * not be read (`unread`) that is nobody whom an earlier one named. NULL: out of memory. */
    struct faults *(*faults)(void *session, bool unread);
    void (*closed)(void *session); /* the connection is over; the server freed itself */
};

/* Borrows io (the session owns and closes it); handles its events from here on. */
struct http1_server *http1_server_new(struct event_base *base, struct io *io,
                                      const struct limits *l, const struct http1_server_ops *ops,
                                      void *session);
/* Called by the session inside `request` once it has the exchange. */
void http1_server_set_upstream(struct http1_server *s, struct upstream upstream);
/* Inside `request`: stop speaking HTTP here; the io goes back to the session with whatever input
 * follows. The server is freed when the call returns. */
void http1_server_release(struct http1_server *s);
/* Between requests, nothing of the next one read. */
bool http1_server_idle(const struct http1_server *s);
/* Close after the present reply. */
void http1_server_close_after(struct http1_server *s);
/* An extra field line ("name: value\r\n") for the refusal that is about to be written. */
void http1_server_refusal_field(struct http1_server *s, const char *line);
void http1_server_start(struct http1_server *s); /* look at input that is already there */
void http1_server_free(struct http1_server *s);  /* cancels the exchange; NULL is fine */

#endif
