/* `upstream.proxy` and `upstream.no_proxy` of the configuration: the way out through a proxy of the
 * operator's own network, and what does not go that way. Only the dialer has one. */
#ifndef DURWARD_UPSTREAM_PROXY_H
#define DURWARD_UPSTREAM_PROXY_H

#include "authority.h"
#include "cidr.h"
#include "err.h"

#include <openssl/ssl.h>

struct msg;
struct roots;

enum { UPSTREAM_PROXY_USER_MAX = 128, UPSTREAM_PROXY_TEXT_MAX = 300 };

struct upstream_direct {
    struct authority host; /* of a name or an address */
    bool below;            /* every name under it, not itself */
    struct cidr range;     /* bits over addresses, when host.host is "" */
};

struct upstream_proxy {
    struct authority at; /* scheme: how we speak to it */
    char user[UPSTREAM_PROXY_USER_MAX + 1];
    char secret[65];                    /* the name of its password's; "": no credential */
    char text[UPSTREAM_PROXY_TEXT_MAX]; /* "http://proxy.corp.example:3128", for records */
    struct roots *roots;                /* likewise */
    SSL_CTX *tls;                       /* when it is spoken to in TLS; set by the dialer */
    struct upstream_direct *direct;
    size_t n_direct;
};

/* What the parent says in W_INIT (dialer.h). *ret is NULL when there is none. 0, or -1 with err. */
int upstream_proxy_get(struct msg *m, struct upstream_proxy **ret, struct err *err);
void upstream_proxy_free(struct upstream_proxy *p); /* NULL is fine */
/* This one goes there directly. A name is compared as a name only: it is not resolved to see. */
bool upstream_proxy_direct(const struct upstream_proxy *p, const struct authority *a);

#endif
