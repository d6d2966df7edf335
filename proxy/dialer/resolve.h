/* Names to addresses, asynchronously, through c-ares: A and AAAA, /etc/hosts first, no search
 * domains (a name that is decided is the name that is asked). /etc/resolv.conf is read again when
 * it has changed. Only the dialer has one, and only after a decision. */
#ifndef DURWARD_RESOLVE_H
#define DURWARD_RESOLVE_H

#include "address.h"

struct event_base;
struct resolver;
struct resolve_query;

enum {
    RESOLVE_ADDRESSES_MAX = 16,  /* what an answer holds beyond is dropped */
    RESOLVE_QUERIES_MAX = 1024,  /* unanswered at once, cancelled ones included, */
    RESOLVE_QUERIES_EACH = 256,  /* and of one payer; */
    RESOLVE_WAITING_MAX = 16384, /* beyond, they wait, */
    RESOLVE_WAITING_EACH = 4096, /* so many of one wire */
    RESOLVE_TRY_MS = 2000,       /* first wait for each server; doubled by c-ares on the second */
    RESOLVE_TRIES = 2
};

/* n == 0: none; why is constant text then. The array is the caller's to read only until it returns.
 */
typedef void (*resolve_fn)(void *arg, const struct address *list, size_t n, const char *why);

/* Where to ask. All NULL: the host's own configuration. */
struct resolver_options {
    const char *servers;     /* "127.0.0.1:5353,[::1]:5353" instead of those of resolv.conf */
    const char *resolv_conf; /* instead of /etc/resolv.conf */
};

/* Options are copied. NULL with err. */
struct resolver *resolver_new(struct event_base *base, const struct resolver_options *o,
                              struct err *err);
/* Queries under way are dropped without a call. */
void resolver_free(struct resolver *r);
/* host: canonical name, NUL-terminated; port is put into the addresses. fn is never called before
 * this returns. payer: whose part of RESOLVE_QUERIES_MAX it is, "WIRE|OWNER"; beyond that it waits,
 * wires by turns and in each its owners. The owner is the far end's to choose, the wire the
 * parent's: it stays when its channel is made anew. NULL when no more of that wire may wait, or
 * memory is out. */
struct resolve_query *resolver_get(struct resolver *r, struct slice payer, const char *host,
                                   uint16_t port, resolve_fn fn, void *arg);
void resolve_cancel(struct resolve_query *q);      /* fn will not run */
bool resolve_waits(const struct resolve_query *q); /* nobody has been asked yet */

#endif
