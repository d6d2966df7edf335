/* Connections to origins: idle ones of HTTP/1.1, taken and returned; those of HTTP/2, which stand
 * here while they are in use too. The key says everything that two requests must share to share a
 * connection: sandbox or policy, authority, TLS identity, credential. */
#ifndef DURWARD_POOL_H
#define DURWARD_POOL_H

#include "http1_client.h"
#include "http2_client.h"

struct event_base;
struct pool;

/* max: idle connections kept, but for those that rest for less than a second, of which eight times
 * as many may be, so that a crowd does not dial all the time. Where there are too many the longest
 * idle goes of the owner (what a key says before its first '|') that has the most. seconds: how
 * long one is kept at most. */
struct pool *pool_new(struct event_base *base, unsigned max, unsigned seconds);
/* Closes everything; nobody may take one or wait any more. */
void pool_free(struct pool *p);

/* POOL_SOCKET: one that can carry a WebSocket. */
enum pool_want { POOL_ANY = 0, POOL_SOCKET, POOL_HTTP2 };

/* One of the two, or neither. */
struct connection {
    struct http1_client *http1; /* the taker's own */
    struct http2_client *http2; /* the pool's; a stream is opened at once */
};

/* A live connection for this key with room for a request, most recently used first. */
struct connection pool_take(struct pool *p, const char *key, enum pool_want want);
/* Give a reusable connection back; closes it when it cannot be kept. */
void pool_give(struct pool *p, const char *key, struct http1_client *c);
/* A fresh one; the pool owns it from here on. -1: out of memory, it is closed. */
int pool_add(struct pool *p, const char *key, struct http2_client *c) WUNUSED;
/* Close every idle connection whose key starts with prefix (a credential changed), and let those in
 * use take no more; "" is all. TLS sessions kept for such keys go too. */
void pool_drop(struct pool *p, const char *prefix);
size_t pool_idle(const struct pool *p);
/* TLS sessions for these keys (see tls_sessions.h). */
struct tls_sessions *pool_sessions(struct pool *p);

/* ---- several requests for one key at once ---- */

/* Somebody dials for this key. Every one must be told to be over; NULL when memory is out, which
 * pool_dial_over takes. */
struct pool_dial *pool_dial(struct pool *p, const char *key);
/* It ended, in a connection (that may be in the pool now) or not. failed: those who wait would fail
 * the same way. */
void pool_dial_over(struct pool_dial *d, bool failed);

/* Wait for another's dial to be over: only where the connection will serve both, since the origin
 * behind this key chose HTTP/2 before, or for http2 because nothing else is spoken there. NULL:
 * nobody dials, or nothing is known. fn runs once, from the event loop; again: look into the pool
 * again, and wait again if need be; else dial. */
typedef void (*pool_wait_fn)(void *arg, bool again);
struct pool_wait *pool_wait(struct pool *p, const char *key, bool http2, pool_wait_fn fn,
                            void *arg);
void pool_wait_cancel(struct pool_wait *w); /* NULL is fine */
/* What the origin behind this key chose. Only so many keys are kept, of all owners: not for one
 * that says it by itself. */
void pool_spoke(struct pool *p, const char *key, bool http2);

#endif
