/* A token that a server refuses before its time is made anew, once: its endpoint is asked no more
 * often than a token serves a minute, and more seldom where that does not help. So neither a
 * sandbox nor a server that refuses everything can drive its refreshes. */
#include "aws_sign.h"
#include "secret_list.h"
#include "vault_internal.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    RENEW_SECONDS = 60, /* a younger token is not made anew, whoever refuses it */
    RENEW_SECONDS_MAX = 3600,
    RENEW_LASTED = 8, /* times the wait: it was of use */
};

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void vault_renew_asked(struct held_secret *s)
{
    s->turn.asked_at = now_ms();
}

/* A token that was made anew and did not last for a multiple of the wait doubles it, and one that
 * did halves it: whatever the times at which tokens are refused, it is at most one in 8 minutes. */
bool vault_turn_take(struct vault_turn *t, int64_t now)
{
    int64_t since = now - t->asked_at;
    unsigned wait = t->wait ? t->wait : RENEW_SECONDS;
    if (t->asked_at && since < (int64_t)wait * 1000)
        return false;
    bool lasted = t->asked_at == 0 || since >= (int64_t)wait * 1000 * RENEW_LASTED;
    t->wait = t->wait == 0 ? RENEW_SECONDS : lasted ? wait / 2 : 2 * wait;
    if (t->wait < RENEW_SECONDS)
        t->wait = RENEW_SECONDS;
    if (t->wait > RENEW_SECONDS_MAX)
        t->wait = RENEW_SECONDS_MAX;
    return true;
}

static bool is_value(struct secret *value, const char *hash)
{
    char now[AWS_HEX + 1];
    return value == NULL || aws_hash(secret_slice(value), now) < 0 || strcmp(now, hash) == 0;
}

static void answer(struct channel *c, uint32_t req, bool ok)
{
    struct msg m;
    msg_init(&m, W_SECRET_RENEWED);
    msg_put_u32(&m, req);
    msg_put_u8(&m, ok);
    ipc_send(c->ipc, &m);
}

static void on_value(void *arg, struct secret *value, unsigned ttl UNUSED, const char *why UNUSED)
{
    struct asked *a = arg;
    struct channel *c = a->channel;
    uint32_t req = a->req;
    bool ok = !is_value(value, a->more);
    vault_asked_free(a);
    answer(c, req, ok);
}

/* Under way already, or begun. */
static bool renew(struct vault *v, struct held_secret *s, const char *hash)
{
    if (s->minting)
        return vault_entry_renew(s->entry);
    if (v->finishing || !vault_turn_take(&s->turn, now_ms()))
        return false;
    memcpy(s->refused, hash, sizeof s->refused);
    bool begun = vault_entry_renew(s->entry);
    s->refused[0] = 0;
    return begun;
}

static void wait_for_value(struct channel *c, uint32_t req, struct held_secret *s, const char *hash)
{
    struct asked *a = vault_asked_new(c, req);
    if (a)
        a->more = strdup(hash);
    if (a == NULL || a->more == NULL) {
        if (a)
            vault_asked_free(a);
        answer(c, req, false);
        return;
    }
    struct vault_wait *w = vault_entry_get(s->entry, on_value, a);
    if (w) /* else `a` is gone already */
        a->wait = w;
}

int vault_refused(struct channel *c, struct msg *m)
{
    struct vault *v = c->vault;
    struct slice name, sent;
    uint32_t req;
    char hash[AWS_HEX + 1];
    if (msg_get_u32(m, &req) < 0 || msg_get_slice(m, SECRET_NAME_MAX, &name) < 0 ||
        msg_get_slice(m, AWS_HEX, &sent) < 0 || msg_end(m) < 0 || sent.n != AWS_HEX)
        return -1;
    memcpy(hash, sent.p, AWS_HEX);
    hash[AWS_HEX] = 0;
    size_t i = vault_index(v, name);
    struct held_secret *s = i < v->n && c->released[i] ? &v->secrets[i] : NULL;
    if (s == NULL || s->mint == NULL || !derived_renewable(s->mint)) {
        answer(c, req, false);
        return 0;
    }
    struct secret *value = vault_entry_value(s->entry);
    if (value && !is_value(value, hash)) /* somebody saw it before */
        answer(c, req, true);
    else if (value && renew(v, s, hash))
        wait_for_value(c, req, s, hash);
    else
        answer(c, req, false);
    return 0;
}
