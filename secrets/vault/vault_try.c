/* W_SECRET_TRY: read a secret for `durward secret test`, and say how that went. */
#include "vault_internal.h"
#include "wire.h"

#include <stdlib.h>

enum { TRIED_MAX = 512 };

struct tried {
    struct vault *vault;
    uint32_t req;
    struct vault_wait *wait;
    LIST_ENTRY(tried) link;
};

static void answer(struct vault *v, uint32_t req, const struct secret *value, const char *why)
{
    struct msg m;
    msg_init(&m, W_SECRET_TRIED);
    msg_put_u32(&m, req);
    msg_put_u8(&m, value != NULL);
    msg_put_u32(&m, value ? (uint32_t)secret_slice(value).n : 0);
    msg_put_str(&m, value ? "" : why);
    ipc_send(v->control, &m);
}

static void tried_free(struct tried *t)
{
    LIST_REMOVE(t, link);
    t->vault->n_tries--;
    free(t);
}

static void on_value(void *arg, struct secret *value, unsigned ttl UNUSED, const char *why)
{
    struct tried *t = arg;
    struct vault *v = t->vault;
    uint32_t req = t->req;
    tried_free(t);
    answer(v, req, value, why);
}

int vault_try(struct vault *v, struct msg *m)
{
    uint32_t req;
    struct slice name;
    if (msg_get_u32(m, &req) < 0 || msg_get_slice(m, 128, &name) < 0 || msg_end(m) < 0)
        return -1;
    size_t i = vault_index(v, name);
    struct tried *t = i < v->n && v->n_tries < TRIED_MAX ? calloc(1, sizeof *t) : NULL;
    if (t == NULL) {
        answer(v, req, NULL, i < v->n ? "too many at once" : "it is not configured");
        return 0;
    }
    t->vault = v;
    t->req = req;
    LIST_INSERT_HEAD(&v->tries, t, link);
    v->n_tries++;
    struct vault_wait *w = vault_entry_get(v->secrets[i].entry, on_value, t);
    if (w) /* else `t` is gone already */
        t->wait = w;
    return 0;
}

void vault_tries_free(struct vault *v)
{
    struct tried *t;
    while ((t = LIST_FIRST(&v->tries)) != NULL) {
        vault_entry_cancel(t->wait);
        tried_free(t);
    }
}
