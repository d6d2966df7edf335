/* Runs the fetch of one secret: opening, reading, a command's exit, waiting after failures, and
 * renewal before the end. vault_mint.c makes values of others through a hook. */
#include "vault_entry.h"

#include "env_block.h"
#include "host_agent.h"
#include "secret_value.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* IDLE: nothing under way (a value may be there). MINTING: it is being made of others. OPENING: the
 * parent was asked. READING: the descriptor is here; for a command its exit is awaited as well. */
enum entry_state { ENTRY_IDLE, ENTRY_OPENING, ENTRY_READING, ENTRY_MINTING };

struct vault_wait {
    struct vault_entry *entry;
    vault_fn fn;
    void *arg;
    TAILQ_ENTRY(vault_wait) link;
};

enum { VAULT_RENEWING_MS = 2000 };

struct vault_entry {
    const struct vault_hooks *hooks;
    char *name;
    enum store_kind store;
    unsigned ttl;
    bool lines;
    enum entry_state state;
    struct secret *value;    /* the last good one, or NULL */
    int64_t fresh_until;     /* ms, monotonic */
    int64_t ahead_at;        /* MINT: from here on it is made anew while it still serves */
    int64_t retry_at;        /* no fetch before, after a failure */
    unsigned failures;       /* MINT: one after the other */
    char why[VAULT_WHY_MAX]; /* the last failure */
    uint32_t req;
    struct event *timeout, *readable;
    int fd;
    struct secret *raw; /* being read, SECRET_MAX bytes of room */
    size_t got;
    bool kept;                    /* alive, by the timer `timeout` while it is IDLE */
    bool down;                    /* the last fetch failed */
    bool again;                   /* it changed while it was being read */
    bool refused;                 /* its value, which is made anew before its time */
    bool whole;                   /* end of file was seen */
    bool exited;                  /* the command is gone */
    char key[HOST_AGENT_KEY_MAX]; /* AGENT: which one */
    TAILQ_HEAD(, vault_wait) waits;
};

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void stop_reading(struct vault_entry *e)
{
    if (e->readable) {
        event_free(e->readable);
        e->readable = NULL;
    }
    if (e->fd >= 0)
        close(e->fd);
    e->fd = -1;
}

static void set_state(struct vault_entry *e, enum entry_state to)
{
    struct timeval tv = {VAULT_FETCH_SECONDS, 0};
    e->state = to;
    if (to == ENTRY_OPENING || to == ENTRY_MINTING)
        event_add(e->timeout, &tv);
    if (to != ENTRY_IDLE)
        return;
    event_del(e->timeout);
    e->refused = false;
    stop_reading(e);
    secret_unref(e->raw);
    e->raw = NULL;
    e->got = 0;
    e->whole = e->exited = false;
}

/* Seconds that a requester may keep the value. */
static unsigned ttl_left(const struct vault_entry *e)
{
    if (e->store == STORE_ENV)
        return VAULT_ENV_TTL;
    int64_t now = now_ms(), left = e->fresh_until - now;
    if (e->store == STORE_MINT && now < e->ahead_at) /* they are to ask again when it is renewed */
        left = e->ahead_at - now;
    else if (e->store == STORE_MINT && left > VAULT_RENEWING_MS)
        left = VAULT_RENEWING_MS;
    if (e->store == STORE_FILE && left < VAULT_FILE_MS)
        return VAULT_FILE_MS / 1000;
    return left > 0 ? (unsigned)(left / 1000) : 0;
}

/* Those who wait now are answered; whom a callback adds waits behind them. */
static void answer_all(struct vault_entry *e, struct secret *value, const char *why)
{
    struct vault_wait *w;
    unsigned n = 0, ttl = value ? ttl_left(e) : 0;
    TAILQ_FOREACH(w, &e->waits, link)
    n++;
    while (n-- > 0 && (w = TAILQ_FIRST(&e->waits)) != NULL) {
        vault_fn fn = w->fn;
        void *arg = w->arg;
        vault_entry_cancel(w);
        fn(arg, value, ttl, why);
    }
}

/* A token is good until it ends, whether or not there is another. */
static bool still_serves(const struct vault_entry *e)
{
    return e->store == STORE_MINT && e->value && now_ms() < e->fresh_until;
}

static int64_t backoff_ms(struct vault_entry *e)
{
    int64_t ms = VAULT_BACKOFF_MS;
    if (e->store != STORE_MINT)
        return ms;
    for (unsigned i = 0; i < e->failures && ms < VAULT_BACKOFF_MAX_MS; i++)
        ms *= 2;
    e->failures++;
    return ms < VAULT_BACKOFF_MAX_MS ? ms : VAULT_BACKOFF_MAX_MS;
}

static void wake_in(struct vault_entry *e, int64_t ms)
{
    struct timeval tv = {ms / 1000, ms % 1000 * 1000};
    if (e->kept && e->state == ENTRY_IDLE)
        event_add(e->timeout, &tv);
}

static void fail(struct vault_entry *e, const char *why)
{
    char text[sizeof e->why];
    snprintf(text, sizeof text, "%s", why);
    bool early = e->refused && still_serves(e);
    set_state(e, ENTRY_IDLE);
    if (!still_serves(e)) { /* a value that cannot be read again is not used any longer */
        secret_unref(e->value);
        e->value = NULL;
    }
    int64_t wait = e->again ? 0 : backoff_ms(e);
    e->retry_at = now_ms() + wait;
    wake_in(e, wait);
    e->again = false;
    memcpy(e->why, text, sizeof text);
    if (!e->down)
        e->hooks->state(e->hooks->arg, e, e->why);
    e->down = true;
    struct secret *old = early ? secret_ref(e->value) : NULL;
    answer_all(e, old, old ? NULL : e->why);
    secret_unref(old);
}

static int64_t keep_ms(const struct vault_entry *e)
{
    int64_t ttl = (int64_t)e->ttl * 1000;
    return e->store == STORE_FILE && ttl < VAULT_FILE_MS ? VAULT_FILE_MS : ttl;
}

/* Takes value over. */
static void succeed(struct vault_entry *e, struct secret *value)
{
    bool changed = e->value && !secret_eq(e->value, secret_slice(value));
    set_state(e, ENTRY_IDLE);
    secret_unref(e->value);
    e->value = value;
    e->fresh_until = now_ms() + keep_ms(e);
    if (e->down)
        e->hooks->state(e->hooks->arg, e, NULL);
    e->down = false;
    if (changed)
        e->hooks->changed(e->hooks->arg, e);
    secret_ref(value); /* a callback may start the fetch that replaces it */
    bool again = e->again;
    e->again = false;
    answer_all(e, value, NULL);
    secret_unref(value);
    if (again)
        vault_entry_changed(e);
}

/* All bytes are here (and the command ended well). */
static void finish(struct vault_entry *e)
{
    struct err err = {0};
    if (e->got == 0) {
        fail(e, "its value is empty");
        return;
    }
    struct secret *raw = e->raw;
    e->raw = NULL;
    secret_shorten(raw, e->got);
    struct secret *value = secret_value_of(raw, e->lines, &err);
    if (value)
        succeed(e, value);
    else
        fail(e, err.text);
}

/* Of an agent's list, once all of it is here, the key that the configuration names. False: more is
 * to come. */
static bool finish_agent(struct vault_entry *e)
{
    struct err err = {0};
    struct slice list;
    size_t n;
    int r = host_agent_next((struct slice){(char *)secret_bytes(e->raw), e->got}, &list, &n);
    if (r == 0)
        return false;
    struct secret *value = r > 0 ? host_agent_find(list, slice_str(e->key), &err) : NULL;
    if (value)
        succeed(e, value);
    else
        fail(e, r < 0 ? "its agent's list of keys is too long" : err.text);
    return true;
}

/* A file is read from its start, wherever the descriptor stands. */
static ssize_t read_more(const struct vault_entry *e, void *to, size_t n)
{
    return e->store == STORE_FILE ? pread(e->fd, to, n, (off_t)e->got) : read(e->fd, to, n);
}

/* Read what is there. 1: end of file; 0: no more now; -1: failed (and said so). */
static int drain(struct vault_entry *e)
{
    for (;;) {
        unsigned char over;
        bool full = e->got == SECRET_MAX;
        ssize_t n = read_more(e, full ? &over : secret_bytes(e->raw) + e->got,
                              full ? 1 : SECRET_MAX - e->got);
        if (n == 0)
            return 1;
        if (n > 0 && full) {
            fail(e, "its value is longer than 65536 bytes");
            return -1;
        }
        if (n > 0)
            e->got += (size_t)n;
        else if (errno == EAGAIN)
            return 0;
        else if (errno != EINTR) {
            fail(e, "reading it failed");
            return -1;
        }
    }
}

/* Both the last byte and the exit are awaited. At the exit all that the command wrote is in the
 * pipe, so a process that it left behind with the other end open changes nothing. */
static void on_readable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct vault_entry *e = arg;
    int r = drain(e);
    if (r < 0)
        return;
    if (e->store == STORE_AGENT) {
        if (!finish_agent(e) && r == 1)
            fail(e, "its agent ended the connection");
        return;
    }
    e->whole = e->whole || r == 1 || e->exited;
    if (e->whole && (e->exited || e->store == STORE_FILE))
        finish(e);
    else if (r == 1)
        event_del(e->readable);
}

static void fetch(struct vault_entry *e);

static void on_timeout(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct vault_entry *e = arg;
    if (e->state == ENTRY_IDLE) { /* it is kept alive */
        fetch(e);
        return;
    }
    if (e->state == ENTRY_MINTING) {
        e->hooks->unmint(e->hooks->arg, e);
        fail(e, "its endpoint did not answer within 30 s");
        return;
    }
    fail(e, e->store == STORE_COMMAND ? "its command did not end within 30 s"
            : e->store == STORE_AGENT ? "its agent did not answer within 30 s"
                                      : "its store could not be opened within 30 s");
}

static void fetch(struct vault_entry *e)
{
    struct err err = {0};
    if (e->store == STORE_ENV) {
        struct secret *raw = env_block_get(e->hooks->env_fd, e->name, &err);
        if (raw == NULL || secret_value_check(secret_slice(raw), e->lines, &err) < 0) {
            secret_unref(raw);
            fail(e, err.text);
        } else {
            succeed(e, raw);
        }
        return;
    }
    if (e->store == STORE_MINT) {
        set_state(e, ENTRY_MINTING);
        e->hooks->mint(e->hooks->arg, e);
        return;
    }
    set_state(e, ENTRY_OPENING);
    e->req = e->hooks->open(e->hooks->arg, e->name);
}

static bool fresh(const struct vault_entry *e)
{
    return e->value && !e->refused && (e->store == STORE_ENV || now_ms() < e->fresh_until);
}

struct vault_entry *vault_entry_new(const struct vault_hooks *hooks, const char *name,
                                    enum store_kind store, unsigned ttl, bool lines)
{
    struct vault_entry *e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    TAILQ_INIT(&e->waits);
    e->hooks = hooks;
    e->store = store;
    e->ttl = ttl;
    e->lines = lines;
    e->fd = -1;
    e->name = strdup(name);
    e->timeout = event_new(hooks->base, -1, 0, on_timeout, e);
    if (e->name == NULL || e->timeout == NULL) {
        vault_entry_free(e);
        return NULL;
    }
    return e;
}

void vault_entry_free(struct vault_entry *e)
{
    struct vault_wait *w;
    if (e == NULL)
        return;
    while ((w = TAILQ_FIRST(&e->waits)) != NULL)
        vault_entry_cancel(w);
    if (e->timeout) {
        if (e->state == ENTRY_MINTING)
            e->hooks->unmint(e->hooks->arg, e);
        set_state(e, ENTRY_IDLE);
        event_free(e->timeout);
    }
    secret_unref(e->value);
    free(e->name);
    free(e);
}

const char *vault_entry_name(const struct vault_entry *e)
{
    return e->name;
}

bool vault_entry_lines(const struct vault_entry *e)
{
    return e->lines;
}

struct secret *vault_entry_value(const struct vault_entry *e)
{
    return e->value;
}

struct vault_wait *vault_entry_get(struct vault_entry *e, vault_fn fn, void *arg)
{
    if (still_serves(e) && e->state == ENTRY_IDLE && now_ms() >= e->ahead_at &&
        now_ms() >= e->retry_at)
        fetch(e); /* nobody waits for it */
    if (fresh(e) && (e->state == ENTRY_IDLE || e->state == ENTRY_MINTING)) {
        struct secret *value = secret_ref(e->value); /* the callback may bring it down */
        fn(arg, value, ttl_left(e), NULL);
        secret_unref(value);
        return NULL;
    }
    if (e->state == ENTRY_IDLE && now_ms() < e->retry_at) {
        fn(arg, NULL, 0, e->why);
        return NULL;
    }
    struct vault_wait *w = calloc(1, sizeof *w);
    if (w == NULL) {
        fn(arg, NULL, 0, "out of memory");
        return NULL;
    }
    w->entry = e;
    w->fn = fn;
    w->arg = arg;
    TAILQ_INSERT_TAIL(&e->waits, w, link);
    if (e->state != ENTRY_IDLE)
        return w;
    fetch(e); /* an environment secret is answered before this returns */
    return e->state == ENTRY_IDLE ? NULL : w;
}

void vault_entry_cancel(struct vault_wait *w)
{
    if (w == NULL)
        return;
    TAILQ_REMOVE(&w->entry->waits, w, link);
    free(w);
}

void vault_entry_minted(struct vault_entry *e, struct secret *value, unsigned seconds,
                        const char *why)
{
    if (e->state != ENTRY_MINTING) {
        secret_unref(value);
        return;
    }
    if (value == NULL) {
        fail(e, why);
        return;
    }
    e->failures = 0;
    e->ttl = seconds;
    e->ahead_at = now_ms() + (int64_t)seconds * 800;
    succeed(e, value);
    wake_in(e, (int64_t)seconds * 800);
}

void vault_entry_keep(struct vault_entry *e)
{
    e->kept = true;
    wake_in(e, VAULT_KEEP_MS);
}

void vault_entry_changed(struct vault_entry *e)
{
    e->fresh_until = 0; /* nobody gets the old one, who asks while it is made anew either */
    if (e->state != ENTRY_IDLE) {
        e->again = true;
        return;
    }
    e->ahead_at = e->retry_at = 0;
    if (e->value)
        e->hooks->changed(e->hooks->arg, e);
}

bool vault_entry_renew(struct vault_entry *e)
{
    bool busy = e->state == ENTRY_MINTING;
    if (e->store != STORE_MINT || (!busy && (e->state != ENTRY_IDLE || now_ms() < e->retry_at)))
        return false;
    e->refused = true;
    if (!busy)
        fetch(e);
    return true;
}

void vault_entry_retry(struct vault_entry *e)
{
    e->retry_at = 0;
    e->failures = 0;
}

bool vault_entry_opened(struct vault_entry *e, uint32_t req, int fd, const char *why)
{
    if (e->state != ENTRY_OPENING || e->req != req)
        return false;
    if (fd < 0) {
        fail(e, why);
        return true;
    }
    e->fd = fd;
    snprintf(e->key, sizeof e->key, "%s", why);
    e->raw = secret_alloc(SECRET_MAX);
    if (e->raw == NULL) {
        fail(e, "no memory for a secret");
        return true;
    }
    set_state(e, ENTRY_READING);
    if (e->store ==
        STORE_FILE) { /* a regular file is always readable, and epoll does not take it */
        on_readable(fd, EV_READ, e);
        return true;
    }
    e->readable = event_new(e->hooks->base, fd, EV_READ | EV_PERSIST, on_readable, e);
    if (e->readable == NULL || event_add(e->readable, NULL) < 0)
        fail(e, "its command cannot be read");
    return true;
}

bool vault_entry_exited(struct vault_entry *e, uint32_t req, int status)
{
    char why[96];
    if (e->state != ENTRY_READING || e->req != req || e->store != STORE_COMMAND)
        return false;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        e->exited = true;
        if (e->whole)
            finish(e);
        else
            on_readable(e->fd, EV_READ, e);
        return true;
    }
    if (WIFEXITED(status))
        snprintf(why, sizeof why, "its command ended with status %d", WEXITSTATUS(status));
    else
        snprintf(why, sizeof why, "its command was ended by signal %d", WTERMSIG(status));
    fail(e, why);
    return true;
}
