/* Secrets that are made: their parts are got from the other entries, the endpoint is asked, what it
 * answers is the entry's value. A refresh token that the endpoint replaced is kept by the parent in
 * a file before the token that came with it is used: a vault that dies in between has lost nothing.
 */
#include "aws_sign.h"
#include "secret_value.h"
#include "vault_internal.h"
#include "wire.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct part {
    struct minting *minting;
    struct vault_wait *wait;
    struct secret *value;
};

struct minting {
    struct vault *vault;
    struct held_secret *secret;
    struct part parts[DERIVED_INPUTS_MAX];
    size_t missing;
    bool renewing;             /* a login is prolonged, not made */
    bool relogged;             /* the login was refused and made anew */
    bool started;              /* all parts were asked for */
    bool locked;               /* its login's file is, or the parent was asked to */
    bool looked;               /* for a kept refresh token, and found: */
    char refused[AWS_HEX + 1]; /* what a server refused is not taken out of a file again */
    struct secret *kept;
    void *fetch;
    struct event *again;       /* asks for the lock once more */
    struct derived_answer got; /* while a rotated token is being kept; without a value: */
    char why[VAULT_WHY_MAX];   /* it came with none that can be used */
};

static void tell_login(const struct minting *m, struct msg *q)
{
    msg_put_str(q, derived_input(m->secret->mint, 0));
}

static void unlock_login(struct minting *m)
{
    struct msg q;
    m->locked = false;
    msg_init(&q, W_LOGIN_UNLOCK);
    tell_login(m, &q);
    ipc_send(m->vault->control, &q);
}

static void minting_free(struct minting *m)
{
    if (m->locked)
        unlock_login(m);
    for (size_t i = 0; i < DERIVED_INPUTS_MAX; i++) {
        vault_entry_cancel(m->parts[i].wait);
        secret_unref(m->parts[i].value);
    }
    if (m->fetch)
        m->vault->fetcher->cancel(m->fetch);
    if (m->again)
        event_free(m->again);
    secret_unref(m->got.value);
    secret_unref(m->got.rotated);
    secret_unref(m->kept);
    m->secret->minting = NULL;
    m->secret->keep_req = 0;
    free(m);
}

/* What the endpoint was asked may have spent the old refresh token, and the new one is not kept. */
static bool replaces_token(const struct held_secret *s)
{
    const struct minting *m = s->minting;
    if (m && derived_is_login(s->mint))
        return m->fetch || m->got.value || m->got.rotated; /* which go into its file */
    return m && derived_refreshes(s->mint) >= 0 && (m->fetch || m->got.rotated);
}

void vault_end_if_finished(struct vault *v)
{
    if (vault_home_busy(v))
        return;
    for (size_t i = 0; i < v->n; i++)
        if (replaces_token(&v->secrets[i]))
            return;
    if (v->finishing)
        vault_end(v);
}

int vault_mint_finish(struct vault *v, struct msg *msg)
{
    if (msg_end(msg) < 0)
        return -1;
    v->finishing = true;
    vault_end_if_finished(v);
    return 0;
}

static void failed(struct minting *m, const char *why)
{
    struct vault *v = m->vault;
    struct vault_entry *e = m->secret->entry;
    char text[VAULT_WHY_MAX];
    snprintf(text, sizeof text, "%s", why);
    minting_free(m);
    vault_entry_minted(e, NULL, 0, text);
    vault_end_if_finished(v);
}

static void succeeded(struct minting *m)
{
    struct vault *v = m->vault;
    struct vault_entry *e = m->secret->entry;
    struct derived_answer got = m->got;
    m->got = (struct derived_answer){.value = NULL};
    minting_free(m);
    secret_unref(got.rotated);
    vault_entry_minted(e, got.value, got.seconds, NULL);
    vault_end_if_finished(v);
}

/* ---- what must not be lost ---- */

static void keep(struct minting *m)
{
    struct msg q;
    struct buf line;
    struct held_secret *s = m->secret;
    s->keep_req = ++m->vault->last_req;
    buf_init_wiped(&line, SECRET_MAX);
    if (buf_printf(&line, "%s\n", s->rotated_for) < 0 ||
        buf_append_slice(&line, secret_slice(m->got.rotated)) < 0) {
        buf_free(&line);
        failed(m, "its new refresh token is too long to be kept");
        return;
    }
    msg_init(&q, W_TOKEN_SAVE);
    msg_put_u32(&q, s->keep_req);
    msg_put_str(&q, vault_entry_name(s->entry));
    msg_put_slice(&q, buf_slice(&line));
    buf_free(&line);
    ipc_send(m->vault->control, &q);
}

/* The refresh token to use: the one that the endpoint gave last, if it goes back to the configured
 * one. A new login is not shadowed by an old one. */
static struct secret *refresh_token(struct minting *m, struct secret *configured)
{
    struct held_secret *s = m->secret;
    char now[AWS_HEX + 1];
    if (aws_hash(secret_slice(configured), now) < 0)
        return configured;
    struct slice kept = m->kept ? secret_slice(m->kept) : (struct slice){"", 0};
    if (s->rotated == NULL && kept.n > AWS_HEX + 1 && kept.p[AWS_HEX] == '\n' &&
        slice_eq_str((struct slice){kept.p, AWS_HEX}, now)) {
        s->rotated = secret_new(kept.p + AWS_HEX + 1, kept.n - AWS_HEX - 1);
        memcpy(s->rotated_for, now, sizeof now);
    }
    if (s->rotated && strcmp(s->rotated_for, now) != 0) {
        secret_unref(s->rotated);
        s->rotated = NULL;
    }
    memcpy(s->rotated_for, now, sizeof now);
    return s->rotated ? s->rotated : configured;
}

static struct held_secret *by_req(struct vault *v, uint32_t req)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->secrets[i].minting && v->secrets[i].keep_req == req)
            return &v->secrets[i];
    return NULL;
}

int vault_mint_saved(struct vault *v, struct msg *msg)
{
    uint32_t req;
    uint8_t ok;
    if (msg_get_u32(msg, &req) < 0 || msg_get_u8(msg, &ok) < 0 || msg_end(msg) < 0 || ok > 1)
        return -1;
    struct held_secret *s = by_req(v, req);
    if (s == NULL || s->minting->got.rotated == NULL)
        return 0;
    /* the old one is spent in any case */
    secret_unref(s->rotated);
    s->rotated = secret_ref(s->minting->got.rotated);
    if (!ok)
        failed(s->minting, "its new refresh token could not be kept in a file");
    else if (s->minting->got.value == NULL)
        failed(s->minting, s->minting->why);
    else
        succeeded(s->minting);
    return 0;
}

/* ---- logins of other programs ---- */

enum {
    LOGIN_FRESH_SECONDS = 300, /* with less left it is refreshed, as the programs do it */
    LOGIN_MARGIN = 10,         /* seconds before the end, for clocks and for what is under way */
    LOGIN_SHORT = 5,           /* while another refreshes it, or it says no end */
    LOGIN_LIFE_MAX = 86400,
    LOGIN_AGAIN_MS = 500 /* while another holds the lock, for as long as an entry waits */
};

static void fetch_token(struct minting *m);

static bool is_refused(const struct minting *m, const struct secret *access)
{
    char hash[AWS_HEX + 1];
    return m->refused[0] &&
           (aws_hash(secret_slice(access), hash) < 0 || strcmp(hash, m->refused) == 0);
}

/* The token that the file has, if it is good for more than `least` seconds. */
static bool serve_login(struct minting *m, int64_t least, unsigned most)
{
    int64_t until;
    struct secret *access = derived_session(m->secret->mint, m->parts[0].value, &until);
    int64_t left = until ? until - (int64_t)time(NULL) - LOGIN_MARGIN : LOGIN_FRESH_SECONDS;
    if (access == NULL || left <= least || is_refused(m, access)) {
        secret_unref(access);
        return false;
    }
    m->got =
        (struct derived_answer){.value = access, .seconds = (unsigned)(left < most ? left : most)};
    succeeded(m);
    return true;
}

static void ask_lock(struct minting *m)
{
    struct msg q;
    m->secret->keep_req = ++m->vault->last_req;
    msg_init(&q, W_LOGIN_LOCK);
    msg_put_u32(&q, m->secret->keep_req);
    tell_login(m, &q);
    m->locked = true;
    ipc_send(m->vault->control, &q);
}

static void on_lock_again(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    ask_lock(arg);
}

/* What it does to the file is seen when it has let go, if not before. */
static void wait_for_lock(struct minting *m)
{
    struct timeval tv = {0, LOGIN_AGAIN_MS * 1000};
    if (m->again == NULL)
        m->again = event_new(m->vault->base, -1, 0, on_lock_again, m);
    if (m->again == NULL || event_add(m->again, &tv) < 0)
        failed(m, "another program is refreshing its login");
}

static void begin_login(struct minting *m)
{
    if (serve_login(m, LOGIN_FRESH_SECONDS - LOGIN_MARGIN, LOGIN_LIFE_MAX))
        return;
    if (!derived_may_refresh(m->secret->mint)) {
        if (!serve_login(m, 0, LOGIN_LIFE_MAX))
            failed(m, "its login has ended, and only its program may refresh it: start that once "
                      "on the host, or give Durward a login of its own");
        return;
    }
    ask_lock(m);
}

/* What the file was before the lock may have been refreshed meanwhile. */
static void seen_login(struct minting *m, struct slice session)
{
    bool held = m->locked;
    struct secret *now = session.n ? secret_new(session.p, session.n) : NULL;
    if (now == NULL) {
        failed(m, "no memory for a secret");
        return;
    }
    secret_unref(m->parts[0].value);
    m->parts[0].value = now;
    if (serve_login(m, LOGIN_FRESH_SECONDS - LOGIN_MARGIN, LOGIN_LIFE_MAX))
        return;
    if (held)
        fetch_token(m);
    else if (!serve_login(m, 0, LOGIN_SHORT))
        wait_for_lock(m);
}

int vault_login_locked(struct vault *v, struct msg *msg)
{
    uint32_t req;
    uint8_t end;
    struct slice session;
    char why[VAULT_WHY_MAX];
    if (msg_get_u32(msg, &req) < 0 || msg_get_u8(msg, &end) < 0 || end > 2 ||
        msg_get_slice(msg, SECRET_MAX, &session) < 0 || msg_end(msg) < 0)
        return -1;
    struct held_secret *s = by_req(v, req);
    if (s == NULL || !derived_is_login(s->mint))
        return 0; /* it timed out, and said that it needs no lock */
    s->keep_req = 0;
    s->minting->locked = end == 1;
    if (end < 2) {
        seen_login(s->minting, session);
        return 0;
    }
    snprintf(why, sizeof why, "%.*s", SL(session));
    if (!serve_login(s->minting, 0, LOGIN_SHORT))
        failed(s->minting, why);
    return 0;
}

/* The token that is there goes on for what is left of it. */
static void not_fetched(struct minting *m, const char *why)
{
    secret_unref(m->got.rotated);
    m->got.rotated = NULL;
    if (!derived_is_login(m->secret->mint) || !serve_login(m, 0, LOGIN_SHORT))
        failed(m, why);
}

static void save_login(struct minting *m)
{
    struct msg q;
    if (m->got.rotated == NULL && m->secret->rotated) /* it was asked with, and goes on */
        m->got.rotated = secret_ref(m->secret->rotated);
    m->secret->keep_req = ++m->vault->last_req;
    msg_init(&q, W_LOGIN_SAVE); /* its body is wiped when sent */
    msg_put_u32(&q, m->secret->keep_req);
    tell_login(m, &q);
    msg_put_slice(&q, m->got.value ? secret_slice(m->got.value) : SLICE(""));
    msg_put_slice(&q, m->got.rotated ? secret_slice(m->got.rotated) : SLICE(""));
    msg_put_u64(&q, m->got.until > 0 ? (uint64_t)m->got.until : 0);
    ipc_send(m->vault->control, &q);
    m->locked = false; /* saving lets go of it */
}

/* Its file may take no new one now; the one that it has is spent all the same. */
static void keep_unsaved(struct held_secret *s, bool saved)
{
    if (!saved && s->minting->got.rotated == NULL)
        return; /* the file's goes on */
    secret_unref(s->rotated);
    s->rotated = saved ? NULL : secret_ref(s->minting->got.rotated);
}

/* The session that was read, with the refresh token that took the place of the file's and is not in
 * it. */
static int use_unsaved(struct minting *m)
{
    struct secret *old = derived_session_refresh(m->parts[0].value), *with = NULL;
    struct secret *now = old ? refresh_token(m, old) : NULL;
    bool other = now != old;
    if (other)
        with = derived_session_with(m->parts[0].value, now);
    if (with) {
        secret_unref(m->parts[0].value);
        m->parts[0].value = with;
    }
    secret_unref(old);
    return other && with == NULL ? -1 : 0;
}

int vault_login_saved(struct vault *v, struct msg *msg)
{
    uint32_t req;
    uint8_t ok;
    char why[VAULT_WHY_MAX];
    if (msg_get_u32(msg, &req) < 0 || msg_get_u8(msg, &ok) < 0 || ok > 1 ||
        msg_get_str(msg, why, sizeof why) < 0 || msg_end(msg) < 0)
        return -1;
    struct held_secret *s = by_req(v, req);
    if (s == NULL || (s->minting->got.value == NULL && s->minting->got.rotated == NULL))
        return 0;
    keep_unsaved(s, ok);
    if (!ok)
        failed(s->minting, why);
    else if (s->minting->got.value == NULL)
        not_fetched(s->minting, s->minting->why);
    else
        succeeded(s->minting);
    return 0;
}

/* ---- the endpoint ---- */

static void ask(struct minting *m);
static void body_buffer(struct minting *m);

/* What a store gave is checked as any other is: a header must be able to hold it. */
static void take_stored(struct minting *m)
{
    struct err err = {0};
    m->got.value = secret_value_of(m->got.value, vault_entry_lines(m->secret->entry), &err);
    if (m->got.value)
        succeeded(m);
    else
        failed(m, err.text);
}

/* A login may end before its time (revoked, the store started anew): once it is made anew. */
static void log_in_again(struct minting *m)
{
    struct vault *v = m->vault;
    size_t at = vault_index(v, slice_str(derived_input(m->secret->mint, 0)));
    m->relogged = true;
    m->started = false;
    secret_unref(m->parts[0].value);
    m->parts[0].value = NULL;
    if (at < v->n)
        vault_entry_changed(v->secrets[at].entry);
    body_buffer(m);
}

/* The token that was there goes on when it could be prolonged by more than a remainder; else there
 * is a new login. */
static void renewed(struct minting *m, bool ok)
{
    if (ok && m->got.seconds >= m->secret->lease / 2) {
        succeeded(m);
        return;
    }
    secret_unref(m->got.value);
    m->got.value = NULL;
    m->secret->lease = 0;
    ask(m);
}

static void take(struct minting *m)
{
    const struct derived *d = m->secret->mint;
    if (derived_renews(d))
        m->secret->lease = m->got.seconds;
    if (derived_is_login(d))
        save_login(m);
    else if (m->got.rotated)
        keep(m);
    else if (derived_is_stored(d))
        take_stored(m);
    else
        succeeded(m);
}

/* The endpoint has spent the refresh token, and what it gave for it cannot be used: the next one is
 * not lost, too. */
static void spent(struct minting *m, const char *why)
{
    snprintf(m->why, sizeof m->why, "%s", why);
    if (derived_is_login(m->secret->mint))
        save_login(m);
    else
        keep(m);
}

static void on_answer(void *arg, unsigned status, struct slice body, const char *why)
{
    struct minting *m = arg;
    struct err err = {0};
    m->fetch = NULL;
    if (status == 0) {
        err_set(&err, ERR_UNREADY, "its endpoint: %s", why);
        not_fetched(m, err.text);
    } else if (m->renewing) {
        m->renewing = false;
        renewed(m, derived_reply(m->secret->mint, status, body, time(NULL), &m->got, &err) == 0);
    } else if (derived_is_itself(m->secret->mint) && status >= 400 && status < 500) {
        m->got = (struct derived_answer){.value = secret_ref(m->parts[0].value), .seconds = 300};
        succeeded(m);
    } else if (derived_needs_login(m->secret->mint) && (status == 401 || status == 403) &&
               !m->relogged) {
        log_in_again(m);
    } else if (derived_reply(m->secret->mint, status, body, time(NULL), &m->got, &err) < 0) {
        if (m->got.rotated)
            spent(m, err.text);
        else
            not_fetched(m, err.text);
    } else {
        take(m);
    }
}

static void fetch_token(struct minting *m)
{
    struct secret *in[DERIVED_INPUTS_MAX];
    struct err err = {0};
    struct token_request r;
    const struct token_fetcher *f = m->vault->fetcher;
    if (derived_is_login(m->secret->mint) && use_unsaved(m) < 0) {
        failed(m, "no memory for a secret");
        return;
    }
    for (size_t i = 0; i < DERIVED_INPUTS_MAX; i++)
        in[i] = m->parts[i].value;
    int r2 = derived_refreshes(m->secret->mint);
    if ((r2 >= 0 || derived_is_login(m->secret->mint)) && m->vault->finishing) {
        failed(m, "the daemon ends");
        return;
    }
    if (r2 >= 0)
        in[r2] = refresh_token(m, in[r2]);
    struct secret *old = derived_renews(m->secret->mint) && m->secret->lease
                             ? vault_entry_value(m->secret->entry)
                             : NULL;
    m->renewing = old != NULL;
    int ok = f ? derived_request(m->secret->mint, in, old, time(NULL), &r, &err)
               : err_set(&err, ERR_UNREADY, "there is no way to its endpoint");
    if (ok == 0) {
        vault_renew_asked(m->secret);
        m->fetch = f->start(f->self, &r, on_answer, m);
    }
    if (ok == 0 && m->fetch == NULL)
        err_set(&err, ERR_UNREADY, "there is no way to its endpoint yet");
    if (f)
        token_request_free(&r);
    if (m->fetch == NULL)
        failed(m, err.text);
}

static void ask(struct minting *m)
{
    struct secret *in[DERIVED_INPUTS_MAX];
    struct err err = {0};
    if (derived_is_login(m->secret->mint)) {
        begin_login(m);
        return;
    }
    if (!derived_is_local(m->secret->mint)) {
        fetch_token(m);
        return;
    }
    for (size_t i = 0; i < DERIVED_INPUTS_MAX; i++)
        in[i] = m->parts[i].value;
    m->got.value = derived_local(m->secret->mint, in, &err);
    m->got.seconds = VAULT_PAIR_SECONDS;
    if (m->got.value)
        succeeded(m);
    else
        failed(m, err.text);
}

/* ---- the parts ---- */

static void on_part(void *arg, struct secret *value, unsigned ttl UNUSED, const char *why)
{
    struct part *p = arg;
    struct minting *m = p->minting;
    p->wait = NULL;
    if (value == NULL) {
        struct err err = {0};
        err_set(&err, ERR_UNREADY, "%s: %s", derived_input(m->secret->mint, (size_t)(p - m->parts)),
                why);
        if (m->started)
            failed(m, err.text);
        else
            m->missing = SIZE_MAX; /* the caller sees it */
        return;
    }
    p->value = secret_ref(value);
    m->missing--;
    if (m->started && m->missing == 0)
        ask(m);
}

static void body_buffer(struct minting *m)
{
    const char *name;
    struct vault *v = m->vault;
    for (size_t i = 0; derived_input(m->secret->mint, i) != NULL; i++)
        m->missing++;
    for (size_t i = 0; (name = derived_input(m->secret->mint, i)) != NULL; i++) {
        size_t at = vault_index(v, slice_str(name));
        m->parts[i].minting = m;
        if (at == v->n) {
            failed(m, "a secret that it is made of is not configured");
            return;
        }
        struct vault_wait *w = vault_entry_get(v->secrets[at].entry, on_part, &m->parts[i]);
        if (m->missing == SIZE_MAX) {
            failed(m, "a secret that it is made of cannot be read");
            return;
        }
        if (w)
            m->parts[i].wait = w;
    }
    m->started = true;
    if (m->missing == 0)
        ask(m);
}

/* A token that was rotated by an earlier vault lies with the parent. */
int vault_mint_found(struct vault *v, struct msg *msg)
{
    uint32_t req;
    struct slice text;
    if (msg_get_u32(msg, &req) < 0 || msg_get_slice(msg, SECRET_MAX, &text) < 0 || msg_end(msg) < 0)
        return -1;
    struct held_secret *s = by_req(v, req);
    if (s == NULL || s->minting->looked)
        return 0;
    s->minting->looked = true;
    if (text.n > 0)
        s->minting->kept = secret_new(text.p, text.n);
    body_buffer(s->minting);
    return 0;
}

void vault_mint_start(void *vault, struct vault_entry *e)
{
    struct vault *v = vault;
    struct held_secret *s = vault_secret_of(v, e);
    struct minting *m = s->mint ? calloc(1, sizeof *m) : NULL;
    if (m == NULL) {
        vault_entry_minted(e, NULL, 0, "out of memory");
        return;
    }
    m->vault = v;
    m->secret = s;
    memcpy(m->refused, s->refused, sizeof m->refused);
    s->refused[0] = 0;
    s->minting = m;
    if (derived_refreshes(s->mint) < 0 || s->rotated) {
        body_buffer(m);
        return;
    }
    struct msg q;
    s->keep_req = ++v->last_req;
    msg_init(&q, W_TOKEN_GET);
    msg_put_u32(&q, s->keep_req);
    msg_put_str(&q, vault_entry_name(e));
    ipc_send(v->control, &q);
}

void vault_mint_stop(void *vault, struct vault_entry *e)
{
    struct held_secret *s = vault_secret_of(vault, e);
    if (s && s->minting) {
        minting_free(s->minting);
        vault_end_if_finished(vault);
    }
}
