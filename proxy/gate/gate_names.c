/* Keeps names by host and by number, asks the controller once for a name that has no number yet,
 * however many wait for it, and decides the answer to each DNS query. */
#include "gate_names.h"

#include "dns_server.h"
#include "exchange.h"
#include "guide.h"
#include "policy.h"
#include "synthetic.h"
#include "refusal_counters.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum { NAMES_BUCKETS = 256, NAMES_WAITERS = 64 };

struct name {
    char *host;
    uint32_t index;
    LIST_ENTRY(name) by_host, by_index;
};

struct waiter {
    char host[HOST_TEXT_MAX];
    uint16_t type;
    struct dns_query *q;
    LIST_ENTRY(waiter) link;
};

struct gate_names {
    struct gate *gate;
    LIST_HEAD(, name) hosts[NAMES_BUCKETS], indexes[NAMES_BUCKETS];
    LIST_HEAD(, waiter) waiters;
    unsigned n_waiters;
    uint32_t next_req;
};

static unsigned host_bucket(struct slice s)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 16777619u;
    return h % NAMES_BUCKETS;
}

struct gate_names *gate_names_new(struct gate *g)
{
    struct gate_names *n = calloc(1, sizeof *n);
    if (n)
        n->gate = g;
    return n;
}

static void finish(struct waiter *w, const struct name *found)
{
    LIST_REMOVE(w, link);
    unsigned char v4[4], v6[16];
    if (found == NULL)
        dns_query_fail(w->q);
    else if (synthetic_v4(found->index, v4) < 0 || synthetic_v6(found->index, v6) < 0)
        dns_query_nxdomain(w->q);
    else
        dns_query_answer_addr(w->q, v4, v6);
    free(w);
}

void gate_names_controller_gone(struct gate_names *n)
{
    struct waiter *w;
    while (n && (w = LIST_FIRST(&n->waiters)) != NULL) {
        n->n_waiters--;
        finish(w, NULL);
    }
}

void gate_names_free(struct gate_names *n)
{
    if (n == NULL)
        return;
    gate_names_controller_gone(n);
    for (size_t b = 0; b < NAMES_BUCKETS; b++) {
        struct name *e;
        while ((e = LIST_FIRST(&n->hosts[b])) != NULL) {
            LIST_REMOVE(e, by_host);
            LIST_REMOVE(e, by_index);
            free(e->host);
            free(e);
        }
    }
    free(n);
}

static struct name *find(const struct gate_names *n, struct slice host)
{
    struct name *e;
    LIST_FOREACH(e, &n->hosts[host_bucket(host)], by_host)
    if (slice_eq_str(host, e->host))
        return e;
    return NULL;
}

static struct name *find_index(const struct gate_names *n, uint32_t index)
{
    struct name *e;
    LIST_FOREACH(e, &n->indexes[index % NAMES_BUCKETS], by_index)
    if (e->index == index)
        return e;
    return NULL;
}

int gate_names_put(struct gate_names *n, const char *host, uint32_t index)
{
    if (find(n, slice_str(host)) || find_index(n, index) || index < NAMES_FIRST ||
        index == NAMES_REFUSED)
        return -1;
    struct name *e = calloc(1, sizeof *e);
    if (e == NULL || (e->host = strdup(host)) == NULL) {
        free(e);
        return -1;
    }
    e->index = index;
    LIST_INSERT_HEAD(&n->hosts[host_bucket(slice_str(host))], e, by_host);
    LIST_INSERT_HEAD(&n->indexes[index % NAMES_BUCKETS], e, by_index);
    return 0;
}

const char *gate_names_host(const struct gate_names *n, const struct sockaddr *sa)
{
    uint32_t index = synthetic_index(sa);
    if (index == NAMES_SELF)
        return NAMES_SELF_HOST;
    struct name *e = index ? find_index(n, index) : NULL;
    return e ? e->host : NULL;
}

static void send_ask(struct gate_names *n, const char *host)
{
    struct msg m;
    if (n->gate->controller == NULL)
        return;
    msg_init(&m, W_NAME);
    msg_put_u32(&m, ++n->next_req);
    msg_put_str(&m, host);
    ipc_send(n->gate->controller, &m);
}

void gate_names_ask_all(struct gate_names *n)
{
    send_ask(n, "");
}

static void ask(struct gate_names *n, const char *host, uint16_t type, struct dns_query *q)
{
    struct waiter *w = n->n_waiters < NAMES_WAITERS ? calloc(1, sizeof *w) : NULL;
    if (w == NULL || n->gate->controller == NULL) {
        free(w);
        dns_query_fail(q);
        return;
    }
    snprintf(w->host, sizeof w->host, "%s", host);
    w->type = type;
    w->q = q;
    bool asked = false;
    struct waiter *o;
    LIST_FOREACH(o, &n->waiters, link)
    asked |= strcmp(o->host, host) == 0;
    LIST_INSERT_HEAD(&n->waiters, w, link);
    n->n_waiters++;
    if (!asked)
        send_ask(n, host);
}

/* Would a resolver of the world be asked for it? Not for a network's own names, nor for those that
 * are set apart (RFC 6761 and its register), which programs ask for to learn where they are. */
static bool public_name(const char *host)
{
    static const char *const apart[] = {"local",   "localhost", "arpa",  "internal",
                                        "invalid", "test",      "onion", "alt",
                                        "example", "home",      "lan",   "corp"};
    static const char *const examples[] = {"example.com", "example.net", "example.org"};
    struct slice name = slice_str(host);
    const char *last = strrchr(host, '.');
    if (last == NULL)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(apart); i++)
        if (strcmp(last + 1, apart[i]) == 0)
            return false;
    for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
        size_t k = strlen(examples[i]);
        if (slice_ends(name, slice_str(examples[i])) &&
            (name.n == k || host[name.n - k - 1] == '.'))
            return false;
    }
    return true;
}

/* No rule names it. Nobody is asked for it: the one address of all such names says so over HTTP. */
static void answer_refused(struct gate_names *n, const char *host, uint16_t type,
                           struct dns_query *q)
{
    unsigned char v4[4], v6[16];
    bool told = host && n->gate->mode == GATE_LOCAL && public_name(host) &&
                !policy_nxdomain(n->gate->routes[0].policy);
    if (!told || synthetic_v4(NAMES_REFUSED, v4) < 0 || synthetic_v6(NAMES_REFUSED, v6) < 0)
        dns_query_nxdomain(q);
    else if (type != DNS_TYPE_A && type != DNS_TYPE_AAAA)
        dns_query_nodata(q);
    else
        dns_query_answer_addr(q, v4, v6);
}

void gate_names_lookup(struct gate_names *n, struct slice host, uint16_t type, struct dns_query *q)
{
    struct authority a = {.scheme = SCHEME_HTTPS, .port = 443};
    unsigned char v4[4], v6[16];
    bool self = slice_eq(host, SLICE(NAMES_SELF_HOST)) || slice_eq(host, SLICE(GUIDE_HOST));
    bool name = self || (authority_host(&a, host) == 0 && a.kind == HOST_NAME);
    if (!self && (!name || !policy_names_host(n->gate->routes[0].policy, &a))) {
        char text[HOST_TEXT_MAX];
        snprintf(text, sizeof text, "%.*s", SL(host));
        refusal_counters_add(n->gate->refusal_counters, RECORD_DNS, "dns_denied", text, 1);
        answer_refused(n, name ? a.host : NULL, type, q);
        return;
    }
    if (type != DNS_TYPE_A && type != DNS_TYPE_AAAA) {
        dns_query_nodata(q);
        return;
    }
    if (self) {
        synthetic_v4(NAMES_SELF, v4);
        synthetic_v6(NAMES_SELF, v6);
        dns_query_answer_addr(q, v4, v6);
        return;
    }
    struct name *e = find(n, slice_str(a.host));
    if (e) {
        synthetic_v4(e->index, v4);
        synthetic_v6(e->index, v6);
        dns_query_answer_addr(q, v4, v6);
        return;
    }
    ask(n, a.host, type, q);
}

int gate_names_message(struct gate_names *n, struct msg *m)
{
    uint32_t req, index;
    char host[HOST_TEXT_MAX];
    if (msg_get_u32(m, &req) < 0 || msg_get_str(m, host, sizeof host) < 0 ||
        msg_get_u32(m, &index) < 0 || msg_end(m) < 0)
        return -1;
    if (index >= NAMES_FIRST && gate_names_put(n, host, index) == 0 && !LIST_EMPTY(&n->waiters))
        refusal_counters_add(n->gate->refusal_counters, RECORD_DNS, "ok", host, 1);
    struct waiter *w, *next;
    for (w = LIST_FIRST(&n->waiters); w; w = next) {
        next = LIST_NEXT(w, link);
        if (strcmp(w->host, host) != 0)
            continue;
        n->n_waiters--;
        finish(w, find(n, slice_str(host)));
    }
    return 0;
}
