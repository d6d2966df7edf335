/* One connection to an origin that speaks HTTP/1.1: one request at a time, the reply checked as
 * strictly as a request, then idle (in a pool) or closed. */
#ifndef DURWARD_HTTP1_CLIENT_H
#define DURWARD_HTTP1_CLIENT_H

#include "request_limits.h"
#include "http_head.h"
#include "io.h"
#include "upstream_stream.h"

struct http1_client;

/* Takes the connected (and, for https, verified) io over. */
struct http1_client *http1_client_new(struct io *io, const struct limits *l);
/* Take it for one request: head is the serialised head, sent at once; body says how data will be
 * framed. When it has failed, the connection is closed already. */
void http1_client_start(struct http1_client *c, const struct client_ops *ops, void *arg,
                        struct slice head, struct slice method, enum body_kind body);
/* The same request's side of it; dropping it closes the connection. */
struct upstream_stream http1_client_open_stream(struct http1_client *c);
void http1_client_data(struct http1_client *c, const void *p, size_t n);
void http1_client_request_end(struct http1_client *c);
size_t http1_client_room(const struct http1_client *c);
void http1_client_resume(struct http1_client *c); /* the request has room again */
/* After end: can it carry another request? */
bool http1_client_reusable(const struct http1_client *c);
/* While idle: fn runs when the peer ends or says anything; the connection is then of no use. */
void http1_client_idle(struct http1_client *c, unsigned seconds, void (*fn)(void *arg), void *arg);
bool http1_client_alive(const struct http1_client *c);      /* idle: nothing came, no end of file */
void http1_client_close(struct http1_client *c);            /* NULL is fine */
unsigned http1_client_served(const struct http1_client *c); /* requests started on it */

#endif
