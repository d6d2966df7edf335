/* The gate's main: wiring, binding, and what arrives on its control channel. */
#include "gate.h"

#include "answer_words.h"
#include "bind.h"
#include "crypto_text.h"
#include "dial_client.h"
#include "dns_server.h"
#include "porter.h"
#include "exchange.h"
#include "listener.h"
#include "gate_names.h"
#include "guide.h"
#include "inbound.h"
#include "meter.h"
#include "nflog.h"
#include "oidc.h"
#include "body_inspection.h"
#include "peer.h"
#include "placeholder.h"
#include "policy_message.h"
#include "preview_sessions.h"
#include "proc.h"
#include "revoked.h"
#include "role_run.h"
#include "refusal_counters.h"
#include "tls_sessions.h"
#include "wire.h"

#include <event2/event.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LISTENERS_MAX = 64, LEAF_CACHE = 1000 };

struct gate_process {
    struct gate gate;
    struct listener *listeners[LISTENERS_MAX];
    size_t n_listeners;
    struct dns_server *dns;
    struct nflog *nflog;
    struct porter *porter; /* GATE_PORTER */
    uint64_t lost;         /* packets known to be lost, as far as they are counted */
    struct msg bind;       /* kept until the journal is there */
    bool bind_waits, bound;
};

struct route *gate_route(struct gate *g, const char *policy)
{
    for (size_t i = 0; i < g->n_routes; i++)
        if (strcmp(g->routes[i].name, policy) == 0)
            return &g->routes[i];
    return NULL;
}

void gate_denied(struct gate *g, const char *code, const char *target, uint64_t count)
{
    if (g->controller == NULL || g->mode == GATE_PORTER)
        return;
    const struct answer_words *words = answer_words(0, code);
    struct msg m;
    msg_init(&m, W_DENIED);
    msg_put_str(&m, code);
    msg_put_str(&m, target);
    msg_put_u32(&m, count > UINT32_MAX ? UINT32_MAX : (uint32_t)count);
    msg_put_u8(&m, words->code[0] && words->class == ANSWER_FAILED);
    ipc_send(g->controller, &m);
}

static void on_counted(void *arg, enum record_kind kind, const char *code, const char *target,
                       uint64_t count)
{
    struct gate *g = arg;
    struct record r;
    record_init(&r, kind, 0);
    record_put_str(&r, RF_CODE, code);
    record_put_str(&r, RF_TARGET, target);
    record_put_u64(&r, RF_COUNT, count);
    journal_note(g->journal, &r);
    if (strcmp(code, "ok") != 0)
        gate_denied(g, code, target, count);
}

static void on_counted_outside(void *arg, enum record_kind kind, const char *code,
                               const char *target, uint64_t count)
{
    struct gate *g = arg;
    struct record r;
    record_init(&r, kind, 0);
    record_put_str(&r, RF_CODE, code);
    record_put_str(&r, RF_TARGET, target);
    record_put_str(&r, RF_ENTRY, "inbound");
    record_put_u64(&r, RF_COUNT, count);
    journal_note(g->journal, &r);
}

static struct route *make_route(struct gate *g, const char *policy)
{
    struct route *r = gate_route(g, policy);
    if (r || g->n_routes >= GATE_ROUTES_MAX)
        return r;
    r = &g->routes[g->n_routes];
    memset(r, 0, sizeof *r);
    snprintf(r->name, sizeof r->name, "%s", policy);
    r->dial = dial_client_new(g->base, g->limits.dial_seconds);
    r->injector_channel = injector_channel_new(g->base);
    if (r->dial == NULL || r->injector_channel == NULL)
        return NULL;
    dial_client_lost_to(r->dial, g->parent);
    injector_channel_lost_to(r->injector_channel, g->parent);
    g->n_routes++;
    return r;
}

static int set_policy(struct route *r, const struct policy_message *told)
{
    struct err err = {0};
    struct policy *p = policy_message_load(told, &err);
    if (p == NULL) {
        proc_log("policy %s: %s", r->name, err.text);
        return -1;
    }
    policy_free(r->policy); /* exchanges under way hold references */
    r->policy = p;
    r->generation = told->generation;
    return 0;
}

/* ---- controller channel: names, denials, proposals ---- */

/* It may speak before the parent's W_BIND, which says what this gate is: what may be seen is kept,
 * and who comes too early has no policy to come by. */
static int on_controller(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct gate_process *p = arg;
    bool local = p->gate.mode == GATE_LOCAL || p->gate.mode == GATE_SPARE;
    switch (m->type) {
    case W_PROPOSED:
        return guide_proposed(p->gate.guide, m);
    case W_NAME:
        return gate_names_message(p->gate.names, m);
    case W_INBOUND:
        return local ? session_inbound(&p->gate, m) : -1;
    case W_PREVIEW_SAID:
        return preview_sessions_message(p->gate.previews, m);
    case W_PREVIEWS:
        return local ? session_inbound_may(&p->gate, m) : -1;
    case W_PREVIEW_END:
        return local ? session_inbound_end(&p->gate, m) : -1;
    case W_TURNED_AWAY:
        return porter_refused(p->porter, m);
    default:
        return -1;
    }
}

static void on_controller_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct gate_process *p = arg;
    ipc_free(ch);
    p->gate.controller = NULL;
    gate_names_controller_gone(p->gate.names);
    guide_controller_gone(p->gate.guide);
    preview_sessions_controller_gone(p->gate.previews);
}

/* ---- brokers' fronts: they only ever close ---- */

static int on_front(struct ipc *ch UNUSED, struct msg *m UNUSED, void *arg UNUSED)
{
    return -1;
}

static void on_front_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct front_link *l = arg;
    ipc_free(ch);
    if (l->ipc != ch)
        return;
    l->ipc = NULL;
    peer_lost(l->gate->parent, l->channel);
}

static void attach_front(struct gate *g, const struct peer *far)
{
    size_t i = 0;
    while (broker_at(i)->front != far->kind)
        i++;
    struct front_link *l = &g->fronts[i];
    ipc_free(l->ipc);
    l->gate = g;
    l->channel = far->channel;
    l->ipc = ipc_new(g->base, far->fd, on_front, on_front_closed, l);
}

static void try_bind(struct gate_process *p);

static void on_journal(void *arg)
{
    try_bind(arg);
}

static int on_peer(struct gate_process *p, struct msg *m)
{
    struct gate *g = &p->gate;
    struct peer far;
    if (peer_get(m, &far) < 0)
        return -1;
    bool routed = far.policy[0] && far.kind != ROLE_CONTROLLER;
    struct route *r = routed ? make_route(g, far.policy) : NULL;
    if (far.kind == ROLE_CONTROLLER && strcmp(far.policy, PEER_INSIDE) == 0) {
        dial_client_attach(g->inside, far.fd, far.channel);
    } else if (far.kind == ROLE_SIGNER) {
        mint_client_attach(g->mint, far.fd, far.channel);
    } else if (far.kind == ROLE_LOGGER) {
        journal_attach(g->journal, far.fd, far.channel);
    } else if (far.kind == ROLE_DIALER && r) {
        dial_client_attach(r->dial, far.fd, far.channel);
    } else if (far.kind == ROLE_INJECTOR && r) {
        injector_channel_attach(r->injector_channel, far.fd, far.channel);
    } else if (far.kind == ROLE_CONTROLLER) {
        ipc_free(g->controller);
        g->controller = NULL;
        guide_controller_gone(g->guide);
        preview_sessions_controller_gone(g->previews);
        g->controller = ipc_new(g->base, far.fd, on_controller, on_controller_closed, p);
        if (strcmp(far.policy, PEER_PORTER) != 0)
            gate_names_ask_all(g->names);
    } else if (broker_is_front(far.kind)) {
        attach_front(g, &far);
    } else {
        close(far.fd);
    }
    return 0;
}

/* ---- binding ---- */

static void dns_lookup(void *arg, struct slice host, uint16_t type, struct dns_query *q)
{
    struct gate *g = arg;
    gate_names_lookup(g->names, host, type, q);
}

static void on_packet(void *arg, const struct nflog_packet *k)
{
    struct gate_process *p = arg;
    char target[NFLOG_TARGET_MAX];
    refusal_counters_add(p->gate.refusal_counters, RECORD_PACKET, "raw_denied",
                         nflog_packet_text(k, target, sizeof target), 1);
    uint64_t lost = nflog_lost(p->nflog);
    if (lost > p->lost)
        refusal_counters_add(p->gate.refusal_counters, RECORD_PACKET, "lost", "packets (at least)",
                             lost - p->lost);
    p->lost = lost;
}

static void on_dns_refused(void *arg, enum dns_code code)
{
    struct gate *g = arg;
    char text[32];
    snprintf(text, sizeof text, "rcode %d", (int)code);
    refusal_counters_add(g->refusal_counters, RECORD_DNS, "dns_malformed", text, 1);
}

static int add_dns(struct gate_process *p, uint8_t kind, int fd)
{
    static const struct dns_server_ops ops = {.lookup = dns_lookup, .refused = on_dns_refused};
    struct err err = {0};
    if (p->dns == NULL)
        p->dns = dns_server_new(p->gate.base, &ops, &p->gate);
    if (p->dns == NULL) {
        close(fd);
        return -1;
    }
    bool udp = kind == LISTENER_DNS_UDP4 || kind == LISTENER_DNS_UDP6;
    int r = udp ? dns_server_add_udp(p->dns, fd, &err) : dns_server_add_tcp(p->dns, fd, &err);
    if (r < 0)
        proc_log("dns: %s", err.text);
    return r;
}

static int add_stream(struct gate_process *p, enum session_entry entry, const char *name, int fd)
{
    struct listener *l =
        p->n_listeners < LISTENERS_MAX ? listener_new(&p->gate, fd, entry, name) : NULL;
    if (l == NULL)
        return -1;
    p->listeners[p->n_listeners++] = l;
    return 0;
}

static int add_listener(struct gate_process *p, uint8_t kind, const char *name, int fd)
{
    struct err err = {0};
    switch (kind) {
    case LISTENER_TCP4:
    case LISTENER_TCP6:
        return add_stream(p, ENTRY_TRANSPARENT, NULL, fd);
    case LISTENER_REMOTE_HTTP:
        return add_stream(p, ENTRY_EXPLICIT, NULL, fd);
    case LISTENER_REMOTE_HTTPS:
        return name[0] ? add_stream(p, ENTRY_TLS, name, fd) : -1;
    case LISTENER_FORWARDED:
        return p->gate.oidc ? add_stream(p, ENTRY_FORWARDED, name[0] ? name : NULL, fd) : -1;
    case LISTENER_PORTER:
        if (p->gate.mode == GATE_PORTER && p->porter == NULL)
            p->porter = porter_new(&p->gate, fd);
        return p->porter ? 0 : -1;
    case LISTENER_DNS_UDP4:
    case LISTENER_DNS_UDP6:
    case LISTENER_DNS_TCP4:
    case LISTENER_DNS_TCP6:
        return add_dns(p, kind, fd);
    case LISTENER_NFLOG:
        p->nflog = nflog_new(p->gate.base, fd, on_packet, p, &err);
        if (p->nflog == NULL)
            proc_log("nflog: %s", err.text);
        return p->nflog ? 0 : -1;
    default:
        close(fd);
        return -1;
    }
}

static int read_keys(struct gate *g, struct msg *m)
{
    uint8_t mode;
    struct slice tag, token;
    if (msg_get_u8(m, &mode) < 0 || msg_get_str(m, g->sandbox, sizeof g->sandbox) < 0 ||
        msg_get_slice(m, 32, &tag) < 0 || msg_get_slice(m, 32, &token) < 0 || tag.n != 32 ||
        mode < GATE_LOCAL || mode > GATE_PORTER)
        return -1;
    g->mode = mode;
    if (g->mode == GATE_LOCAL && g->guide == NULL && (g->guide = guide_new()) == NULL)
        return -1;
    g->tag = placeholder_key_new((const unsigned char *)tag.p);
    if (g->tag == NULL || RAND_bytes(g->metadata_key, sizeof g->metadata_key) != 1)
        return -1;
    if (token.n == TOKEN_KEY)
        g->token_public = token_public_key((const unsigned char *)token.p, NULL);
    return g->mode == GATE_TOKEN && g->token_public == NULL ? -1 : 0;
}

static int read_policies(struct gate *g, struct msg *m)
{
    uint32_t n;
    if (msg_get_u32(m, &n) < 0 || n > GATE_ROUTES_MAX)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        struct policy_message told;
        if (policy_message_get(m, &told) < 0)
            return -1;
        struct route *r = make_route(g, told.name);
        if (r == NULL) {
            close(told.fd);
            return -1;
        }
        if (set_policy(r, &told) < 0)
            return -1;
    }
    return 0;
}

static int read_placeholders(struct gate *g, struct msg *m)
{
    uint32_t n;
    if (msg_get_u32(m, &n) < 0 || n > GATE_PLACEHOLDERS_MAX)
        return -1;
    for (size_t i = 0; i < g->n_placeholders; i++) {
        free(g->placeholders[i].text);
        free(g->placeholders[i].secret);
    }
    g->n_placeholders = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct slice text, secret;
        if (msg_get_slice(m, 512, &text) < 0 || msg_get_slice(m, 128, &secret) < 0)
            return -1;
        struct placeholder_entry *e = &g->placeholders[g->n_placeholders];
        e->text = slice_dup(text);
        e->secret = slice_dup(secret);
        if (e->text == NULL || e->secret == NULL)
            return -1;
        g->n_placeholders++;
    }
    return 0;
}

static int read_names(struct gate *g, struct msg *m)
{
    uint32_t n;
    if (msg_get_u32(m, &n) < 0)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        char host[HOST_TEXT_MAX];
        uint32_t index;
        if (msg_get_str(m, host, sizeof host) < 0 || msg_get_u32(m, &index) < 0)
            return -1;
        gate_names_put(g->names, host, index);
    }
    return 0;
}

static int read_listeners(struct gate_process *p, struct msg *m)
{
    uint32_t n;
    if (msg_get_u32(m, &n) < 0 || n > LISTENERS_MAX)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t kind;
        uint32_t port;
        char name[HOST_TEXT_MAX];
        int fd;
        if (msg_get_u8(m, &kind) < 0 || msg_get_u32(m, &port) < 0 ||
            msg_get_str(m, name, sizeof name) < 0 || msg_get_fd(m, &fd) < 0)
            return -1;
        if (add_listener(p, kind, name, fd) < 0)
            return -1;
    }
    return msg_end(m);
}

static void die(const char *why)
{
    proc_log("%s", why);
    exit(1);
}

static void try_bind(struct gate_process *p)
{
    struct gate *g = &p->gate;
    if (!p->bind_waits || !journal_ready(g->journal))
        return;
    p->bind_waits = false;
    if (read_listeners(p, &p->bind) < 0)
        die("bad W_BIND");
    msg_done(&p->bind);
    p->bound = true;
    struct msg m;
    msg_init(&m, W_BOUND);
    ipc_send(g->parent, &m);
}

/* Only the listeners wait for the journal: what comes meanwhile of policies and placeholders is
 * newer than what is in here. */
static int on_bind(struct gate_process *p, struct msg *m)
{
    struct gate *g = &p->gate;
    if (p->bound || p->bind_waits)
        die("bound twice");
    p->bind = *m;
    m->nfds = m->next_fd = 0; /* moved */
    buf_init_wiped(&m->body, IPC_MSG_MAX);
    if (read_keys(g, &p->bind) < 0 || read_policies(g, &p->bind) < 0 ||
        read_placeholders(g, &p->bind) < 0 || read_names(g, &p->bind) < 0)
        die("bad W_BIND");
    p->bind_waits = true;
    try_bind(p);
    return 0;
}

static int on_policy(struct gate_process *p, struct msg *m)
{
    struct policy_message told;
    if (policy_message_get(m, &told) < 0)
        return -1;
    int end = msg_end(m);
    struct route *r = end == 0 ? gate_route(&p->gate, told.name) : NULL;
    if (r)
        return set_policy(r, &told);
    close(told.fd);
    return end;
}

static int on_trace(struct gate *g, struct msg *m)
{
    uint32_t seconds;
    if (msg_get_str(m, g->trace.sandbox, sizeof g->trace.sandbox) < 0 ||
        msg_get_u64(m, &g->trace.session) < 0 || msg_get_u32(m, &seconds) < 0 || msg_end(m) < 0)
        return -1;
    g->trace.until = meter_now() + (uint64_t)seconds * 1000000;
    return 0;
}

struct trace gate_trace(struct gate *g, const struct identity *who, uint64_t begun)
{
    if (g->trace.session == 0)
        return trace_begin(0, begun);
    if (begun >= g->trace.until) /* whoever asked has not said that it is over */
        g->trace.session = 0;
    bool its = strcmp(g->trace.sandbox, g->mode == GATE_LOCAL ? g->sandbox : who->sandbox) == 0;
    return trace_begin(its ? g->trace.session : 0, begun);
}

static int on_revoked(struct gate *g, struct msg *m)
{
    if (revoked_take(&g->revoked, m, (uint64_t)time(NULL)) < 0)
        return -1;
    session_drop_revoked(g);
    return 0;
}

static int on_revoked_until(struct gate *g, struct msg *m)
{
    if (revoked_take_until(&g->revoked, m) < 0)
        return -1;
    session_drop_revoked(g);
    return 0;
}

/* Before the listeners, and again at a reload. What does not read leaves the old in place. */
static int on_forwarded(struct gate *g, struct msg *m)
{
    struct slice json;
    struct err err = {0};
    if (msg_get_slice(m, OIDC_SETTINGS_MAX, &json) < 0)
        return -1;
    struct oidc *o = oidc_new(json, &err);
    if (o) {
        oidc_free(g->oidc);
        g->oidc = o;
    } else {
        proc_log("forwarded: %s", err.text);
    }
    return msg_end(m);
}

static int on_drain(struct gate_process *p, struct msg *m)
{
    if (msg_end(m) < 0)
        return -1;
    for (size_t i = 0; i < p->n_listeners; i++)
        listener_free(p->listeners[i]);
    p->n_listeners = 0;
    porter_free(p->porter);
    p->porter = NULL;
    p->gate.draining = true;
    session_drain_all(&p->gate);
    if (LIST_EMPTY(&p->gate.sessions))
        event_base_loopbreak(p->gate.base);
    return 0;
}

/* ---- start ---- */

static void start_gate(struct gate *g, int roots_fd)
{
    struct err err = {0};
    const struct limits *l = &g->limits;
    int r = origin_env_init(&g->origin, g->base, l, l->pool, l->pool_idle_seconds);
    if (r == 0 && (r = origin_env_trust(&g->origin, roots_fd, &err)) == 0)
        g->mint = mint_client_new(g->base, l->mints, LEAF_CACHE, &err);
    g->server_tls = io_tls_server_ctx(false);
    g->port_tls = io_tls_server_ctx(false);
    g->look_tls = io_tls_server_ctx(false);
    g->names = gate_names_new(g);
    g->previews = preview_sessions_new(g);
    g->inside = dial_client_new(g->base, l->dial_seconds);
    g->refusal_counters = refusal_counters_new(g->base, REFUSAL_COUNTERS_SECONDS, on_counted, g);
    g->outside = refusal_counters_new(g->base, REFUSAL_COUNTERS_OUTSIDE, on_counted_outside, g);
    if (r < 0 || !g->names || !g->previews || !g->inside || !g->refusal_counters || !g->outside ||
        !g->mint || !g->server_tls || !g->port_tls || !g->look_tls)
        die(err.text[0] ? err.text : "out of memory");
    session_tls_setup(g->server_tls);
    tls_sessions_setup(g->origin.tls);
    session_port_setup(g->port_tls);
    session_raw_setup(g->look_tls);
}

/* Whatever a gate says while it starts, it must not be able to end the others: it does not say that
 * it failed (proxy/parent/parent_message.c). */
static int gate_load(void *self, struct msg *m, struct msg *ready UNUSED, struct err *err UNUSED)
{
    struct gate_process *p = self;
    uint8_t synced;
    int fd;
    if (limits_get(m, &p->gate.limits) < 0 || msg_get_u8(m, &synced) < 0 ||
        msg_get_fd(m, &fd) < 0 || msg_end(m) < 0)
        return -1;
    p->gate.journal = journal_new(p->gate.base, synced);
    p->gate.inspected =
        (struct quota){.total = BODY_INSPECTION_TOTAL, .each = BODY_INSPECTION_TOTAL};
    if (p->gate.journal == NULL)
        die("out of memory");
    journal_on_ready(p->gate.journal, on_journal, p);
    journal_lost_to(p->gate.journal, p->gate.parent);
    start_gate(&p->gate, fd);
    mint_client_lost_to(p->gate.mint, p->gate.parent);
    dial_client_lost_to(p->gate.inside, p->gate.parent);
    return 0;
}

static int gate_confine(void *self UNUSED, struct err *err)
{
    if (proc_confine(ROLE_GATE, err) < 0)
        die(err->text);
    return 0;
}

static const struct role_start role_steps = {.load = gate_load, .confine = gate_confine};

static int on_control(struct ipc *ch, struct msg *m, void *arg)
{
    struct gate_process *p = arg;
    if (m->type == W_INIT && p->gate.mint == NULL)
        return role_start(&role_steps, p, p->gate.parent, m);
    if (p->gate.mint == NULL)
        return -1;
    switch (m->type) {
    case W_PEER:
        return on_peer(p, m);
    case W_BIND:
        return on_bind(p, m);
    case W_POLICY:
        return on_policy(p, m);
    case W_REVOKED:
        return on_revoked(&p->gate, m);
    case W_REVOKED_UNTIL:
        return on_revoked_until(&p->gate, m);
    case W_REVOKED_TAKEN:
        return revoked_taken(ch, m);
    case W_TRACE:
        return on_trace(&p->gate, m);
    case W_FORWARDED:
        return on_forwarded(&p->gate, m);
    case W_DRAIN:
        return on_drain(p, m);
    case W_PLACEHOLDERS:
        return read_placeholders(&p->gate, m) < 0 ? -1 : msg_end(m);
    default:
        return -1;
    }
}

static void on_parent_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    struct gate_process *p = arg;
    event_base_loopbreak(p->gate.base);
}

static struct ipc *gate_open(void *self, struct event_base *base, int control_fd,
                             struct err *err UNUSED)
{
    struct gate_process *p = self;
    p->gate.base = base;
    p->gate.parent = ipc_new(base, control_fd, on_control, on_parent_closed, p);
    return p->gate.parent;
}

static int gate_leave(void *self, struct event_base *base UNUSED)
{
    struct gate_process *p = self;
    struct gate *g = &p->gate;
    journal_leave(g->journal);
    for (size_t i = 0; i < p->n_listeners; i++)
        listener_free(p->listeners[i]);
    porter_free(p->porter);
    dns_server_free(p->dns);
    nflog_free(p->nflog);
    refusal_counters_free(g->refusal_counters);
    refusal_counters_free(g->outside);
    revoked_free(g->revoked);
    guide_free(g->guide);
    gate_names_free(g->names);
    preview_sessions_free(g->previews);
    dial_client_free(g->inside);
    ipc_free(g->controller);
    ipc_free(g->parent);
    return 0;
}

int gate_main(void);

int gate_main(void)
{
    static const struct role_life life = {.role = ROLE_GATE,
                                          .first = crypto_text_later,
                                          .counts = true,
                                          .traces = true,
                                          .open = gate_open,
                                          .leave = gate_leave};
    static struct gate_process process;
    return role_run(&life, &process);
}
