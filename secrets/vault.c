#include "vault.h"

#include "ipc.h"
#include "peer.h"
#include "proc.h"
#include "secret_list.h"
#include "vault_entry.h"
#include "wire.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

enum {
    CHANNELS_MAX = 4096,
    ASKED_MAX = 256, /* requests of one channel under way */
    SOURCE_MAX = 4096,
    WHY_MAX = 1024, /* of the parent: more than struct err holds */
};

enum vault_state { VAULT_EMPTY, VAULT_READY, VAULT_ENDED };

struct channel {
    struct vault *vault;
    struct ipc *ipc;
    uint32_t number;
    bool *released; /* by index of the vault's entries */
    unsigned asked;
    LIST_HEAD(, asked) list;
    LIST_ENTRY(channel) link;
};

struct asked {
    struct channel *channel;
    uint32_t req;
    struct vault_wait *wait;
    LIST_ENTRY(asked) link;
};

struct vault {
    struct event_base *base;
    struct ipc *control;
    enum vault_state state;
    bool confine;
    struct vault_hooks hooks;
    struct vault_entry **entries;
    size_t n;
    unsigned channels;
    uint32_t last_req; /* of W_STORE_OPEN */
    LIST_HEAD(, channel) list;
};

static void set_state(struct vault *v, enum vault_state to)
{
    v->state = to;
    if (to == VAULT_ENDED)
        event_base_loopbreak(v->base);
}

static size_t entry_index(const struct vault *v, struct slice name)
{
    size_t i = 0;
    while (i < v->n && !slice_eq_str(name, vault_entry_name(v->entries[i])))
        i++;
    return i;
}

/* ---- an injector's channel ---- */

static void asked_free(struct asked *a)
{
    LIST_REMOVE(a, link);
    a->channel->asked--;
    free(a);
}

static void channel_free(struct channel *c)
{
    struct asked *a;
    while ((a = LIST_FIRST(&c->list)) != NULL) {
        vault_entry_cancel(a->wait);
        asked_free(a);
    }
    LIST_REMOVE(c, link);
    c->vault->channels--;
    ipc_free(c->ipc);
    free(c->released);
    free(c);
}

static void answer(struct channel *c, uint32_t req, struct secret *value, unsigned ttl,
                   const char *why)
{
    struct msg m;
    msg_init(&m, W_SECRET); /* its body is wiped when sent */
    msg_put_u32(&m, req);
    msg_put_u8(&m, value != NULL);
    msg_put_u32(&m, ttl);
    msg_put_slice(&m, value ? secret_slice(value) : slice_str(why));
    ipc_send(c->ipc, &m);
}

static void on_value(void *arg, struct secret *value, unsigned ttl, const char *why)
{
    struct asked *a = arg;
    struct channel *c = a->channel;
    uint32_t req = a->req;
    asked_free(a);
    answer(c, req, value, ttl, why);
}

static int on_get(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct channel *c = arg;
    struct vault *v = c->vault;
    uint32_t req;
    struct slice name;
    if (m->type != W_SECRET_GET || msg_get_u32(m, &req) < 0 ||
        msg_get_slice(m, SECRET_NAME_MAX, &name) < 0 || msg_end(m) < 0 || c->asked >= ASKED_MAX)
        return -1;
    size_t i = entry_index(v, name);
    /* the same words for a secret that does not exist: names of others are not told either */
    if (i == v->n || !c->released[i]) {
        answer(c, req, NULL, 0, "not released to this policy");
        return 0;
    }
    struct asked *a = calloc(1, sizeof *a);
    if (a == NULL) {
        answer(c, req, NULL, 0, "out of memory");
        return 0;
    }
    a->channel = c;
    a->req = req;
    LIST_INSERT_HEAD(&c->list, a, link);
    c->asked++;
    struct vault_wait *w = vault_entry_get(v->entries[i], on_value, a);
    if (w) /* else `a` is gone already */
        a->wait = w;
    return 0;
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
        released[entry_index(v, name)] = true;
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
    bool asks = far.kind == ROLE_INJECTOR || far.kind == ROLE_DIALER;
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
    c->vault = v;
    c->number = far.channel;
    c->released = released;
    c->ipc = ipc_new(v->base, far.fd, on_get, on_channel_closed, c);
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
    size_t i = entry_index(v, slice_str(vault_entry_name(e)));
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

static int on_store_fd(struct vault *v, struct msg *m)
{
    uint32_t req;
    uint8_t ok;
    char why[WHY_MAX];
    int fd = -1;
    if (msg_get_u32(m, &req) < 0 || msg_get_u8(m, &ok) < 0 || ok > 1 ||
        msg_get_str(m, why, sizeof why) < 0 || (ok && msg_get_fd(m, &fd) < 0))
        return -1;
    if (msg_end(m) < 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    for (size_t i = 0; i < v->n; i++)
        if (vault_entry_opened(v->entries[i], req, fd, why))
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
        if (vault_entry_exited(v->entries[i], req, (int)status))
            break;
    return 0;
}

/* ---- control ---- */

static int add_entry(struct vault *v, struct msg *m)
{
    char name[SECRET_NAME_MAX + 1], source[SOURCE_MAX];
    uint8_t store;
    uint32_t ttl;
    if (msg_get_str(m, name, sizeof name) < 0 || msg_get_u8(m, &store) < 0 ||
        msg_get_str(m, source, sizeof source) < 0 || msg_get_u32(m, &ttl) < 0)
        return -1;
    if (name[0] == 0 || store < STORE_ENV || store > STORE_COMMAND ||
        entry_index(v, slice_str(name)) < v->n)
        return -1;
    v->entries[v->n] = vault_entry_new(&v->hooks, name, (enum store_kind)store, ttl);
    if (v->entries[v->n] == NULL)
        return -1;
    v->n++;
    return 0;
}

static int read_init(struct vault *v, struct msg *m)
{
    uint32_t n;
    if (msg_get_u32(m, &n) < 0 || n > SECRET_LIST_MAX ||
        (v->entries = calloc(n + 1, sizeof(struct vault_entry *))) == NULL)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (add_entry(v, m) < 0)
            return -1;
    return msg_get_fd(m, &v->hooks.env_fd) < 0 || msg_end(m) < 0 ? -1 : 0;
}

static int on_init(struct vault *v, struct msg *m)
{
    struct err err = {0};
    struct msg reply;
    if (read_init(v, m) < 0)
        return -1;
    /* one allocation before the filter, so that what secret memory needs was tried */
    secret_unref(secret_alloc(1));
    if (v->confine && proc_confine(ROLE_VAULT, &err) < 0) {
        msg_init(&reply, W_FAILED);
        msg_put_str(&reply, err.text);
        ipc_send(v->control, &reply);
        ipc_flush(v->control, 1000);
        set_state(v, VAULT_ENDED);
        return 0;
    }
    msg_init(&reply, W_READY);
    ipc_send(v->control, &reply);
    set_state(v, VAULT_READY);
    return 0;
}

static int on_control(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct vault *v = arg;
    if (v->state == VAULT_EMPTY)
        return m->type == W_INIT ? on_init(v, m) : -1;
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
    default:
        return -1;
    }
}

static void on_control_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    set_state(arg, VAULT_ENDED);
}

struct vault *vault_new(struct event_base *base, int control_fd, bool confine)
{
    struct vault *v = calloc(1, sizeof *v);
    if (v == NULL) {
        close(control_fd);
        return NULL;
    }
    LIST_INIT(&v->list);
    v->base = base;
    v->confine = confine;
    v->hooks = (struct vault_hooks){
        .base = base, .env_fd = -1, .arg = v, .open = ask_parent, .changed = tell_stale};
    v->control = ipc_new(base, control_fd, on_control, on_control_closed, v);
    if (v->control == NULL) {
        free(v);
        return NULL;
    }
    return v;
}

void vault_free(struct vault *v)
{
    if (v == NULL)
        return;
    struct channel *c;
    while ((c = LIST_FIRST(&v->list)) != NULL)
        channel_free(c);
    for (size_t i = 0; i < v->n; i++)
        vault_entry_free(v->entries[i]);
    free(v->entries);
    if (v->hooks.env_fd >= 0)
        close(v->hooks.env_fd);
    ipc_free(v->control);
    free(v);
}

unsigned vault_channels(const struct vault *v)
{
    return v->channels;
}

int vault_main(void)
{
    struct err err = {0};
    if (proc_enter(ROLE_VAULT, &err) < 0) {
        proc_log("%s", err.text);
        return 1;
    }
    struct event_base *base = event_base_new();
    struct vault *v = base ? vault_new(base, PROC_CONTROL_FD, true) : NULL;
    if (v)
        event_base_dispatch(base);
    vault_free(v);
    if (base)
        event_base_free(base);
    return v ? 0 : 1;
}
