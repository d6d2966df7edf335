/* The states of one dial, from waiting for the journal to telling the result. A connection is
 * handed over only when it is on record and its policy still allows it. */
#include "dial.h"

#include "assertion.h"
#include "journal.h"
#include "proxy_connect.h"
#include "mcp_dial.h"
#include "mcp_host.h"
#include "race.h"
#include "resolve.h"
#include "upstream_map.h"
#include "upstream_proxy.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { JOURNAL_WAIT_MS = 2000, JOURNAL_LOOK_MS = 20 };

enum dial_state {
    DIAL_NEW, /* waits for the journal, if there is none */
    DIAL_RESOLVING,
    DIAL_CONNECTING,
    DIAL_SERVER,    /* the controller, for an MCP server */
    DIAL_ASKING,    /* the upstream proxy */
    DIAL_RECORDING, /* the result is fixed; the journal has it */
    DIAL_OVER
};

struct dial {
    const struct dial_means *means;
    struct dial_order order;
    enum dial_state state;
    bool exempt;  /* the address is the operator's: no guard */
    bool proxied; /* what is connected to is the upstream proxy */
    struct timespec begun;
    struct trace trace;
    struct event *deadline;
    struct resolve_query *query; /* DIAL_RESOLVING */
    struct race *race;           /* DIAL_CONNECTING */
    struct proxy_connect *via;   /* DIAL_ASKING */
    struct mcp_dial *server;     /* DIAL_SERVER */
    struct journal_wait *wait;   /* DIAL_RECORDING */
    int fd;
    const char *code; /* the result; constant */
    char text[PROXY_CONNECT_TEXT_MAX];
    char address[ADDRESS_TEXT_MAX];
};

static const char *const states[] = {
    [DIAL_NEW] = "waits for a journal",
    [DIAL_RESOLVING] = "resolving",
    [DIAL_CONNECTING] = "connecting",
    [DIAL_ASKING] = "asking the proxy",
    [DIAL_RECORDING] = "recording",
    [DIAL_OVER] = "over",
    [DIAL_SERVER] = "asking for the MCP server",
};

/* Leaves a state: whatever it had under way is stopped. */
static void dial_enter(struct dial *d, enum dial_state state)
{
    ASSERT(d->state != DIAL_OVER && state >= d->state); /* each is entered once, in this order */
    if (d->query)
        resolve_cancel(d->query);
    if (d->race)
        race_cancel(d->race);
    proxy_connect_cancel(d->via);
    mcp_dial_cancel(d->server);
    if (d->wait)
        journal_cancel(d->wait, "cancelled");
    d->query = NULL;
    d->race = NULL;
    d->via = NULL;
    d->server = NULL;
    d->wait = NULL;
    d->state = state;
    TRACE(&d->trace, states[state], "%s%s%s", d->code ? d->code : "", d->address[0] ? " " : "",
          d->address);
}

void dial_trace(struct dial *d, const struct trace *t)
{
    d->trace = *t;
    TRACE(t, states[d->state], "%s", d->address);
}

static void dial_free(struct dial *d)
{
    dial_enter(d, DIAL_OVER);
    if (d->deadline)
        event_free(d->deadline);
    if (d->fd >= 0)
        close(d->fd);
    free(d);
}

/* The one way out. */
static void dial_tell(struct dial *d)
{
    struct dial_order o = d->order;
    char address[ADDRESS_TEXT_MAX], text[sizeof d->text];
    const char *code = d->code;
    int fd = d->fd;
    memcpy(address, d->address, sizeof address);
    memcpy(text, d->text, sizeof text);
    d->fd = -1;
    dial_free(d);
    o.done(o.arg, fd, fd >= 0 ? address : NULL, code, text);
}

static uint64_t elapsed_ms(const struct dial *d)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ms =
        (int64_t)(now.tv_sec - d->begun.tv_sec) * 1000 + (now.tv_nsec - d->begun.tv_nsec) / 1000000;
    return ms > 0 ? (uint64_t)ms : 0;
}

static void make_record(struct record *r, const struct authority *a, const struct dial_label *label,
                        const char *address, const char *code, uint64_t ms, const char *text)
{
    char authority[HOST_TEXT_MAX + 16];
    record_init(r, RECORD_CONNECTION, 0);
    record_put_str(r, RF_SANDBOX, label->sandbox);
    record_put_str(r, RF_POLICY, label->policy);
    record_put_str(r, RF_REQUEST, label->request);
    record_put_str(r, RF_CODE, code);
    record_put_str(r, RF_AUTHORITY, authority_text(a, authority, sizeof authority));
    record_put_str(r, RF_ADDRESS, address);
    record_put_u64(r, RF_MS, ms);
    record_put_str(r, RF_DETAIL, text);
}

static void drop_socket(struct dial *d)
{
    if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
}

static void set_result(struct dial *d, const char *code, const char *text)
{
    d->code = code;
    snprintf(d->text, sizeof d->text, "%s", text);
}

/* The journal has answered. */
static void on_recorded(void *arg, bool ok)
{
    struct dial *d = arg;
    d->wait = NULL;
    if (!ok) {
        drop_socket(d);
        set_result(d, "audit", "the connection could not be recorded");
    } else if (d->fd >= 0 && !d->order.allowed(d->order.arg, &d->order.authority)) {
        drop_socket(d); /* the policy changed while the connection was being made */
        set_result(d, "denied", "the policy has changed");
        (void)dial_refuse(d->means, &d->order.authority, &d->order.label,
                          d->code); /* beside the "ok" */
    }
    dial_tell(d);
}

/* The result is known: record it, then tell. d->fd is the connection or -1. */
static void dial_finish(struct dial *d, const char *code, const char *text)
{
    struct record r;
    dial_enter(d, DIAL_RECORDING);
    event_del(d->deadline);
    set_result(d, code, text);
    make_record(&r, &d->order.authority, &d->order.label, d->address, code, elapsed_ms(d), d->text);
    if (d->proxied)
        record_put_str(&r, RF_VIA, d->means->proxy->text);
    struct journal_wait *w = journal_append(d->means->journal, &r, on_recorded, d);
    if (w) /* else on_recorded has run and d is gone */
        d->wait = w;
}

static void on_deadline(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct dial *d = arg;
    if (d->state == DIAL_NEW) {
        dial_run(d);
        return;
    }
    bool resolving = d->state == DIAL_RESOLVING, asking = d->state == DIAL_ASKING;
    if (resolving && d->query && resolve_waits(d->query)) {
        dial_finish(d, "overload", "too many names being resolved");
        return;
    }
    dial_finish(d, "timeout",
                d->state == DIAL_SERVER ? "starting the MCP server"
                : asking                ? "asking the proxy"
                : resolving             ? "resolving"
                : d->proxied            ? "connecting to the proxy"
                                        : "connecting");
}

/* ---- connecting ---- */

/* The guard, and what the rules of this authority open of it. */
static const char *address_refused(const struct dial *d, const struct sockaddr *sa)
{
    const char *why = address_guard_check(d->means->guard, sa);
    if (why && address_guard_ours(d->means->guard, sa, d->order.authority.port))
        return "ours";
    if (why == NULL || d->order.leads_to == NULL || address_guard_listed(d->means->guard, sa))
        return why;
    return d->order.leads_to(d->order.arg, &d->order.authority, sa) ? NULL : why;
}

/* What is connected must be what was judged. NULL, or why it must not be used. */
static const char *peer_blocked(struct dial *d, const struct address *asked)
{
    struct address peer = {.len = sizeof peer.in6}, own = {.len = sizeof own.in6};
    if (getpeername(d->fd, &peer.sa, &peer.len) < 0)
        return "the peer is unknown";
    if (!address_same_host(&peer.sa, &asked->sa) ||
        address_port(&peer.sa) != address_port(&asked->sa))
        return "another peer than asked for";
    address_text(&peer.sa, d->address, sizeof d->address);
    if (d->exempt)
        return NULL;
    const char *why = address_refused(d, &peer.sa);
    if (why)
        return why;
    if (address_guard_check(d->means->guard, &peer.sa))
        return NULL; /* a rule opens this very address, be it our own */
    /* A connection whose two ends have one address never left this host. */
    if (getsockname(d->fd, &own.sa, &own.len) < 0 || address_same_host(&peer.sa, &own.sa))
        return "own";
    return NULL;
}

/* Constant text for what connecting fails with in practice. */
static const char *connect_text(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return "connection refused";
    case ENETUNREACH:
        return "network unreachable";
    case EHOSTUNREACH:
        return "no route to the host";
    case ETIMEDOUT:
        return "connecting timed out";
    case ECONNRESET:
        return "connection reset";
    case EMFILE:
    case ENFILE:
        return "out of descriptors";
    case EACCES:
    case EPERM:
        return "not permitted";
    default:
        return "connecting failed";
    }
}

static void on_asked(void *arg, int fd, const char *text)
{
    struct dial *d = arg;
    d->via = NULL;
    d->fd = fd < 0 ? -1 : fd;
    dial_finish(d,
                fd >= 0                       ? "ok"
                : fd == PROXY_CONNECT_NO_ROOM ? "overload"
                                              : "upstream_proxy",
                text);
}

/* Connected, but to the proxy: it is told the target by name. */
static void ask_proxy(struct dial *d)
{
    const struct dial_means *m = d->means;
    struct proxy_connect_order order = {.base = m->base,
                                        .proxy = m->proxy,
                                        .secrets = m->secrets,
                                        .bridges = m->bridges,
                                        .payer = slice_str(d->order.payer),
                                        .target = d->order.authority,
                                        .done = on_asked,
                                        .arg = d};
    int fd = d->fd;
    d->fd = -1;
    dial_enter(d, DIAL_ASKING);
    d->via = proxy_connect_new(&order, fd);
    if (d->via)
        proxy_connect_run(d->via);
    else
        dial_finish(d, "overload", "out of memory");
}

static void on_raced(void *arg, int fd, const struct address *a, int error)
{
    struct dial *d = arg;
    int yes = 1;
    d->race = NULL;
    d->fd = fd;
    address_text(&a->sa, d->address, sizeof d->address);
    if (fd < 0) {
        dial_finish(d, d->proxied ? "upstream_proxy" : "connect", connect_text(error));
        return;
    }
    const char *why = peer_blocked(d, a);
    if (why) {
        drop_socket(d);
        dial_finish(d, "blocked_ip", why);
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes); /* speed, not safety */
    if (d->proxied)
        ask_proxy(d);
    else
        dial_finish(d, "ok", "");
}

static void dial_connect(struct dial *d, const struct address *list, size_t n)
{
    dial_enter(d, DIAL_CONNECTING);
    d->race = race_new(d->means->base, list, n, on_raced, d);
    if (d->race == NULL)
        dial_finish(d, "overload", "out of memory");
}

/* Keeps what the guard lets pass; connects, or ends when that is nothing. */
static void dial_judge(struct dial *d, const struct address *list, size_t n)
{
    struct address kept[RESOLVE_ADDRESSES_MAX];
    size_t n_kept = 0;
    const char *why = "";
    for (size_t i = 0; i < n && i < RESOLVE_ADDRESSES_MAX; i++) {
        const char *blocked = address_refused(d, &list[i].sa);
        if (blocked == NULL) {
            kept[n_kept++] = list[i];
            continue;
        }
        why = blocked;
        address_text(&list[i].sa, d->address, sizeof d->address);
    }
    if (n_kept == 0) {
        dial_finish(d, "blocked_ip", why);
        return;
    }
    d->address[0] = 0;
    dial_connect(d, kept, n_kept);
}

static void on_resolved(void *arg, const struct address *list, size_t n, const char *why)
{
    struct dial *d = arg;
    d->query = NULL;
    if (n == 0)
        dial_finish(d, d->proxied ? "upstream_proxy" : "resolve", why);
    else if (d->proxied) /* it is the operator's own, wherever it lies */
        dial_connect(d, list, n);
    else
        dial_judge(d, list, n);
}

/* ---- a dial ---- */

struct dial *dial_new(const struct dial_means *means, const struct dial_order *order)
{
    struct dial *d = calloc(1, sizeof *d);
    if (d == NULL)
        return NULL;
    d->means = means;
    d->order = *order;
    d->fd = -1;
    clock_gettime(CLOCK_MONOTONIC, &d->begun);
    d->trace =
        trace_begin(0, (uint64_t)d->begun.tv_sec * 1000000 + (uint64_t)d->begun.tv_nsec / 1000);
    d->deadline = event_new(means->base, -1, 0, on_deadline, d);
    if (d->deadline == NULL) {
        free(d);
        return NULL;
    }
    return d;
}

static void dial_resolve(struct dial *d, const struct authority *a)
{
    dial_enter(d, DIAL_RESOLVING);
    d->query = resolver_get(d->means->resolver, slice_str(d->order.payer), a->host, a->port,
                            on_resolved, d);
    if (d->query == NULL)
        dial_finish(d, "overload", "too many names being resolved");
}

static void literal_address(struct address *ret, const struct authority *a)
{
    address_set(ret, a->kind == HOST_IPV4 ? AF_INET : AF_INET6, a->ip, a->port);
}

/* Of a name only the proxy learns the address, so only it can judge that; an address we judge. */
static void dial_through(struct dial *d)
{
    const struct authority *a = &d->order.authority, *proxy = &d->means->proxy->at;
    struct address to;
    if (a->kind != HOST_NAME) {
        literal_address(&to, a);
        const char *why = address_refused(d, &to.sa);
        if (why) {
            address_text(&to.sa, d->address, sizeof d->address);
            dial_finish(d, "blocked_ip", why);
            return;
        }
    }
    d->exempt = d->proxied = true;
    if (proxy->kind == HOST_NAME) {
        dial_resolve(d, proxy);
        return;
    }
    literal_address(&to, proxy);
    dial_connect(d, &to, 1);
}

/* ---- MCP servers ---- */

static void on_server(void *arg, int fd, const char *text)
{
    struct dial *d = arg;
    int yes = 1;
    d->server = NULL;
    d->fd = fd;
    if (fd >= 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes); /* speed, not safety */
    dial_finish(d, fd >= 0 ? "ok" : "connect", text);
}

/* No address is looked for: the connection is made inside of the server's own sandbox. */
static void dial_server(struct dial *d, const char *name)
{
    dial_enter(d, DIAL_SERVER);
    snprintf(d->address, sizeof d->address, "mcp:%s", name);
    if (d->order.sandbox[0] == 0 || d->means->mcp == NULL) {
        dial_finish(d, "connect", "MCP servers are there for local sandboxes only");
        return;
    }
    d->server = mcp_dial_new(d->means->mcp, d->order.payer, d->order.sandbox, d->order.label.policy,
                             name, on_server, d);
    if (d->server == NULL)
        dial_finish(d, "overload", "too many connections to MCP servers are being made");
}

void dial_run(struct dial *d)
{
    char server[MCP_HOST_NAME_MAX + 1];
    const struct dial_means *m = d->means;
    const struct authority *a = &d->order.authority;
    struct timeval limit = {(time_t)m->seconds, 0};
    struct address literal;
    if (!journal_ready(m->journal)) { /* nothing may leave that cannot be recorded */
        struct timeval look = {0, JOURNAL_LOOK_MS * 1000};
        if (elapsed_ms(d) < JOURNAL_WAIT_MS) { /* at a start the logger is still making it */
            event_add(d->deadline, &look);
            return;
        }
        set_result(d, "audit", "there is no journal");
        dial_tell(d);
        return;
    }
    if (!d->order.allowed(d->order.arg, a)) {
        dial_finish(d, "denied", "");
        return;
    }
    event_add(d->deadline, &limit);
    const struct address *fixed = upstream_map_find(m->map, a);
    if (mcp_host_server(a, server)) {
        dial_server(d, server);
    } else if (mcp_host_is(a)) {
        dial_finish(d, "denied", "an MCP server is at http, port 80");
    } else if (fixed) {
        d->exempt = true;
        dial_connect(d, fixed, 1);
    } else if (m->proxy && !upstream_proxy_direct(m->proxy, a)) {
        dial_through(d);
    } else if (a->kind != HOST_NAME) {
        literal_address(&literal, a);
        dial_judge(d, &literal, 1);
    } else {
        dial_resolve(d, a);
    }
}

int dial_refuse(const struct dial_means *means, const struct authority *a,
                const struct dial_label *label, const char *code)
{
    struct record r;
    make_record(&r, a, label, "", code, 0, "");
    return journal_note(means->journal, &r);
}

void dial_cancel(struct dial *d)
{
    struct record r;
    if (d->state == DIAL_RESOLVING || d->state == DIAL_CONNECTING || d->state == DIAL_SERVER ||
        d->state == DIAL_ASKING) {
        make_record(&r, &d->order.authority, &d->order.label, d->address, "cancelled",
                    elapsed_ms(d), "");
        (void)journal_note(d->means->journal, &r); /* nobody is left to be told */
    }
    dial_free(d);
}
