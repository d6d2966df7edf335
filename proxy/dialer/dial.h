/* One dial inside the dialer: allowed by its channel's policy → an address (the operator's, a
 * literal, or resolved only now) → every address past the guard → connected → the peer checked once
 * more → recorded in the dialer's journal → told. With an upstream proxy, unless it is none of its
 * business: a literal address past the guard, a name not resolved at all → connected to the proxy →
 * CONNECT → recorded → told. Whatever cannot be recorded is not handed over
 * (promises P4, P7, P8). */
#ifndef DURWARD_DIAL_H
#define DURWARD_DIAL_H

#include "trace.h"
#include "address.h"
#include "authority.h"
#include "dial_client.h"

struct bridges;
struct dial;
struct event_base;
struct journal;
struct mcp_dials;
struct msg;
struct resolver;
struct secret_client;
struct upstream_map;
struct upstream_proxy;

/* Whose dial it is, for its record: said by the parent and, of the request, by the requester. ""
 * where there is none. */
struct dial_label {
    char sandbox[DIAL_NAME_MAX], policy[DIAL_NAME_MAX], request[DIAL_REQUEST_MAX];
};

/* What all dials share; outlives them. */
struct dial_means {
    struct event_base *base;
    struct resolver *resolver;
    struct address_guard *guard;
    struct upstream_map *map;
    struct upstream_proxy *proxy;  /* NULL: none */
    struct secret_client *secrets; /* its password */
    struct bridges *bridges;       /* to it, when it is an https one */
    struct journal *journal;
    struct mcp_dials *mcp; /* to MCP servers; NULL in tests */
    unsigned seconds;      /* resolve and connect together */
};

struct dial_order {
    struct authority authority;
    struct dial_label label;
    /* Whose part of queries and bridges it takes, "WIRE|OWNER": of the wire that asks, and within
     * it as its far end says. */
    char payer[DIAL_NAME_MAX + 16];
    char sandbox[DIAL_NAME_MAX]; /* whose MCP servers these are */
    /* Asked before anything leaves, and again before the descriptor is handed over. */
    bool (*allowed)(void *arg, const struct authority *a);
    /* Asked of an address that the guard forbids, other than our own listeners: may this authority
     * lead to it all the same? NULL: never. */
    bool (*leads_to)(void *arg, const struct authority *a, const struct sockaddr *sa);
    /* The end, once. fd >= 0: connected, the callback's; address is its peer. fd < 0: code is one
     * of those of W_DIAL_FAIL, text says more; address NULL. The dial is gone when this runs. */
    void (*done)(void *arg, int fd, const char *address, const char *code, const char *text);
    void *arg;
};

/* Of W_INIT (dialer.h): resolve entries, forbidden addresses, the upstream proxy. */
int dial_means_get(struct dial_means *means, struct msg *m, struct err *err);
/* What the upstream proxy needs, if there is one. roots_fd: memfd of ca/roots.h, for an https one.
 */
int dial_means_proxy(struct dial_means *means, int roots_fd, struct err *err);
void dial_means_free(struct dial_means *means); /* all but base and journal */

/* Two steps, because done may run inside the second. The order is copied. */
struct dial *dial_new(const struct dial_means *means, const struct dial_order *order);
void dial_run(struct dial *d);
/* done will not run; what was under way is recorded as "cancelled". */
void dial_cancel(struct dial *d);
/* Before it is run: its steps are wanted. */
void dial_trace(struct dial *d, const struct trace *t);
/* A dial that is not even begun, recorded with this code. 0, or -1 when it cannot be recorded. */
int dial_refuse(const struct dial_means *means, const struct authority *a,
                const struct dial_label *label, const char *code);

#endif
