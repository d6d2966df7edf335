/* Channels between roles. A wire is declared once; when a role is started again, all its wires are
 * made anew and both ends are told. */
#include "parent.h"

#include "mint_names.h"
#include "peer.h"
#include "secret_list.h"
#include "wire.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

_Static_assert((int)CONFIG_SECRETS_MAX == (int)SECRET_LIST_MAX, "a policy may name every secret");

/* What the vault may give to the far end: to the dialer the upstream proxy's password alone,
 * to the fleet's role the login at its database. */
static void put_secret_list(struct parent *p, struct buf *out, const struct wire *w)
{
    size_t n;
    const struct config_proxy *proxy = config_upstream_proxy(p->config);
    const char *own = proxy ? proxy->password : NULL;
    const char *const *names = config_policy_secrets(p->config, w->policy, &n);
    if (broker_of(w->a->role))
        names =
            config_policy_broker_secrets(p->config, w->policy, broker_of(w->a->role)->scheme, &n);
    if (w->a == p->dialer) {
        names = &own;
        n = own ? 1 : 0;
    }
    if (w->a == p->fleet) {
        names = &config_fleet(p->config)->login;
        n = 1;
    }
    struct msg m; /* borrowed for its encoding */
    msg_init(&m, 0);
    msg_put_u32(&m, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        msg_put_str(&m, names[i]);
    if (buf_append(out, buf_data(&m.body), buf_len(&m.body)) < 0)
        buf_clear(out);
    msg_done(&m);
}

/* Which names the signer mints for the far end, a gate or the controller (ca/mint_names.h). */
static void put_mint_right(struct parent *p, struct buf *out, const struct wire *w)
{
    const struct sandbox *s = w->a->sandbox;
    const struct config_listen *api = config_api(p->config);
    enum mint_scope scope = w->sandbox[0]  ? MINT_SANDBOX
                            : s == NULL    ? MINT_OWN
                            : w->policy[0] ? MINT_POLICY
                                           : MINT_POLICIES;
    const char *own = w->a == p->controller && api ? api->name
                      : s && s->n_listeners        ? s->listeners[0].name
                                                   : "";
    struct msg m; /* borrowed for its encoding */
    msg_init(&m, 0);
    msg_put_u8(&m, (uint8_t)scope);
    msg_put_u32(&m, own[0] && scope != MINT_SANDBOX);
    if (own[0] && scope != MINT_SANDBOX)
        msg_put_str(&m, own);
    if (buf_append(out, buf_data(&m.body), buf_len(&m.body)) < 0)
        buf_clear(out);
    msg_done(&m);
}

/* Before the channel that they are for. */
static void push_policies(struct parent *p, struct child *to, const struct wire *w)
{
    if (to->role == ROLE_DIALER && w->policy[0])
        parent_push_policy(to, w->policy);
    if (to->role != ROLE_SIGNER || w->sandbox[0] || w->a->sandbox == NULL)
        return;
    if (w->policy[0])
        parent_push_policy(to, w->policy);
    for (size_t i = 0; w->policy[0] == 0 && i < config_policies(p->config); i++)
        parent_push_policy(to, config_policy_name(p->config, i));
}

/* What the receiver is told beside the channel. */
static void extra_for(struct parent *p, const struct child *to, const struct wire *w,
                      struct buf *out)
{
    int r = 0;
    if (to->role == ROLE_SIGNER) {
        put_mint_right(p, out, w);
    } else if (to->role == ROLE_VAULT) {
        if (strcmp(w->policy, PEER_TOKENS) != 0)
            put_secret_list(p, out, w);
    } else if ((to->role == ROLE_INJECTOR || to->role == ROLE_DIALER) && w->token) {
        r = buf_append_str(out, "token");
    }
    if (r < 0)
        proc_log("there is no room for what the %s is told", role_name(to->role));
}

static void tell(struct parent *p, struct child *to, const struct child *far, const struct wire *w,
                 int fd)
{
    struct msg m;
    struct buf extra;
    buf_init(&extra, IPC_MSG_MAX - 1024);
    push_policies(p, to, w);
    extra_for(p, to, w, &extra);
    struct peer told = {.kind = far->role,
                        .channel = w->channel,
                        .wire = w->number,
                        .generation = p->generation,
                        .extra = buf_slice(&extra),
                        .fd = fd};
    snprintf(told.sandbox, sizeof told.sandbox, "%s", w->sandbox);
    snprintf(told.policy, sizeof told.policy, "%s", w->policy);
    msg_init(&m, W_PEER);
    peer_put(&m, &told);
    parent_tell(to, &m);
    buf_free(&extra);
}

static bool there(const struct child *c)
{
    return c->ch && (c->state == CHILD_INITED || c->state == CHILD_READY);
}

/* It is readable, too, when whoever was to ask has ended without a question. */
static void on_asked(evutil_socket_t fd, short what UNUSED, void *arg)
{
    int waiting;
    if (ioctl(fd, FIONREAD, &waiting) < 0 || waiting > 0)
        parent_wake(arg);
}

/* Its end; -1: there is none. */
static int take_asleep(struct wire *w)
{
    int fd = w->asked ? event_get_fd(w->asked) : -1;
    if (w->asked)
        event_free(w->asked);
    w->asked = NULL;
    return fd;
}

static void drop_asleep(struct wire *w)
{
    int fd = take_asleep(w);
    if (fd >= 0)
        close(fd);
}

/* Whoever was to ask has ended: what waits for the other is a channel to nobody. */
void parent_wires_dead(struct child *c)
{
    struct wire *w;
    TAILQ_FOREACH(w, &c->parent->wires, link)
    if (w->a == c)
        drop_asleep(w);
}

/* a may ask, and gets its end now; the other is b's once it is awake. We read nothing of it. */
static void connect_asleep(struct parent *p, struct wire *w, int fds[2])
{
    w->asked = event_new(p->base, fds[1], EV_READ, on_asked, w->b);
    if (w->asked == NULL || event_add(w->asked, NULL) < 0) {
        proc_log("there is no room for a channel of the %s", role_name(w->b->role));
        close(fds[0]);
        if (w->asked == NULL)
            close(fds[1]);
        drop_asleep(w);
        return;
    }
    tell(p, w->a, w->b, w, fds[0]);
}

static void connect_wire(struct parent *p, struct wire *w)
{
    int fds[2];
    struct err err = {0};
    bool asleep = w->b->state == CHILD_ASLEEP;
    if (!there(w->a) || !(asleep || there(w->b)))
        return;
    if (!asleep && w->asked && !w->lost) {
        tell(p, w->b, w->a, w, take_asleep(w));
        return;
    }
    if (ipc_pair(fds, &err) < 0) {
        proc_log("%s", err.text);
        return;
    }
    drop_asleep(w);
    w->channel = ++p->next_channel;
    w->lost = false;
    if (asleep) {
        connect_asleep(p, w, fds);
        return;
    }
    tell(p, w->a, w->b, w, fds[0]);
    tell(p, w->b, w->a, w, fds[1]);
}

void parent_wire(struct parent *p, struct child *a, struct child *b, const char *sandbox,
                 const char *policy, bool token)
{
    struct wire *w = a && b ? calloc(1, sizeof *w) : NULL;
    if (w == NULL)
        return;
    w->a = a;
    w->b = b;
    w->token = token;
    w->number = ++p->next_wire;
    snprintf(w->sandbox, sizeof w->sandbox, "%s", sandbox);
    snprintf(w->policy, sizeof w->policy, "%s", policy);
    TAILQ_INSERT_TAIL(&p->wires, w, link);
    connect_wire(p, w);
}

bool parent_is_wired(const struct parent *p, const struct child *a, const struct child *b,
                     const char *policy)
{
    const struct wire *w;
    TAILQ_FOREACH(w, &p->wires, link)
    if (w->a == a && w->b == b && strcmp(w->policy, policy) == 0)
        return true;
    return false;
}

static void wire_policy(struct parent *p, const struct sandbox *s, const char *policy)
{
    struct child *ends[] = {p->dialer, parent_injector(p, policy, s->gate)};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (ends[i] && !parent_is_wired(p, s->gate, ends[i], policy))
            parent_wire(p, s->gate, ends[i], s->id, policy, s->mode == GATE_TOKEN);
}

void parent_wire_policies(struct parent *p, const struct sandbox *s)
{
    if (s->mode == GATE_PORTER)
        return;
    if (s->policy[0]) {
        wire_policy(p, s, s->policy);
        return;
    }
    for (size_t i = 0; i < config_policies(p->config); i++)
        wire_policy(p, s, config_policy_name(p->config, i));
}

/* Its policy's sandboxes can be seen from outside. */
static bool has_previews(const struct parent *p, const struct sandbox *s)
{
    return s->mode == GATE_LOCAL && config_preview(p->config) &&
           config_policy_sandbox(p->config, s->policy)->previews;
}

void parent_wire_gate(struct parent *p, struct sandbox *s)
{
    if (s->mode == GATE_PORTER) {
        parent_wire(p, s->gate, p->logger, "", "", false);
        parent_wire(p, s->gate, p->controller, "", PEER_PORTER, false);
        return;
    }
    if (has_previews(p, s))
        parent_wire(p, s->gate, p->controller, s->id, PEER_INSIDE, false);
    parent_wire(p, s->gate, p->signer, s->id, s->id[0] ? "" : s->policy, false);
    parent_wire(p, s->gate, p->logger, s->id, s->policy, false);
    parent_wire(p, s->gate, p->controller, s->id, "", false);
    parent_wire_policies(p, s);
    parent_wire_brokers(p, s);
}

void parent_wire_secrets(struct child *injector)
{
    struct wire *w;
    TAILQ_FOREACH(w, &injector->parent->wires, link)
    if (w->a == injector && w->b == injector->parent->vault)
        connect_wire(injector->parent, w);
}

void parent_rewire(struct child *c)
{
    struct wire *w;
    TAILQ_FOREACH(w, &c->parent->wires, link)
    if (w->a == c || w->b == c)
        connect_wire(c->parent, w);
}

/* Who lost so many is started again, which closes all that it still holds: a conquered role gathers
 * no more channels than these at the far ends. */
enum { LOST_MAX = 256, LOST_WAIT_MS = 20 };

static void on_lost(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    static const struct timeval again = {0, LOST_WAIT_MS * 1000};
    struct parent *p = arg;
    struct wire *w;
    TAILQ_FOREACH(w, &p->wires, link)
    if (w->lost)
        connect_wire(p, w);
    TAILQ_FOREACH(w, &p->wires, link)
    if (w->lost && there(w->a) && there(w->b)) /* out of descriptors */
        event_add(p->lost_timer, &again);
}

static void rewire_soon(struct parent *p, struct wire *w)
{
    static const struct timeval soon = {0, LOST_WAIT_MS * 1000};
    w->lost = true;
    if (p->lost_timer == NULL)
        p->lost_timer = event_new(p->base, -1, 0, on_lost, p);
    if (p->lost_timer && !event_pending(p->lost_timer, EV_TIMEOUT, NULL))
        event_add(p->lost_timer, &soon);
}

int parent_lost(struct child *c, struct msg *m)
{
    struct wire *w;
    uint32_t channel;
    if (msg_get_u32(m, &channel) < 0 || msg_end(m) < 0)
        return -1;
    TAILQ_FOREACH(w, &c->parent->wires, link)
    if ((w->a == c || w->b == c) && w->channel == channel)
        break;
    if (w == NULL || channel == 0)
        return 0;
    if (++c->lost > LOST_MAX) {
        proc_log("%s loses its channels again and again: it is started anew", c->tag);
        if (c->pid > 0) /* it may have ended with this still unread */
            kill(c->pid, SIGKILL);
        return 0;
    }
    rewire_soon(c->parent, w);
    return 0;
}

int parent_corrupt(struct child *logger, struct msg *m)
{
    struct wire *w;
    uint32_t channel;
    if (logger->role != ROLE_LOGGER || msg_get_u32(m, &channel) < 0 || msg_end(m) < 0)
        return -1;
    TAILQ_FOREACH(w, &logger->parent->wires, link)
    if ((w->a == logger || w->b == logger) && w->channel == channel)
        break;
    struct child *far = w == NULL ? NULL : w->a == logger ? w->b : w->a;
    if (far == NULL || channel == 0 || far->pid <= 0)
        return 0;
    proc_log("%s: what it wrote into its journal is not what it may: it is ended",
             parent_child_name(far));
    kill(far->pid, SIGKILL);
    return 0;
}

void parent_unwire(struct child *c)
{
    struct wire *w, *next;
    for (w = TAILQ_FIRST(&c->parent->wires); w; w = next) {
        next = TAILQ_NEXT(w, link);
        if (w->a != c && w->b != c)
            continue;
        TAILQ_REMOVE(&c->parent->wires, w, link);
        drop_asleep(w);
        free(w);
    }
}
