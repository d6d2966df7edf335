/* Runs the vault's channels: reads its secrets from W_INIT, gives each injector what its list
 * releases, and passes the parent's answers to the entries. */
#include "assertion.h"
#include "broker.h"
#include "meter.h"
#include "peer.h"
#include "proc.h"
#include "role_run.h"
#include "secret_list.h"
#include "host_agent.h"
#include "vault_internal.h"
#include "wire.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

enum {
    CHANNELS_MAX = 4096,
    ASKED_MAX =
        SECRET_LIST_MAX + 2048, /* of one channel under way: more than secret_client.h has */
    WHY_MAX = 1024,             /* of the parent: more than struct err holds */
};

static void set_state(struct vault *v, enum vault_state to)
{
    ASSERT(to >= v->state);
    v->state = to;
    if (to == VAULT_ENDED)
        event_base_loopbreak(v->base);
}

size_t vault_index(const struct vault *v, struct slice name)
{
    size_t i = 0;
    while (i < v->n && !slice_eq_str(name, vault_entry_name(v->secrets[i].entry)))
        i++;
    return i;
}

struct held_secret *vault_secret_of(struct vault *v, const struct vault_entry *e)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->secrets[i].entry == e)
            return &v->secrets[i];
    return NULL;
}

/* ---- an injector's channel ---- */

struct asked *vault_asked_new(struct channel *c, uint32_t req)
{
    struct asked *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    a->channel = c;
    a->req = req;
    LIST_INSERT_HEAD(&c->list, a, link);
    c->asked++;
    a->trace = trace_take(&c->tracing, req, meter_now());
    TRACE(&a->trace, "asked", "of policy %s", c->policy);
    return a;
}

void vault_asked_free(struct asked *a)
{
    TRACE(&a->trace, "answered", "%s", "");
    LIST_REMOVE(a, link);
    a->channel->asked--;
    free(a->more);
    free(a);
}

static void channel_free(struct channel *c)
{
    struct asked *a;
    while ((a = LIST_FIRST(&c->list)) != NULL) {
        vault_entry_cancel(a->wait);
        vault_asked_free(a);
    }
    vault_home_left(c);
    vault_agent_left(c);
    LIST_REMOVE(c, link);
    c->vault->channels--;
    ipc_free(c->ipc);
    free(c->released);
    free(c);
}

/* of: how it is made; NULL: it is stored. */
static void answer(struct channel *c, uint32_t req, const struct derived *of, struct secret *value,
                   unsigned ttl, const char *why)
{
    struct msg m;
    uint8_t ok = of && derived_renewable(of) ? 2 : 1;
    meter_add(value ? METER_SECRETS : METER_SECRETS_FAILED, 1);
    msg_init(&m, W_SECRET); /* its body is wiped when sent */
    msg_put_u32(&m, req);
    msg_put_u8(&m, value ? ok : 0);
    msg_put_u32(&m, ttl);
    msg_put_slice(&m, value ? secret_slice(value) : slice_str(why));
    ipc_send(c->ipc, &m);
}

static void on_value(void *arg, struct secret *value, unsigned ttl, const char *why)
{
    struct asked *a = arg;
    struct channel *c = a->channel;
    uint32_t req = a->req;
    const struct derived *of = a->of;
    vault_asked_free(a);
    answer(c, req, of, value, ttl, why);
}

/* Of what signs only what goes along with each signature is told. */
static void on_signer(void *arg, struct secret *value, unsigned ttl, const char *why)
{
    struct asked *a = arg;
    struct secret *told = value ? derived_told(a->of, secret_slice(value)) : NULL;
    on_value(arg, told, ttl, value ? "it is not a key that signs" : why);
    secret_unref(told);
}

static int on_get(struct channel *c, struct msg *m)
{
    struct vault *v = c->vault;
    uint32_t req;
    struct slice name;
    if (msg_get_u32(m, &req) < 0 || msg_get_slice(m, SECRET_NAME_MAX, &name) < 0 || msg_end(m) < 0)
        return -1;
    size_t i = vault_index(v, name);
    /* the same words for a secret that does not exist: names of others are not told either */
    if (i == v->n || !c->released[i] ||
        (v->secrets[i].mint && derived_is_captured(v->secrets[i].mint))) {
        answer(c, req, NULL, NULL, 0, "not released to this policy");
        return 0;
    }
    struct asked *a = vault_asked_new(c, req);
    if (a == NULL) {
        answer(c, req, NULL, NULL, 0, "out of memory");
        return 0;
    }
    struct derived *d = v->secrets[i].mint;
    vault_fn then = d && derived_signs(d) ? on_signer : on_value;
    a->of = d;
    TRACE(&a->trace, "secret", "%.*s%s", SL(name), d ? ", made of others" : "");
    struct vault_wait *w = vault_entry_get(v->secrets[i].entry, then, a);
    if (w) /* else `a` is gone already */
        a->wait = w;
    return 0;
}

static int on_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct channel *c = arg;
    if (c->asked >= ASKED_MAX)
        return -1;
    if (c->broker && m->type != W_SECRET_GET && m->type != W_SIGN_TEXT)
        return -1;
    switch (m->type) {
    case W_TRACING:
        return trace_get(m, &c->tracing);
    case W_SECRET_GET:
        return on_get(c, m);
    case W_SECRET_REFUSED:
        return vault_refused(c, m);
    case W_SIGN:
        return vault_sign(c, m);
    case W_CAPTURE:
        return vault_capture(c, m);
    case W_CAPTURED_GET:
        return vault_captured_get(c, m);
    case W_CAPTURED_ALL:
        return vault_captured_all(c, m);
    case W_SIGN_TEXT:
        return vault_sign_text(c, m);
    default:
        return -1;
    }
}

static void on_channel_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    channel_free(arg);
}

/* Which entries a packed list of names releases. A name that is not configured is passed over: the
 * policy's other secrets work, and asking for it says "not released". */
static bool *released_by(const struct vault *v, struct slice packed)
{
    struct secret_list l;
    struct slice name;
    int r;
    bool *released = calloc(v->n + 1, sizeof *released);
    if (released == NULL || secret_list_open(&l, packed) < 0) {
        free(released);
        return NULL;
    }
    while ((r = secret_list_next(&l, &name)) == 1)
        released[vault_index(v, name)] = true;
    released[v->n] = false;
    if (r < 0) {
        free(released);
        return NULL;
    }
    return released;
}

static int on_peer(struct vault *v, struct msg *m)
{
    struct peer far;
    if (peer_get(m, &far) < 0)
        return -1;
    if (far.kind == ROLE_DIALER && strcmp(far.policy, PEER_TOKENS) == 0 && v->fetcher) {
        v->fetcher->attach(v->fetcher->self, far.fd, far.channel);
        return 0;
    }
    bool asks = far.kind == ROLE_INJECTOR || far.kind == ROLE_DIALER || far.kind == ROLE_FLEET ||
                broker_is_back(far.kind);
    bool *released = asks ? released_by(v, far.extra) : NULL;
    if (released == NULL) {
        close(far.fd);
        return -1;
    }
    struct channel *c = v->channels < CHANNELS_MAX ? calloc(1, sizeof *c) : NULL;
    if (c == NULL) { /* no room: that injector sees its channel end */
        free(released);
        close(far.fd);
        return 0;
    }
    LIST_INIT(&c->list);
    vault_agent_begin(c);
    c->vault = v;
    c->number = far.channel;
    snprintf(c->policy, sizeof c->policy, "%s", far.policy);
    c->released = released;
    c->broker = broker_is_back(far.kind);
    c->ipc = ipc_new(v->base, far.fd, on_message, on_channel_closed, c);
    if (c->ipc == NULL) {
        free(released);
        free(c);
        return 0;
    }
    LIST_INSERT_HEAD(&v->list, c, link);
    v->channels++;
    return 0;
}

static int on_peer_gone(struct vault *v, struct msg *m)
{
    uint32_t number;
    if (msg_get_u32(m, &number) < 0 || msg_end(m) < 0)
        return -1;
    struct channel *c, *next;
    for (c = LIST_FIRST(&v->list); c; c = next) {
        next = LIST_NEXT(c, link);
        if (c->number == number)
            channel_free(c);
    }
    return 0;
}

/* ---- stores, through the parent ---- */

static uint32_t ask_parent(void *arg, const char *name)
{
    struct vault *v = arg;
    struct msg m;
    msg_init(&m, W_STORE_OPEN);
    msg_put_u32(&m, ++v->last_req);
    msg_put_str(&m, name);
    ipc_send(v->control, &m);
    return v->last_req;
}

static void tell_stale(void *arg, const struct vault_entry *e)
{
    struct vault *v = arg;
    struct channel *c;
    size_t i = vault_index(v, slice_str(vault_entry_name(e)));
    if (i < v->n && v->secrets[i].mint)
        derived_forget(v->secrets[i].mint);
    LIST_FOREACH(c, &v->list, link)
    {
        if (i == v->n || !c->released[i])
            continue;
        struct msg m;
        msg_init(&m, W_SECRET_STALE);
        msg_put_str(&m, vault_entry_name(e));
        ipc_send(c->ipc, &m);
    }
}

static void tell_state(void *arg, const struct vault_entry *e, const char *why)
{
    struct vault *v = arg;
    struct msg m;
    v->down += why ? 1 : -1;
    meter_set(METER_SECRETS_DOWN, (uint64_t)v->down);
    msg_init(&m, W_STORE_STATE);
    msg_put_str(&m, vault_entry_name(e));
    msg_put_u8(&m, why == NULL);
    msg_put_str(&m, why ? why : "");
    ipc_send(v->control, &m);
}

static int on_store_fd(struct vault *v, struct msg *m)
{
    uint32_t req;
    uint8_t ok;
    char why[HOST_AGENT_KEY_MAX];
    int fd = -1;
    if (msg_get_u32(m, &req) < 0 || msg_get_u8(m, &ok) < 0 || ok > 1 ||
        msg_get_str(m, why, sizeof why) < 0 || (ok && msg_get_fd(m, &fd) < 0))
        return -1;
    if (msg_end(m) < 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (vault_agent_opened(v, req, fd, why))
        return 0;
    for (size_t i = 0; i < v->n; i++)
        if (vault_entry_opened(v->secrets[i].entry, req, fd, why))
            return 0;
    if (fd >= 0) /* the answer to a fetch that timed out */
        close(fd);
    return 0;
}

static int on_store_exit(struct vault *v, struct msg *m)
{
    uint32_t req, status;
    if (msg_get_u32(m, &req) < 0 || msg_get_u32(m, &status) < 0 || msg_end(m) < 0)
        return -1;
    for (size_t i = 0; i < v->n; i++)
        if (vault_entry_exited(v->secrets[i].entry, req, (int)status))
            break;
    return 0;
}

/* What is put together of it without anybody being asked has changed as well; a token that was got
 * with it goes on until it ends, but one that could not be got is tried again. */
static void part_changed(struct vault *v, struct slice name)
{
    const char *part;
    for (size_t i = 0; i < v->n; i++) {
        const struct derived *d = v->secrets[i].mint;
        struct vault_entry *e = v->secrets[i].entry;
        size_t k = 0;
        while (d && (part = derived_input(d, k)) && !slice_eq_str(name, part))
            k++;
        if (d == NULL || part == NULL)
            continue;
        if (derived_is_local(d) || derived_is_itself(d) || derived_is_login(d))
            vault_entry_changed(e);
        else
            vault_entry_retry(e);
        part_changed(v, slice_str(vault_entry_name(e))); /* at most a login or a role deep */
    }
}

static int on_store_changed(struct vault *v, struct msg *m)
{
    struct slice name;
    if (msg_get_slice(m, SECRET_NAME_MAX, &name) < 0 || msg_end(m) < 0)
        return -1;
    size_t at = vault_index(v, name);
    if (at == v->n)
        return 0;
    vault_entry_changed(v->secrets[at].entry);
    part_changed(v, name);
    return 0;
}

/* ---- control ---- */

static int add_secret(struct vault *v, struct msg *m)
{
    char name[SECRET_NAME_MAX + 1];
    uint8_t store, lines;
    uint32_t ttl;
    struct derived_spec spec;
    struct held_secret *s = &v->secrets[v->n];
    if (msg_get_str(m, name, sizeof name) < 0 || msg_get_u8(m, &store) < 0 ||
        msg_get_u32(m, &ttl) < 0 || msg_get_u8(m, &lines) < 0 || lines > 1)
        return -1;
    if (name[0] == 0 || store < STORE_ENV || store > STORE_AGENT || store == STORE_LOGIN ||
        vault_index(v, slice_str(name)) < v->n)
        return -1;
    if (store == STORE_MINT &&
        (derived_spec_get(m, &spec) < 0 || (s->mint = derived_new(&spec)) == NULL))
        return -1;
    s->entry = vault_entry_new(&v->hooks, name, (enum store_kind)store, ttl, lines);
    v->n++;
    if (s->entry && s->mint && derived_is_itself(s->mint))
        vault_entry_keep(s->entry);
    return s->entry ? 0 : -1;
}

static int read_init(struct vault *v, struct msg *m)
{
    uint32_t n;
    if (msg_get_u32(m, &n) < 0 || n > SECRET_LIST_MAX ||
        (v->secrets = calloc(n + 1, sizeof *v->secrets)) == NULL)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (add_secret(v, m) < 0)
            return -1;
    return msg_get_fd(m, &v->hooks.env_fd) < 0 || msg_end(m) < 0 ? -1 : 0;
}

static int on_roots(struct vault *v, struct msg *m)
{
    struct slice limits;
    int fd = -1;
    if (msg_get_slice(m, 4096, &limits) < 0 || msg_get_fd(m, &fd) < 0)
        return -1;
    if (msg_end(m) < 0 || v->fetcher == NULL) {
        close(fd);
        return -1;
    }
    return v->fetcher->roots(v->fetcher->self, fd, limits);
}

static int vault_load(void *self, struct msg *m, struct msg *ready UNUSED, struct err *err UNUSED)
{
    if (read_init(self, m) < 0)
        return -1;
    /* one allocation before the filter, so that what secret memory needs was tried */
    secret_unref(secret_alloc(1));
    return 0;
}

static int vault_confine(void *self, struct err *err)
{
    const struct vault *v = self;
    return v->confine ? proc_confine(ROLE_VAULT, err) : 0;
}

static void vault_begun(void *self)
{
    set_state(self, VAULT_READY);
}

static const struct role_start role_steps = {
    .load = vault_load, .confine = vault_confine, .begun = vault_begun};

static int on_control(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct vault *v = arg;
    if (v->state == VAULT_EMPTY)
        return m->type == W_INIT ? role_start(&role_steps, v, v->control, m) : -1;
    if (v->state != VAULT_READY)
        return -1;
    switch (m->type) {
    case W_PEER:
        return on_peer(v, m);
    case W_PEER_GONE:
        return on_peer_gone(v, m);
    case W_STORE_FD:
        return on_store_fd(v, m);
    case W_STORE_EXIT:
        return on_store_exit(v, m);
    case W_STORE_CHANGED:
        return on_store_changed(v, m);
    case W_CAPTURED_GONE:
        return vault_captured_gone(v, m);
    case W_HOME:
        return vault_home_told(v, m);
    case W_HOME_KEPT:
        return vault_home_kept(v, m);
    case W_VAULT_ROOTS:
        return on_roots(v, m);
    case W_VAULT_FINISH:
        return vault_mint_finish(v, m);
    case W_TOKEN_SAVED:
        return vault_mint_saved(v, m);
    case W_TOKEN_FOUND:
        return vault_mint_found(v, m);
    case W_LOGIN_LOCKED:
        return vault_login_locked(v, m);
    case W_LOGIN_SAVED:
        return vault_login_saved(v, m);
    case W_SECRET_TRY:
        return vault_try(v, m);
    default:
        return -1;
    }
}

void vault_end(struct vault *v)
{
    set_state(v, VAULT_ENDED);
}

static void on_control_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    set_state(arg, VAULT_ENDED);
}

struct vault *vault_new(struct event_base *base, int control_fd, bool confine,
                        const struct token_fetcher *fetcher)
{
    struct vault *v = calloc(1, sizeof *v);
    if (v == NULL) {
        close(control_fd);
        return NULL;
    }
    LIST_INIT(&v->list);
    LIST_INIT(&v->tries);
    vault_agent_init(v);
    v->base = base;
    v->confine = confine;
    v->fetcher = fetcher;
    v->hooks = (struct vault_hooks){.base = base,
                                    .env_fd = -1,
                                    .arg = v,
                                    .open = ask_parent,
                                    .changed = tell_stale,
                                    .state = tell_state,
                                    .mint = vault_mint_start,
                                    .unmint = vault_mint_stop};
    v->captured = captured_new();
    v->control = v->captured ? ipc_new(base, control_fd, on_control, on_control_closed, v) : NULL;
    if (v->control == NULL) {
        captured_free(v->captured);
        free(v);
        return NULL;
    }
    return v;
}

struct ipc *vault_control(const struct vault *v)
{
    return v->control;
}

void vault_free(struct vault *v)
{
    if (v == NULL)
        return;
    struct channel *c;
    while ((c = LIST_FIRST(&v->list)) != NULL)
        channel_free(c);
    captured_free(v->captured);
    vault_home_free(v);
    vault_tries_free(v);
    for (size_t i = 0; i < v->n; i++) /* what waits for other entries first */
        vault_mint_stop(v, v->secrets[i].entry);
    for (size_t i = 0; i < v->n; i++) {
        vault_entry_free(v->secrets[i].entry);
        derived_free(v->secrets[i].mint);
        secret_unref(v->secrets[i].rotated);
    }
    free(v->secrets);
    if (v->hooks.env_fd >= 0)
        close(v->hooks.env_fd);
    ipc_free(v->control);
    free(v);
}

unsigned vault_channels(const struct vault *v)
{
    return v->channels;
}
