/* Captured secrets that stay with a kept home (`keep: home`): known from the start of its sandbox,
 * and given to the parent to be written before a reply goes on whose secrets they were. So no
 * placeholder comes in whose secret would be lost with this process. */
#include "base64.h"
#include "captured.h"
#include "secret_list.h"
#include "vault_internal.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAVING_MAX = 64 };

/* A reply that waits. */
struct saving {
    struct vault *vault;
    struct channel *channel; /* NULL: it is gone */
    uint32_t req, asked;     /* ours of the parent; the channel's */
    struct msg answer;
    LIST_ENTRY(saving) link;
};

struct vault_home {
    char owner[VAULT_OWNER_MAX];
    size_t n;
    struct buf others; /* lines of secrets that this configuration has not */
    LIST_HEAD(, saving) list;
};

static void saving_free(struct vault_home *h, struct saving *s)
{
    LIST_REMOVE(s, link);
    h->n--;
    if (s->answer.type)
        msg_done(&s->answer);
    free(s);
}

void vault_home_free(struct vault *v)
{
    struct saving *s;
    while (v->home && (s = LIST_FIRST(&v->home->list)) != NULL)
        saving_free(v->home, s);
    if (v->home)
        buf_free(&v->home->others);
    free(v->home);
    v->home = NULL;
}

void vault_home_left(struct channel *c)
{
    struct vault_home *h = c->vault->home;
    struct saving *s;
    if (h == NULL)
        return;
    LIST_FOREACH(s, &h->list, link)
    if (s->channel == c)
        s->channel = NULL;
}

bool vault_home_busy(const struct vault *v)
{
    return v->home && v->home->n > 0;
}

/* ---- what is there at the start ---- */

static bool stays(const struct vault *v, struct slice name)
{
    size_t i = vault_index(v, name);
    return i < v->n && v->secrets[i].mint && derived_stays(v->secrets[i].mint);
}

/* Another configuration's with the same home, by a policy of that name: written again as it is. */
static int keep_line(struct vault *v, struct slice line)
{
    return buf_append_slice(&v->home->others, line) < 0 ||
                   buf_append_str(&v->home->others, "\n") < 0
               ? -1
               : 0;
}

/* "NAME BASE64". -1: no memory. */
static int take_line(struct vault *v, struct slice line)
{
    ssize_t blank = slice_find(line, ' ');
    struct slice name = {line.p, blank < 0 ? 0 : (size_t)blank};
    char text[SECRET_NAME_MAX + 1];
    struct buf value;
    if (name.n == 0 || name.n >= sizeof text)
        return 0;
    if (vault_index(v, name) == v->n)
        return keep_line(v, line);
    if (!stays(v, name))
        return 0;
    snprintf(text, sizeof text, "%.*s", SL(name));
    buf_init_wiped(&value, CAPTURED_VALUE_MAX);
    struct secret *s = NULL;
    int r = 0;
    if (base64_decode(&value, (struct slice){line.p + blank + 1, line.n - name.n - 1}) == 0 &&
        buf_len(&value) > 0) {
        s = secret_new(buf_data(&value), buf_len(&value));
        r = s == NULL || captured_put(v->captured, v->home->owner, text, s) < 0 ? -1 : 0;
    }
    secret_unref(s);
    buf_free(&value);
    return r;
}

int vault_home_told(struct vault *v, struct msg *m)
{
    char sandbox[65], policy[65];
    struct slice kept;
    if (v->home || msg_get_str(m, sandbox, sizeof sandbox) < 0 ||
        msg_get_str(m, policy, sizeof policy) < 0 ||
        msg_get_slice(m, CAPTURED_KEPT_MAX, &kept) < 0 || msg_end(m) < 0)
        return -1;
    v->home = calloc(1, sizeof *v->home);
    if (v->home == NULL)
        return -1;
    LIST_INIT(&v->home->list);
    buf_init_wiped(&v->home->others, CAPTURED_KEPT_MAX + 1); /* the last line may have no end */
    snprintf(v->home->owner, sizeof v->home->owner, "%s|%s", policy, sandbox);
    int r = 0;
    while (kept.n > 0 && r == 0) {
        ssize_t end = slice_find(kept, '\n');
        size_t n = end < 0 ? kept.n : (size_t)end;
        r = take_line(v, (struct slice){kept.p, n});
        kept = (struct slice){kept.p + n + (end >= 0), kept.n - n - (end >= 0)};
    }
    return r;
}

/* ---- what is captured ---- */

bool vault_home_takes(const struct channel *c, const char *owner, const struct captured_field *f,
                      size_t n)
{
    const struct vault *v = c->vault;
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any = any || (f[i].value && stays(v, slice_str(f[i].secret)));
    return any && v->home && strcmp(v->home->owner, owner) == 0;
}

/* But those that this configuration has by now. */
static int put_others(struct vault *v, struct buf *to)
{
    struct slice rest = buf_slice(&v->home->others);
    while (rest.n > 0) {
        size_t n = (size_t)slice_find(rest, '\n') + 1;
        struct slice name = {rest.p, (size_t)slice_find(rest, ' ')};
        if (vault_index(v, name) == v->n && buf_append(to, rest.p, n) < 0)
            return -1;
        rest = (struct slice){rest.p + n, rest.n - n};
    }
    return 0;
}

/* All that the home has from now on. */
static int put_all(struct vault *v, struct buf *to)
{
    if (put_others(v, to) < 0)
        return -1;
    for (size_t i = 0; i < v->n; i++) {
        const char *name = vault_entry_name(v->secrets[i].entry);
        struct secret *s = v->secrets[i].mint && derived_stays(v->secrets[i].mint)
                               ? captured_get(v->captured, v->home->owner, name)
                               : NULL;
        if (s && (buf_printf(to, "%s ", name) < 0 || base64_append(to, secret_slice(s)) < 0 ||
                  buf_append_str(to, "\n") < 0))
            return -1;
    }
    return 0;
}

static void put_names(const struct vault *v, const struct captured_field *f, size_t n,
                      struct msg *m)
{
    uint32_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += f[i].value && stays(v, slice_str(f[i].secret));
    msg_put_u32(m, count);
    for (size_t i = 0; i < n; i++)
        if (f[i].value && stays(v, slice_str(f[i].secret)))
            msg_put_str(m, f[i].secret);
}

struct msg *vault_home_save(struct channel *c, uint32_t asked, const struct captured_field *f,
                            size_t n, struct err *err)
{
    struct vault *v = c->vault;
    struct msg m;
    struct buf all;
    buf_init_wiped(&all, CAPTURED_KEPT_MAX);
    struct saving *s = v->home->n < SAVING_MAX ? calloc(1, sizeof *s) : NULL;
    if (s == NULL || put_all(v, &all) < 0) {
        err_set(err, ERR_LIMIT,
                s ? "the secrets of the home are too long together"
                  : "too many replies wait for the home's file");
        buf_free(&all);
        free(s);
        return NULL;
    }
    *s = (struct saving){.vault = v, .channel = c, .req = ++v->last_req, .asked = asked};
    LIST_INSERT_HEAD(&v->home->list, s, link);
    v->home->n++;
    msg_init(&m, W_HOME_KEEP); /* its body is wiped when sent */
    msg_put_u32(&m, s->req);
    put_names(v, f, n, &m);
    msg_put_slice(&m, buf_slice(&all));
    buf_free(&all);
    ipc_send(v->control, &m);
    return &s->answer;
}

int vault_home_kept(struct vault *v, struct msg *m)
{
    uint32_t req;
    uint8_t ok;
    struct saving *s = NULL;
    if (msg_get_u32(m, &req) < 0 || msg_get_u8(m, &ok) < 0 || ok > 1 || msg_end(m) < 0)
        return -1;
    if (v->home)
        LIST_FOREACH(s, &v->home->list, link)
    if (s->req == req)
        break;
    if (s == NULL)
        return 0;
    if (s->channel && ok) {
        ipc_send(s->channel->ipc, &s->answer);
        s->answer.type = 0; /* sent, and wiped */
    } else if (s->channel) {
        vault_captured_refuse(s->channel, s->asked, "its secrets could not be kept with the home");
    }
    saving_free(v->home, s);
    vault_end_if_finished(v);
    return 0;
}
