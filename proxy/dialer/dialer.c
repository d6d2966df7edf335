/* The dialer's main, its channels and their dials: checks what a channel asks for against its
 * policy and token, starts a dial for it and sends the answer. */
#include "dialer_internal.h"

#include "bridge.h"
#include "broker.h"
#include "budget_ledger.h"
#include "crypto_text.h"
#include "journal.h"
#include "landlock.h"
#include "mcp_dial.h"
#include "meter.h"
#include "peer.h"
#include "published.h"
#include "resolve.h"
#include "revoked.h"
#include "role_run.h"
#include "secret_client.h"
#include "token.h"
#include "upstream_map.h"
#include "upstream_proxy.h"
#include "wire.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { GUARD_REFRESH_SECONDS = 30, WATCH_SECONDS = 2, DIALER_UNREAD = 16 * 1024 };

void dialer_tell_operator(struct dialer *d, const char *text)
{
    struct msg m;
    msg_init(&m, W_LOG);
    msg_put_u8(&m, 1);
    msg_put_str(&m, text);
    (void)ipc_send(d->control, &m);
}

/* ---- dials ---- */

/* The rules that an end of this kind serves. */
static unsigned channel_rules(const struct channel *c, const struct authority *a)
{
    bool by_login = c->kind == ROLE_INJECTOR || c->kind == ROLE_FLEET || broker_is_back(c->kind);
    return policy_served(c->policy->policy, a, by_login);
}

static bool ask_allowed(void *arg, const struct authority *a)
{
    const struct channel *c = ((const struct ask *)arg)->channel;
    return (policy_host(c->policy->policy, a) & channel_rules(c, a)) != 0;
}

static bool ask_leads_to(void *arg, const struct authority *a, const struct sockaddr *sa)
{
    const struct channel *c = ((const struct ask *)arg)->channel;
    struct authority at;
    memset(&at, 0, sizeof at);
    /* a v4-mapped one is no IPv4 address to a rule: it comes from an odd AAAA record only */
    if (sa->sa_family == AF_INET6 &&
        IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)sa)->sin6_addr))
        return false;
    return authority_from_sockaddr(&at, SCHEME_HTTPS, sa) == 0 &&
           policy_leads_to(c->policy->policy, a, channel_rules(c, a), &at);
}

static void send_fail(struct channel *c, uint32_t req, const char *code, const char *text)
{
    struct msg m;
    msg_init(&m, W_DIAL_FAIL);
    msg_put_u32(&m, req);
    msg_put_str(&m, code);
    msg_put_str(&m, text);
    (void)ipc_send(c->ipc, &m); /* a channel that cannot take it ends from the loop */
}

static void ask_done(void *arg, int fd, const char *address, const char *code, const char *text)
{
    struct ask *k = arg;
    struct channel *c = k->channel;
    uint32_t req = k->req;
    struct msg m;
    LIST_REMOVE(k, link);
    c->n_asks--;
    free(k);
    if (fd < 0) {
        send_fail(c, req, code, text);
        return;
    }
    msg_init(&m, W_DIALED);
    msg_put_u32(&m, req);
    msg_put_str(&m, address);
    msg_put_fd(&m, fd);
    (void)ipc_send(c->ipc, &m);
}

static void ask_cancel(struct ask *k)
{
    dial_cancel(k->dial);
    LIST_REMOVE(k, link);
    k->channel->n_asks--;
    free(k);
}

static struct ask *ask_find(struct channel *c, uint32_t req)
{
    struct ask *k;
    LIST_FOREACH(k, &c->asks, link)
    if (k->req == req)
        return k;
    return NULL;
}

/* Refuses without a dial; recorded all the same. */
static void refuse(struct channel *c, uint32_t req, const struct authority *a,
                   const struct dial_label *label, const char *code, const char *text)
{
    if (dial_refuse(&c->dialer->means, a, label, code) < 0)
        send_fail(c, req, "audit", "the refusal could not be recorded");
    else
        send_fail(c, req, code, text);
}

/* The host in its canonical form and no other: whoever asks has decided on that form. */
static int take_authority(const struct channel *c, struct authority *a, uint8_t scheme,
                          const char *host, uint32_t port)
{
    const struct broker *b = broker_of(c->kind);
    char bracketed[HOST_TEXT_MAX + 2];
    bool v6 = strchr(host, ':') != NULL;
    unsigned only = b ? (unsigned)b->scheme : c->kind == ROLE_FLEET ? SCHEME_POSTGRES : 0;
    bool fits = only ? scheme == only : scheme == SCHEME_HTTP || scheme == SCHEME_HTTPS;
    if (!fits || port == 0 || port > 65535)
        return -1;
    snprintf(bracketed, sizeof bracketed, v6 ? "[%s]" : "%s", host);
    if (authority_host(a, slice_str(bracketed)) < 0 || strcmp(a->host, host) != 0)
        return -1;
    a->scheme = scheme;
    a->port = (uint16_t)port;
    return 0;
}

static bool id_ok(const char *id)
{
    for (; *id; id++)
        if (!ascii_is_alnum(*id) && *id != '-' && *id != '_' && *id != '.')
            return false;
    return true;
}

/* A token must be good, and of the policy that this channel has. */
static const char *token_refused(const struct channel *c, const char *text,
                                 struct dial_label *label)
{
    struct token t;
    struct err err;
    if (text[0] == 0)
        return c->needs_token ? "a token is needed here" : NULL;
    if (c->dialer->token_key == NULL)
        return "no token is accepted here";
    if (token_verify(c->dialer->token_key, slice_str(text), (uint64_t)time(NULL), &t, &err) < 0)
        return "the token is not valid";
    if (revoked_why(c->dialer->revoked, t.sandbox, t.expiry))
        return "the token is revoked, or it is not known";
    if (strcmp(t.policy, c->policy->name) != 0)
        return "the token is of another policy";
    if (label->sandbox[0] == 0) /* else the parent has said so, and that is what counts */
        snprintf(label->sandbox, sizeof label->sandbox, "%s", t.sandbox);
    return NULL;
}

/* Whose MCP servers it may reach: the parent or a token says it. Only an injector, which serves
 * several sandboxes, is believed what it says itself. */
static const char *ask_sandbox(const struct channel *c, const struct dial_label *label,
                               const char *owner)
{
    return label->sandbox[0] ? label->sandbox : c->kind == ROLE_INJECTOR ? owner : "";
}

static void ask_start(struct channel *c, uint32_t req, const struct authority *a,
                      const struct dial_label *label, const char *owner)
{
    struct ask *k = calloc(1, sizeof *k);
    struct dial_order order = {.authority = *a,
                               .label = *label,
                               .allowed = ask_allowed,
                               .leads_to = ask_leads_to,
                               .done = ask_done,
                               .arg = k};
    snprintf(order.payer, sizeof order.payer, "%u|%s", c->wire, owner);
    snprintf(order.sandbox, sizeof order.sandbox, "%s", ask_sandbox(c, label, owner));
    struct dial *dial = k ? dial_new(&c->dialer->means, &order) : NULL;
    if (dial == NULL) {
        free(k);
        refuse(c, req, a, label, "overload", "out of memory");
        return;
    }
    k->channel = c;
    k->req = req;
    k->dial = dial;
    LIST_INSERT_HEAD(&c->asks, k, link);
    c->n_asks++;
    if (c->tracing.trace.session && c->tracing.req == req)
        dial_trace(dial, &c->tracing.trace);
    c->tracing.trace.session = 0;
    dial_run(dial); /* may end, and free k, at once */
}

static int on_dial(struct channel *c, struct msg *m)
{
    uint32_t req, port;
    uint8_t scheme;
    char host[HOST_TEXT_MAX], token[TOKEN_TEXT_MAX], owner[DIAL_NAME_MAX];
    struct dial_label label;
    struct authority a;
    (void)msg_get_u32(m, &req);
    (void)msg_get_u8(m, &scheme);
    (void)msg_get_str(m, host, sizeof host);
    (void)msg_get_u32(m, &port);
    (void)msg_get_str(m, label.request, sizeof label.request);
    (void)msg_get_str(m, token, sizeof token);
    (void)msg_get_str(m, owner, sizeof owner);
    if (msg_end(m) < 0 || !id_ok(label.request) || take_authority(c, &a, scheme, host, port) < 0 ||
        ask_find(c, req))
        return -1;
    /* whoever leaves its answers lying holds our descriptors */
    if (ipc_queued(c->ipc) > DIALER_UNREAD)
        return -1;
    memcpy(label.sandbox, c->sandbox, sizeof label.sandbox);
    memcpy(label.policy, c->policy->name, sizeof label.policy);
    const char *why = token_refused(c, token, &label);
    if (why)
        refuse(c, req, &a, &label, "denied", why);
    else if (c->n_asks >= (c->kind == ROLE_GATE && c->sandbox[0] && !c->needs_token
                               ? DIALER_CHANNEL_DIALS
                               : DIALER_SHARED_DIALS))
        refuse(c, req, &a, &label, "overload", "too many connections being made");
    else
        ask_start(c, req, &a, &label, owner);
    return 0;
}

/* Of the dial that is asked for next. */
static int on_tracing(struct channel *c, struct msg *m)
{
    return trace_get(m, &c->tracing);
}

static int on_dial_cancel(struct channel *c, struct msg *m)
{
    uint32_t req;
    (void)msg_get_u32(m, &req);
    if (msg_end(m) < 0)
        return -1;
    struct ask *k = ask_find(c, req);
    if (k) /* else it has ended meanwhile */
        ask_cancel(k);
    return 0;
}

/* ---- channels ---- */

static void channel_free(struct channel *c)
{
    struct ask *k;
    while ((k = LIST_FIRST(&c->asks)) != NULL)
        ask_cancel(k);
    dialer_fleet_forget(c);
    dialer_leases_free(c);
    LIST_REMOVE(c, link);
    c->dialer->n_channels--;
    ipc_free(c->ipc);
    free(c);
}

static int on_channel_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    switch (m->type) {
    case W_DIAL:
        return on_dial(arg, m);
    case W_TRACING:
        return on_tracing(arg, m);
    case W_DIAL_CANCEL:
        return on_dial_cancel(arg, m);
    case W_BUDGET_ASK:
        return dialer_budget_ask(arg, m);
    case W_BUDGET_SETTLE:
        return dialer_budget_settle(arg, m);
    case W_BUDGET_BACK:
        return dialer_budget_back(arg, m);
    default:
        return -1;
    }
}

static void on_channel_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    channel_free(arg);
}

/* fd is the peer's to close until it is in a channel. */
static int channel_new(struct dialer *d, const struct peer *p)
{
    struct named_policy *policy = dialer_policy_find(d, p->policy);
    struct channel *c = NULL;
    if (policy && d->n_channels < DIALER_CHANNELS)
        c = calloc(1, sizeof *c);
    if (c == NULL) { /* without a policy nothing is dialled: the far end sees its channel closed */
        close(p->fd);
        dialer_tell_operator(d, "no policy or no room for a channel");
        return 0;
    }
    c->dialer = d;
    c->number = p->channel;
    c->wire = p->wire;
    c->kind = p->kind;
    c->needs_token = slice_eq_str(p->extra, "token");
    c->policy = policy;
    snprintf(c->sandbox, sizeof c->sandbox, "%s", p->sandbox);
    LIST_INIT(&c->asks);
    LIST_INIT(&c->leases);
    c->ipc = ipc_new(d->base, p->fd, on_channel_message, on_channel_closed, c);
    if (c->ipc == NULL) {
        free(c);
        dialer_tell_operator(d, "a channel could not be made");
        return 0;
    }
    LIST_INSERT_HEAD(&d->channels, c, link);
    d->n_channels++;
    return 0;
}

static int on_peer(struct dialer *d, struct msg *m)
{
    struct peer p;
    if (peer_get(m, &p) < 0)
        return -1;
    if (p.kind == ROLE_GATE || p.kind == ROLE_INJECTOR || broker_is_back(p.kind) ||
        (p.kind == ROLE_VAULT && strcmp(p.policy, PEER_TOKENS) == 0) ||
        (p.kind == ROLE_EXPORTER && strcmp(p.policy, PEER_EXPORTER) == 0) ||
        (p.kind == ROLE_FLEET && strcmp(p.policy, PEER_FLEET) == 0))
        return channel_new(d, &p);
    if (p.kind == ROLE_FLEET) {
        dialer_fleet_attach(d, p.fd);
        return 0;
    }
    if (p.kind == ROLE_VAULT && d->means.secrets) {
        secret_client_attach(d->means.secrets, p.fd, p.channel);
        return 0;
    }
    if (p.kind != ROLE_LOGGER) {
        close(p.fd);
        return -1;
    }
    journal_attach(d->means.journal, p.fd, p.channel);
    return 0;
}

static int on_peer_gone(struct dialer *d, struct msg *m)
{
    uint32_t number;
    struct channel *c;
    (void)msg_get_u32(m, &number);
    if (msg_end(m) < 0)
        return -1;
    LIST_FOREACH(c, &d->channels, link)
    if (c->number == number) {
        channel_free(c);
        break;
    }
    return 0;
}

/* Ports that lead into sandboxes: no rule leads there. */
static int on_published(struct dialer *d, struct msg *m)
{
    static uint16_t ports[PUBLISHED_MAX];
    uint32_t n, port;
    if (msg_get_u32(m, &n) < 0 || n > ARRAY_LEN(ports))
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        if (msg_get_u32(m, &port) < 0 || port > 65535)
            return -1;
        ports[i] = (uint16_t)port;
    }
    if (msg_end(m) < 0)
        return -1;
    address_guard_published(d->means.guard, ports, n);
    return 0;
}

/* ---- start ---- */

static void on_refresh(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct dialer *d = arg;
    struct err err;
    if (address_guard_refresh(d->means.guard, &err) < 0)
        dialer_tell_operator(d, err.text);
}

static bool is_idle(const struct dialer *d)
{
    const struct channel *c;
    LIST_FOREACH(c, &d->channels, link)
    if (c->n_asks > 0)
        return false;
    return d->means.bridges == NULL || bridges_count(d->means.bridges) == 0;
}

static void end(struct dialer *d)
{
    ipc_flush(d->control, 100);
    if (d->state != DIALER_FAILED)
        d->state = DIALER_OVER;
    if (d->options.ended)
        d->options.ended(d->options.arg);
}

/* The parent starts us again, and we read what is there then. */
static void on_watch(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct dialer *d = arg;
    if (!host_files_replaced(&d->host) || !is_idle(d))
        return;
    dialer_tell_operator(d, "how this host resolves names has changed: starting again to read it");
    end(d);
}

static int dialer_confine(void *self, struct err *err)
{
    struct dialer *d = self;
    static const struct timeval often = {WATCH_SECONDS, 0};
    struct landlock_place places[HOST_FILES_MAX];
    bool held = landlock_abi() > 0;
    if (d->options.confine == NULL)
        return 0;
    d->watch = event_new(d->base, -1, EV_PERSIST, on_watch, d);
    if (d->watch == NULL || (held && event_add(d->watch, &often) < 0))
        return err_set(err, ERR_INTERNAL, "out of memory");
    size_t n = host_files_open(&d->host, places);
    int r = d->options.confine(places, n, err);
    for (size_t i = 0; i < n; i++)
        close(places[i].fd);
    return r;
}

static int init_all(struct dialer *d, struct msg *m, struct err *err)
{
    static const struct timeval refresh = {GUARD_REFRESH_SECONDS, 0};
    struct resolver_options where = {.servers = d->options.servers};
    uint32_t seconds, hold;
    uint8_t synced;
    int roots_fd = -1, book_fd = -1;
    struct slice key;
    if (dial_means_get(&d->means, m, err) < 0)
        return -1;
    (void)msg_get_u32(m, &seconds);
    (void)msg_get_slice(m, TOKEN_KEY, &key);
    (void)msg_get_u8(m, &synced);
    (void)msg_get_u32(m, &hold);
    if (d->means.proxy && d->means.proxy->at.scheme == SCHEME_HTTPS)
        (void)msg_get_fd(m, &roots_fd);
    (void)msg_get_fd(m, &book_fd);
    if (book_fd >= 0) {
        d->book = budget_ledger_open(book_fd, err);
        close(book_fd);
        if (d->book == NULL)
            return -1;
    }
    int got = msg_end(m) < 0 ? -1 : dial_means_proxy(&d->means, roots_fd, err);
    if (roots_fd >= 0)
        close(roots_fd);
    if (got < 0 && err->text[0])
        return -1;
    if (got < 0 || synced > 1 || seconds == 0 || seconds > 3600 || hold > 86400 ||
        (hold && d->book == NULL) || (key.n != 0 && key.n != TOKEN_KEY))
        return err_set(err, ERR_PARSE, "the dialer's first message is malformed");
    if (key.n && !(d->token_key = token_public_key((const unsigned char *)key.p, err)))
        return -1;
    d->means.seconds = seconds;
    d->means.resolver = resolver_new(d->base, &where, err);
    if (d->means.resolver == NULL || address_guard_refresh(d->means.guard, err) < 0)
        return -1;
    if (hold && (d->fleet = dialer_fleet_new(d, hold)) == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    d->means.journal = journal_new(d->base, synced != 0);
    d->refresh = event_new(d->base, -1, EV_PERSIST, on_refresh, d);
    if (!d->means.journal || !d->refresh || event_add(d->refresh, &refresh) < 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    journal_lost_to(d->means.journal, d->control);
    return 0;
}

static int dialer_load(void *self, struct msg *m, struct msg *ready UNUSED, struct err *err)
{
    struct dialer *d = self;
    d->state = DIALER_FAILED; /* until it is ready */
    return init_all(d, m, err);
}

static void dialer_begun(void *self)
{
    ((struct dialer *)self)->state = DIALER_READY;
}

static const struct role_start role_steps = {
    .load = dialer_load, .confine = dialer_confine, .begun = dialer_begun};

static int on_control(struct ipc *ch, struct msg *m, void *arg)
{
    struct dialer *d = arg;
    if (d->state == DIALER_NEW)
        return m->type == W_INIT ? role_start(&role_steps, d, d->control, m) : -1;
    if (d->state != DIALER_READY)
        return -1;
    switch (m->type) {
    case W_PEER:
        return on_peer(d, m);
    case W_PEER_GONE:
        return on_peer_gone(d, m);
    case W_REVOKED:
        return revoked_get(d->revoked, m, (uint64_t)time(NULL));
    case W_REVOKED_UNTIL:
        return revoked_take_until(&d->revoked, m);
    case W_REVOKED_TAKEN:
        return revoked_taken(ch, m);
    case W_POLICY:
        return dialer_policy_message(d, m);
    case W_LABELS:
        return dialer_labels_message(d, m);
    case W_SANDBOX_GONE:
        return dialer_labels_gone(d, m);
    case W_MCP_DIALED:
        return mcp_dials_message(d->means.mcp, m);
    case W_PORT_OWN:
        return on_published(d, m);
    default:
        return -1;
    }
}

static void on_control_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    dialer_fleet_leave(arg);
    end(arg);
}

struct dialer *dialer_new(struct event_base *base, int control_fd, const struct dialer_options *o)
{
    struct dialer *d = calloc(1, sizeof *d);
    if (d == NULL) {
        close(control_fd);
        return NULL;
    }
    LIST_INIT(&d->channels);
    LIST_INIT(&d->policies);
    d->base = base;
    d->options = *o;
    d->means.base = base;
    d->means.guard = address_guard_new();
    d->means.map = upstream_map_new();
    d->revoked = revoked_new();
    d->control = ipc_new(base, control_fd, on_control, on_control_closed, d);
    d->means.mcp = d->control ? mcp_dials_new(d->control) : NULL;
    if (!d->means.guard || !d->means.map || !d->revoked || !d->control || !d->means.mcp) {
        dialer_free(d);
        return NULL;
    }
    return d;
}

void dialer_free(struct dialer *d)
{
    struct channel *c;
    if (d == NULL)
        return;
    while ((c = LIST_FIRST(&d->channels)) != NULL)
        channel_free(c);
    dialer_policies_free(d);
    dialer_labels_free(d);
    revoked_free(d->revoked);
    dialer_fleet_free(d->fleet);
    budget_ledger_close(d->book);
    if (d->refresh)
        event_free(d->refresh);
    if (d->watch)
        event_free(d->watch);
    if (d->means.journal)
        journal_free(d->means.journal);
    dial_means_free(&d->means);
    mcp_dials_free(d->means.mcp);
    EVP_PKEY_free(d->token_key);
    ipc_free(d->control);
    free(d);
}

static int confine(const struct landlock_place *places, size_t n, struct err *err)
{
    return proc_confine_to(ROLE_DIALER, places, n, err);
}

static void on_ended(void *arg)
{
    event_base_loopbreak(arg);
}

static struct ipc *dialer_open(void *self, struct event_base *base, int control_fd,
                               struct err *err UNUSED)
{
    struct dialer_options o = {.confine = confine, .ended = on_ended, .arg = base};
    struct dialer *d = *(struct dialer **)self = dialer_new(base, control_fd, &o);
    return d ? d->control : NULL;
}

static int dialer_leave(void *self, struct event_base *base)
{
    struct dialer *d = *(struct dialer **)self;
    int failed = d->state == DIALER_FAILED;
    dialer_free(d);
    event_base_free(base);
    return failed;
}

int dialer_main(void)
{
    static const struct role_life life = {.role = ROLE_DIALER,
                                          .first = crypto_text_later,
                                          .counts = true,
                                          .traces = true,
                                          .open = dialer_open,
                                          .leave = dialer_leave};
    struct dialer *d = NULL;
    return role_run(&life, &d);
}
