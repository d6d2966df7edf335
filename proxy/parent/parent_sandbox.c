/* Sandboxes and listeners as the parent sees them: which gate is bound to what. */
#include "parent.h"

#include "home_logins.h"
#include "policy.h"
#include "sandbox_labels.h"
#include "tcp_listen.h"
#include "wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of local sandboxes alone: what else gates are bound to has no name that a role could say. */
static bool is_local(const char *id)
{
    return strncmp(id, "sb-", 3) == 0 && id[3] != '\0';
}

struct sandbox *parent_sandbox_find(const struct parent *p, const char *id)
{
    struct sandbox *s;
    TAILQ_FOREACH(s, &p->sandboxes, link)
    if (s->mode == GATE_LOCAL && strcmp(s->id, id) == 0)
        return s;
    return NULL;
}

static bool needs_injector(const struct parent *p, const char *policy)
{
    size_t n = 0;
    const struct policy *compiled = config_policy(p->config, policy);
    config_policy_secrets(p->config, policy, &n);
    return n > 0 || (compiled && policy_needs_injector(compiled));
}

static size_t gates_of(const struct parent *p, const struct child *injector)
{
    const struct wire *w;
    size_t n = 0;
    TAILQ_FOREACH(w, &p->wires, link)
    n += w->b == injector && w->a->role == ROLE_GATE;
    return n;
}

/* That which the gate has, for as long as it lives. */
static struct child *injector_had(const struct parent *p, const struct child *gate,
                                  const char *policy)
{
    const struct wire *w;
    TAILQ_FOREACH(w, &p->wires, link)
    if (w->a == gate && w->b->role == ROLE_INJECTOR && strcmp(w->policy, policy) == 0)
        return w->b;
    return NULL;
}

size_t parent_injectors(const struct parent *p, const char *policy)
{
    const struct child *c;
    size_t n = 0;
    TAILQ_FOREACH(c, &p->children, link)
    n += c->role == ROLE_INJECTOR && strcmp(c->policy, policy) == 0 && c->state != CHILD_RETIRED;
    return n;
}

/* The one with the fewest gates. NULL: there is none, or each has some and there may be more. */
static struct child *injector_least(struct parent *p, const char *policy)
{
    struct child *c, *least = NULL;
    size_t n, fewest = 0;
    TAILQ_FOREACH(c, &p->children, link)
    {
        if (c->role != ROLE_INJECTOR || strcmp(c->policy, policy) != 0 || c->state == CHILD_RETIRED)
            continue;
        n = gates_of(p, c);
        if (least == NULL || n < fewest) {
            least = c;
            fewest = n;
        }
    }
    bool more = parent_injectors(p, policy) < config_policy_injectors(p->config, policy);
    return fewest > 0 && more ? NULL : least;
}

struct child *parent_injector(struct parent *p, const char *policy, const struct child *gate)
{
    char tag[80];
    if (!needs_injector(p, policy))
        return NULL;
    struct child *c = gate ? injector_had(p, gate, policy) : NULL;
    if (c == NULL)
        c = injector_least(p, policy);
    if (c)
        return c;
    size_t n = parent_injectors(p, policy);
    if (n == 0)
        snprintf(tag, sizeof tag, "%s", policy);
    else
        snprintf(tag, sizeof tag, "%.55s %zu", policy, n + 1);
    if (p->vault == NULL && (p->vault = parent_start(p, ROLE_VAULT, NULL)) != NULL)
        parent_init_child(p->vault);
    c = p->vault ? parent_start(p, ROLE_INJECTOR, tag) : NULL;
    if (c == NULL)
        return NULL;
    snprintf(c->policy, sizeof c->policy, "%s", policy);
    parent_init_child(c);
    parent_wire(p, c, p->vault, "", policy, false);
    parent_wire(p, c, p->dialer, "", policy, false);
    parent_wire(p, c, p->logger, "", policy, false);
    parent_wire(p, c, p->controller, "", policy, false);
    return c;
}

/* A local one, of which nobody knows yet. NULL: no memory. */
static struct sandbox *sandbox_new(const char *id)
{
    struct sandbox *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    snprintf(s->id, sizeof s->id, "%s", id);
    s->mode = GATE_LOCAL;
    return s;
}

static void clear_placeholders(struct sandbox *s)
{
    for (size_t i = 0; i < s->n_placeholders; i++) {
        free(s->placeholders[i].text);
        free(s->placeholders[i].secret);
    }
    s->n_placeholders = 0;
}

static int read_placeholders(struct sandbox *s, struct msg *m)
{
    uint32_t n;
    if (msg_get_u32(m, &n) < 0 || n > SANDBOX_PLACEHOLDERS_MAX)
        return -1;
    clear_placeholders(s);
    for (uint32_t i = 0; i < n; i++) {
        struct slice text, secret;
        if (msg_get_slice(m, 512, &text) < 0 || msg_get_slice(m, 128, &secret) < 0)
            return -1;
        char *a = slice_dup(text), *b = slice_dup(secret);
        if (a == NULL || b == NULL) {
            free(a);
            free(b);
            return -1;
        }
        s->placeholders[s->n_placeholders].text = a;
        s->placeholders[s->n_placeholders++].secret = b;
    }
    struct slice key;
    if (msg_get_slice(m, sizeof s->key, &key) < 0)
        return -1;
    memcpy(s->key, key.p, key.n);
    s->key_len = key.n;
    s->labels = sandbox_labels_get(m);
    return s->labels ? msg_end(m) : -1;
}

static void put_placeholders(const struct sandbox *s, struct msg *m)
{
    msg_put_u32(m, (uint32_t)s->n_placeholders);
    for (size_t i = 0; i < s->n_placeholders; i++) {
        msg_put_str(m, s->placeholders[i].text);
        msg_put_str(m, s->placeholders[i].secret);
    }
}

/* ---- binding a gate ---- */

static void put_policies(struct parent *p, const struct sandbox *s, struct msg *m)
{
    size_t n = s->mode == GATE_PORTER ? 0 : s->policy[0] ? 1 : config_policies(p->config);
    msg_put_u32(m, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        const char *name = s->policy[0] ? s->policy : config_policy_name(p->config, i);
        parent_put_policy(p, name, m);
    }
}

void parent_bind_gate(struct child *gate)
{
    struct parent *p = gate->parent;
    struct sandbox *s = gate->sandbox;
    struct msg m;
    if (s == NULL || s->n_listeners == 0 || gate->ch == NULL)
        return;
    parent_tell_forwarded(gate);
    msg_init(&m, W_BIND);
    msg_put_u8(&m, s->mode);
    msg_put_str(&m, s->id);
    msg_put_bytes(&m, p->tag_key, sizeof p->tag_key);
    msg_put_bytes(&m, p->token_public, sizeof p->token_public);
    put_policies(p, s, &m);
    put_placeholders(s, &m);
    msg_put_u32(&m, 0); /* names: the controller tells a new gate those that were given out */
    msg_put_u32(&m, (uint32_t)s->n_listeners);
    for (size_t i = 0; i < s->n_listeners; i++) {
        msg_put_u8(&m, s->listeners[i].kind);
        msg_put_u32(&m, s->listeners[i].port);
        msg_put_str(&m, s->listeners[i].name);
        msg_put_fd_dup(&m, s->listeners[i].fd);
    }
    if (parent_tell(gate, &m) == 0)
        parent_tell_trace(s);
}

static void on_spare(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct parent *p = arg;
    if (p->spare || p->draining || p->stopping)
        return;
    p->spare = parent_start(p, ROLE_GATE, NULL);
    if (p->spare)
        parent_init_child(p->spare);
}

/* A moment later, so that it does not compete with the sandbox that took the last one. */
void parent_sandbox_spare(struct parent *p)
{
    static const struct timeval soon = {0, 30000};
    if (p->mode != PARENT_SERVE)
        return;
    if (p->spare_timer == NULL)
        p->spare_timer = event_new(p->base, -1, 0, on_spare, p);
    if (p->spare_timer)
        event_add(p->spare_timer, &soon); /* without one a gate is started when it is needed */
}

/* The spare gate if there is one, else a fresh one. */
static struct child *take_gate(struct parent *p, struct sandbox *s)
{
    struct child *g = s->mode == GATE_LOCAL ? p->spare : NULL;
    if (s->mode == GATE_LOCAL) {
        p->spare = NULL;
        parent_sandbox_spare(p);
    }
    if (g == NULL) {
        g = parent_start(p, ROLE_GATE, s->id);
        if (g)
            parent_init_child(g);
    }
    if (g == NULL)
        return NULL;
    s->gate = g;
    g->sandbox = s;
    snprintf(g->tag, sizeof g->tag, "%.63s", s->id); /* a spare one's: for `status` and logs */
    parent_wire_gate(p, s);
    if (g->state == CHILD_INITED || g->state == CHILD_READY)
        parent_bind_gate(g);
    return g;
}

/* ---- the root of its own CA: the signer says it, the builder lays it out ---- */

static void ask_root(struct parent *p, const struct sandbox *s)
{
    struct msg m;
    struct child *to = p->signer;
    if (s->mode != GATE_LOCAL || s->root || to == NULL || to->ch == NULL ||
        (to->state != CHILD_INITED && to->state != CHILD_READY))
        return; /* it is asked as soon as it is there */
    msg_init(&m, W_ROOT);
    msg_put_str(&m, s->id);
    parent_tell(to, &m);
}

void parent_ask_roots(struct parent *p)
{
    struct sandbox *s;
    TAILQ_FOREACH(s, &p->sandboxes, link)
    ask_root(p, s);
}

/* Once its launcher waits for it, which it does after its listeners. */
static void tell_root(struct parent *p, const struct sandbox *s)
{
    struct msg m;
    if (s->root == NULL || s->n_listeners == 0 || p->builder == NULL || p->builder->ch == NULL)
        return;
    msg_init(&m, W_ROOT);
    msg_put_str(&m, s->id);
    msg_put_bytes(&m, s->root, s->root_len);
    parent_tell(p->builder, &m);
}

/* ---- messages ---- */

/* Placeholders of the clients of a listener that is bound to a policy ("rp-…"). */
static void set_listener_placeholders(struct parent *p, const char *policy, struct sandbox *from)
{
    struct sandbox *s;
    TAILQ_FOREACH(s, &p->sandboxes, link)
    {
        if (s->mode != GATE_BOUND || strcmp(s->policy, policy) != 0)
            continue;
        clear_placeholders(s);
        for (size_t i = 0; i < from->n_placeholders; i++) {
            s->placeholders[i].text = strdup(from->placeholders[i].text);
            s->placeholders[i].secret = strdup(from->placeholders[i].secret);
            if (s->placeholders[i].text && s->placeholders[i].secret)
                s->n_placeholders++;
        }
        if (s->gate && s->gate->ch) {
            struct msg m;
            msg_init(&m, W_PLACEHOLDERS);
            put_placeholders(s, &m);
            parent_tell(s->gate, &m);
        }
    }
}

static void answer_builder(struct parent *p, const char *id, bool ok, const char *text)
{
    struct msg m;
    msg_init(&m, W_LISTENERS_OK);
    msg_put_str(&m, id);
    msg_put_u8(&m, ok);
    msg_put_str(&m, text);
    if (p->builder && p->builder->ch)
        ipc_send(p->builder->ch, &m);
    else
        msg_done(&m);
}

int parent_sandbox_root(struct child *signer, struct msg *m)
{
    struct parent *p = signer->parent;
    char id[65];
    struct slice root;
    if (msg_get_str(m, id, sizeof id) < 0 || msg_get_slice(m, IPC_MSG_MAX, &root) < 0 ||
        msg_end(m) < 0)
        return -1;
    struct sandbox *s = parent_sandbox_find(p, id);
    if (s == NULL || s->root || s->mode != GATE_LOCAL)
        return 0; /* it is gone, or has one */
    s->root = root.n ? malloc(root.n) : NULL;
    if (s->root == NULL) {
        answer_builder(p, id, false, "no CA could be made for it");
        return 0;
    }
    memcpy(s->root, root.p, root.n);
    s->root_len = root.n;
    tell_root(p, s);
    return 0;
}

/* It has no listeners, and so no gate of ours. Only a policy whose sandboxes may be a cluster's
 * pods has such. */
static void have_it_elsewhere(struct parent *p, struct sandbox *s)
{
    bool may = config_policy_sandbox(p->config, s->policy)->kubernetes.given;
    s->answered = may;
    answer_builder(p, s->id, may,
                   may ? "" : "there are none, and the policy is of no cluster's pods");
}

static void give_gate(struct parent *p, struct sandbox *s)
{
    if (s->elsewhere) {
        have_it_elsewhere(p, s);
        return;
    }
    if (take_gate(p, s) == NULL)
        answer_builder(p, s->id, false, "no gate could be started");
}

/* A local one, told the first time, or once more by a controller that took it over: its policy
 * stays. */
static int sandbox_told(struct parent *p, const char *id, const char *policy, struct sandbox *told)
{
    struct sandbox *s = parent_sandbox_find(p, id);
    bool fresh = s == NULL;
    if (policy[0] == '\0' || (s && s->policy[0] && strcmp(s->policy, policy) != 0))
        return -1;
    if (fresh && (s = sandbox_new(id)) == NULL)
        return -1;
    snprintf(s->policy, sizeof s->policy, "%s", policy);
    clear_placeholders(s);
    memcpy(s->placeholders, told->placeholders, sizeof s->placeholders);
    s->n_placeholders = told->n_placeholders;
    told->n_placeholders = 0; /* they are its own now */
    memcpy(s->key, told->key, sizeof s->key);
    s->key_len = told->key_len;
    sandbox_labels_unref(s->labels);
    s->labels = told->labels;
    told->labels = NULL;
    if (fresh) {
        TAILQ_INSERT_TAIL(&p->sandboxes, s, link);
        ask_root(p, s);
    }
    parent_labels_tell(p, s); /* before its gate */
    parent_injector(p, policy, NULL);
    if (home_logins_first(p->home_logins, id, policy))
        parent_tell_vault_home(p);
    if (s->early) {
        s->early = false;
        give_gate(p, s);
    }
    return 0;
}

int parent_sandbox_new(struct parent *p, struct msg *m)
{
    char id[65], policy[65];
    int r = -1;
    if (msg_get_str(m, id, sizeof id) < 0 || msg_get_str(m, policy, sizeof policy) < 0)
        return -1;
    struct sandbox *told = sandbox_new(id); /* nothing holds before all of it was read */
    if (told && read_placeholders(told, m) == 0) {
        if (is_local(id))
            r = sandbox_told(p, id, policy, told);
        else if (strncmp(id, "rt-", 3) == 0)
            r = 0; /* placeholders of token clients are derived from the token itself */
        else if (strncmp(id, "rp-", 3) == 0) {
            set_listener_placeholders(p, policy, told);
            r = 0;
        }
    }
    if (told) {
        clear_placeholders(told);
        sandbox_labels_unref(told->labels);
    }
    free(told);
    return r;
}

/* Builder and controller speak over channels of their own, so its listeners may be read before the
 * sandbox is known. Then they wait for its W_SANDBOX, or for its W_SANDBOX_GONE. NULL: too many
 * wait. */
static struct sandbox *expect(struct parent *p, const char *id)
{
    struct sandbox *s;
    size_t n = 0;
    TAILQ_FOREACH(s, &p->sandboxes, link)
    n += s->early;
    s = n < SANDBOXES_EARLY_MAX ? sandbox_new(id) : NULL;
    if (s == NULL)
        return NULL;
    s->early = true;
    TAILQ_INSERT_TAIL(&p->sandboxes, s, link);
    ask_root(p, s);
    return s;
}

static void close_listeners(struct sandbox *s)
{
    while (s->n_listeners > 0)
        close(s->listeners[--s->n_listeners].fd);
}

static int read_listeners(struct sandbox *s, uint32_t n, struct msg *m)
{
    for (; n > 0; n--) {
        struct sandbox_listener *l = &s->listeners[s->n_listeners];
        if (msg_get_u8(m, &l->kind) < 0 || msg_get_u32(m, &l->port) < 0 ||
            msg_get_fd(m, &l->fd) < 0)
            return -1;
        s->n_listeners++;
    }
    return msg_end(m);
}

int parent_sandbox_listeners(struct parent *p, struct msg *m)
{
    char id[65];
    struct err err = {0};
    uint32_t n;
    if (msg_get_str(m, id, sizeof id) < 0 || !is_local(id) || msg_get_u32(m, &n) < 0 ||
        n > SANDBOX_LISTENERS_MAX)
        return -1;
    if (n > 0 && parent_room(p, n, &err) < 0) {
        answer_builder(p, id, false, err.text); /* the message's descriptors are closed with it */
        return 0;
    }
    struct sandbox *s = parent_sandbox_find(p, id);
    if (s ? s->n_listeners > 0 || s->elsewhere : (s = expect(p, id)) == NULL) {
        answer_builder(p, id, false, "it has its listeners, or too many wait for theirs");
        return 0;
    }
    if (read_listeners(s, n, m) < 0) {
        close_listeners(s);
        return -1;
    }
    s->elsewhere = s->n_listeners == 0;
    tell_root(p, s);
    if (!s->early)
        give_gate(p, s);
    return 0;
}

void parent_sandbox_bound(struct child *gate)
{
    struct sandbox *s = gate->sandbox;
    if (s == NULL || s->answered)
        return;
    s->answered = true;
    parent_wake_soon(gate->parent->dialer);
    if (s->mode == GATE_LOCAL)
        answer_builder(gate->parent, s->id, true, "");
    else
        parent_maybe_ready(gate->parent);
}

static void sandbox_free(struct parent *p, struct sandbox *s)
{
    close_listeners(s);
    clear_placeholders(s);
    if (s->gate) {
        s->gate->sandbox = NULL;
        parent_retire(s->gate);
    }
    parent_retire_brokers(s);
    TAILQ_REMOVE(&p->sandboxes, s, link);
    free(s->root);
    sandbox_labels_unref(s->labels);
    free(s);
}

void parent_sandbox_gone(struct parent *p, const char *id)
{
    struct sandbox *s = parent_sandbox_find(p, id);
    if (s) {
        sandbox_free(p, s);
        parent_labels_gone(p, id);
    }
}

/* ---- `listen` entries ---- */

/* Of previews: its gate has no policy, and nobody to speak to but logger and controller. */
static int listen_porter(struct parent *p, struct err *err)
{
    const struct config_preview *v = config_preview(p->config);
    struct sandbox *s = v ? calloc(1, sizeof *s) : NULL;
    if (s == NULL)
        return v ? err_set(err, ERR_INTERNAL, "out of memory") : 0;
    s->mode = GATE_PORTER;
    s->listeners[0].kind = LISTENER_PORTER;
    s->listeners[0].fd = tcp_listen(v->address, err);
    if (s->listeners[0].fd < 0) {
        free(s);
        return -1;
    }
    s->n_listeners = 1;
    TAILQ_INSERT_TAIL(&p->sandboxes, s, link);
    return take_gate(p, s) ? 0 : err_set(err, ERR_INTERNAL, "no gate could be started");
}

int parent_listen_all(struct parent *p, struct err *err)
{
    size_t n;
    const struct config_listen *l = config_listens(p->config, &n);
    for (size_t i = 0; i < n; i++) {
        struct sandbox *s = calloc(1, sizeof *s);
        if (s == NULL)
            return err_set(err, ERR_INTERNAL, "out of memory");
        int fd = tcp_listen(l[i].address, err);
        if (fd < 0) {
            free(s);
            return -1;
        }
        s->mode = l[i].policy ? GATE_BOUND : GATE_TOKEN;
        snprintf(s->policy, sizeof s->policy, "%s", l[i].policy ? l[i].policy : "");
        struct sandbox_listener *only = &s->listeners[0];
        only->kind = l[i].forwarded              ? LISTENER_FORWARDED
                     : l[i].kind == LISTEN_HTTPS ? LISTENER_REMOTE_HTTPS
                                                 : LISTENER_REMOTE_HTTP;
        s->forwarded = i;
        only->fd = fd;
        snprintf(only->name, sizeof only->name, "%s", l[i].name ? l[i].name : "");
        s->n_listeners = 1;
        TAILQ_INSERT_TAIL(&p->sandboxes, s, link);
        if (take_gate(p, s) == NULL)
            return err_set(err, ERR_INTERNAL, "no gate could be started");
    }
    return listen_porter(p, err);
}
