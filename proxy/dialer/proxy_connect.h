/* One CONNECT through the operator's own proxy (RFC 9110 9.3.6), on a connection to it that is
 * there already: its password from the vault, TLS with it where it is an https one, the request by
 * name, its answer read as strictly as an origin's. */
#ifndef DURWARD_PROXY_CONNECT_H
#define DURWARD_PROXY_CONNECT_H

#include "authority.h"

struct bridges;
struct event_base;
struct proxy_connect;
struct secret_client;
struct upstream_proxy;

enum {
    PROXY_CONNECT_HEAD_MAX = 16 * 1024,
    PROXY_CONNECT_TEXT_MAX = 160,
    PROXY_CONNECT_NO_ROOM = -2
};

struct proxy_connect_order {
    struct event_base *base;
    const struct upstream_proxy *proxy;
    struct secret_client *secrets; /* needed when the proxy has a credential */
    struct bridges *bridges;       /* needed when it is an https one */
    struct slice payer;            /* of the bridge; lives until then */
    struct authority target;
    /* The end, once; the proxy_connect is gone when it runs. fd >= 0: a stream to the target, the
     * callback's. fd < 0: text says why; NO_ROOM when it is our own fault. */
    void (*done)(void *arg, int fd, const char *text);
    void *arg;
};

/* Takes the fd; the order is copied. Two steps, because done may run inside the second. No time-out
 * of its own. NULL when memory is out. */
struct proxy_connect *proxy_connect_new(const struct proxy_connect_order *order, int fd);
void proxy_connect_run(struct proxy_connect *p);
void proxy_connect_cancel(struct proxy_connect *p); /* done will not run; NULL is fine */

#endif
