/* Keeps connections by key in buckets, trims what is idle beyond the bound from whoever has most,
 * and has those wait who would dial what another is just dialling. */
#include "pool.h"

#include "lru_set.h"
#include "meter.h"
#include "heap_trim.h"
#include "tls_sessions.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

enum {
    LRU_SET_MAX = 128,
    SESSIONS_MAX = 128,
    BUCKETS = 128,
    BURST = 8,  /* times max are kept, */
    CALM_S = 1, /* of those that are in use again and again within this time */
};

/* What one owner (a key up to its first '|': a sandbox, mostly) has idle, the longest idle last. */
struct share {
    char *owner;
    size_t n; /* idle */
    unsigned refs;
    TAILQ_HEAD(idle_list, pooled) idle;
    LIST_ENTRY(share) link;
};

struct pooled {
    struct pool *pool;
    struct connection c; /* the pool's own */
    char *key;
    uint64_t hash;
    struct share *share;
    bool idle;
    time_t since;           /* of idle, monotonic */
    struct pool_dial *dial; /* over when the connection has settled */
    TAILQ_ENTRY(pooled) link, idle_link;
};

struct pool_wait {
    struct pool *pool;
    char *key;
    pool_wait_fn fn;
    void *arg;
    bool called, again; /* its turn has come */
    TAILQ_ENTRY(pool_wait) link;
};

struct pool_dial {
    struct pool *pool;
    char *key;
    LIST_ENTRY(pool_dial) link;
};

struct pool {
    unsigned max, seconds;
    size_t idle;
    struct event
        *turn; /* those who wait are told from the loop, never from within another's call */
    struct event *calm; /* a look at what is idle beyond max */
    struct heap_trim *heap_trim;
    struct tls_sessions *sessions;
    TAILQ_HEAD(pooled_list, pooled) buckets[BUCKETS]; /* by key; most recently used first */
    LIST_HEAD(, share) shares;
    TAILQ_HEAD(, pool_wait) waits;
    LIST_HEAD(, pool_dial) dials;
    struct lru_set *lru_set; /* whose origin chose HTTP/2 the last time */
};

static void on_turn(evutil_socket_t fd UNUSED, short what UNUSED, void *arg);
static void on_calm(evutil_socket_t fd UNUSED, short what UNUSED, void *arg);

struct pool *pool_new(struct event_base *base, unsigned max, unsigned seconds)
{
    struct pool *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->max = max;
    p->seconds = seconds;
    for (size_t i = 0; i < BUCKETS; i++)
        TAILQ_INIT(&p->buckets[i]);
    LIST_INIT(&p->shares);
    TAILQ_INIT(&p->waits);
    LIST_INIT(&p->dials);
    p->lru_set = lru_set_new(LRU_SET_MAX);
    p->turn = event_new(base, -1, 0, on_turn, p);
    p->calm = event_new(base, -1, 0, on_calm, p);
    p->heap_trim = heap_trim_new(base);
    p->sessions = tls_sessions_new(SESSIONS_MAX);
    if (p->turn == NULL || p->calm == NULL || p->heap_trim == NULL || p->lru_set == NULL ||
        p->sessions == NULL) {
        pool_free(p);
        return NULL;
    }
    return p;
}

struct tls_sessions *pool_sessions(struct pool *p)
{
    return p->sessions;
}

/* ---- whose they are ---- */

static uint64_t hash(const char *key)
{
    size_t n = strlen(key);
    uint64_t h = n, word;
    for (; n > 0; key += n < 8 ? n : 8, n -= n < 8 ? n : 8) {
        word = 0;
        memcpy(&word, key, n < 8 ? n : 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15U;
        h ^= h >> 32;
    }
    return h;
}

static struct pooled_list *bucket(struct pool *p, uint64_t of)
{
    return &p->buckets[of % BUCKETS];
}

static struct share *share_of(struct pool *p, const char *key)
{
    size_t n = strcspn(key, "|");
    struct share *s;
    LIST_FOREACH(s, &p->shares, link)
    if (strncmp(s->owner, key, n) == 0 && s->owner[n] == '\0')
        return s;
    if ((s = calloc(1, sizeof *s)) == NULL ||
        (s->owner = slice_dup((struct slice){key, n})) == NULL) {
        free(s);
        return NULL;
    }
    TAILQ_INIT(&s->idle);
    LIST_INSERT_HEAD(&p->shares, s, link);
    return s;
}

static void share_leave(struct share *s)
{
    if (--s->refs > 0)
        return;
    LIST_REMOVE(s, link);
    free(s->owner);
    free(s);
}

static time_t monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return t.tv_sec;
}

/* ---- connections ---- */

static void set_idle(struct pooled *i, bool idle)
{
    struct pool *p = i->pool;
    if (i->idle && !idle) {
        p->idle--;
        i->share->n--;
        TAILQ_REMOVE(&i->share->idle, i, idle_link);
    } else if (!i->idle && idle) {
        p->idle++;
        i->share->n++;
        i->since = monotonic();
        TAILQ_INSERT_HEAD(&i->share->idle, i, idle_link);
    }
    i->idle = idle;
    meter_set(METER_POOL_IDLE, p->idle);
}

/* Out of the pool, whoever has it now. failed: by itself, and who waits for it to settle would fail
 * the same way. */
static struct connection detach(struct pooled *i, bool failed)
{
    struct connection c = i->c;
    set_idle(i, false);
    share_leave(i->share);
    TAILQ_REMOVE(bucket(i->pool, i->hash), i, link);
    pool_dial_over(i->dial, failed); /* still there: it never settled */
    free(i->key);
    free(i);
    return c;
}

static void discard(struct pooled *i)
{
    heap_trim_note(i->pool->heap_trim);
    struct connection c = detach(i, false);
    http1_client_close(c.http1);
    if (c.http2)
        http2_client_drain(c.http2);
}

static struct pooled *attach(struct pool *p, const char *key, struct connection c)
{
    struct pooled *i = calloc(1, sizeof *i);
    struct share *s = i ? share_of(p, key) : NULL;
    if (s)
        s->refs++;
    if (s == NULL || (i->key = strdup(key)) == NULL) {
        if (s)
            share_leave(s);
        free(i);
        return NULL;
    }
    i->pool = p;
    i->share = s;
    i->hash = hash(key);
    i->c = c;
    TAILQ_INSERT_HEAD(bucket(p, i->hash), i, link);
    return i;
}

/* The longest idle of whoever has the most, so that nobody's connections go for another's crowd. */
static struct pooled *surplus(struct pool *p)
{
    struct share *s, *most = NULL;
    LIST_FOREACH(s, &p->shares, link)
    if (most == NULL || s->n > most->n)
        most = s;
    return most ? TAILQ_LAST(&most->idle, idle_list) : NULL;
}

/* As many as may be for now; what is beyond max goes when it has rested. */
static void trim(struct pool *p)
{
    static const struct timeval soon = {CALM_S, 0};
    while (p->idle > (size_t)p->max * BURST)
        discard(surplus(p));
    if (p->idle > p->max && !event_pending(p->calm, EV_TIMEOUT, NULL))
        event_add(p->calm, &soon);
}

static void on_calm(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct pool *p = arg;
    struct pooled *i;
    time_t now = monotonic();
    while (p->idle > p->max && (i = surplus(p)) != NULL && now - i->since >= CALM_S)
        discard(i);
    trim(p);
}

static void on_gone(void *arg)
{
    discard(arg);
}

static void on_http2(void *arg, enum http2_news news)
{
    struct pooled *i = arg;
    struct pool *p = i->pool;
    switch (news) {
    case HTTP2_SETTLED:
        pool_dial_over(i->dial, false);
        i->dial = NULL;
        break;
    case HTTP2_IDLE:
        TAILQ_REMOVE(bucket(p, i->hash), i, link);
        TAILQ_INSERT_HEAD(bucket(p, i->hash), i, link);
        set_idle(i, true);
        trim(p);
        break;
    case HTTP2_LEFT:
        (void)detach(i, true); /* it is its own now */
        break;
    }
}

static bool wanted(const struct pooled *i, enum pool_want want)
{
    if (want == POOL_SOCKET)
        return i->c.http2 == NULL || http2_client_connects(i->c.http2);
    return want == POOL_ANY || i->c.http2 != NULL;
}

struct connection pool_take(struct pool *p, const char *key, enum pool_want want)
{
    struct connection c = {NULL, NULL};
    struct pooled *i, *next;
    uint64_t h = hash(key);
    for (i = TAILQ_FIRST(bucket(p, h)); i; i = next) {
        next = TAILQ_NEXT(i, link);
        if (i->hash != h || strcmp(i->key, key) != 0 || !wanted(i, want))
            continue;
        if (i->c.http2) {
            if (!http2_client_takes(i->c.http2))
                continue; /* full for now, or about to say that it leaves */
            set_idle(i, false);
            return i->c;
        }
        c = detach(i, false);
        if (http1_client_alive(c.http1))
            return c;
        http1_client_close(c.http1);
        c.http1 = NULL;
    }
    return c;
}

void pool_give(struct pool *p, const char *key, struct http1_client *c)
{
    struct pooled *i = p->max ? attach(p, key, (struct connection){c, NULL}) : NULL;
    if (i == NULL) {
        http1_client_close(c);
        return;
    }
    set_idle(i, true);
    http1_client_idle(c, p->seconds, on_gone, i);
    trim(p);
}

int pool_add(struct pool *p, const char *key, struct http2_client *c)
{
    struct pooled *i = attach(p, key, (struct connection){NULL, c});
    if (i == NULL) {
        http2_client_close(c);
        return -1;
    }
    i->dial = pool_dial(p, key);
    http2_client_owner(c, p->seconds, on_http2, i);
    return 0;
}

size_t pool_idle(const struct pool *p)
{
    return p->idle;
}

void pool_spoke(struct pool *p, const char *key, bool http2)
{
    lru_set_put(p->lru_set, key, http2);
}

/* ---- dialling and waiting ---- */

static bool dialled(const struct pool *p, const char *key)
{
    struct pool_dial *d;
    LIST_FOREACH(d, &p->dials, link)
    if (strcmp(d->key, key) == 0)
        return true;
    return false;
}

struct pool_dial *pool_dial(struct pool *p, const char *key)
{
    struct pool_dial *d = calloc(1, sizeof *d);
    if (d == NULL || (d->key = strdup(key)) == NULL) {
        free(d);
        return NULL;
    }
    d->pool = p;
    LIST_INSERT_HEAD(&p->dials, d, link);
    return d;
}

void pool_dial_over(struct pool_dial *d, bool failed)
{
    static const struct timeval now = {0, 0};
    if (d == NULL)
        return;
    struct pool *p = d->pool;
    struct pool_wait *w;
    LIST_REMOVE(d, link);
    bool last = !dialled(p, d->key);
    TAILQ_FOREACH(w, &p->waits, link)
    if (last && !w->called && strcmp(w->key, d->key) == 0) {
        w->called = true;
        w->again = !failed;
        event_add(p->turn, &now);
    }
    free(d->key);
    free(d);
}

static void wait_free(struct pool_wait *w)
{
    TAILQ_REMOVE(&w->pool->waits, w, link);
    free(w->key);
    free(w);
}

/* One of those whose turn has come. What it does may end or begin any other wait. */
static bool one_turn(struct pool *p)
{
    struct pool_wait *w;
    TAILQ_FOREACH(w, &p->waits, link)
    if (w->called) {
        pool_wait_fn fn = w->fn;
        void *arg = w->arg;
        bool again = w->again;
        wait_free(w);
        fn(arg, again);
        return true;
    }
    return false;
}

static void on_turn(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    while (one_turn(arg)) {
    }
}

struct pool_wait *pool_wait(struct pool *p, const char *key, bool http2, pool_wait_fn fn, void *arg)
{
    if (!(http2 || lru_set_has(p->lru_set, key)) || !dialled(p, key))
        return NULL;
    struct pool_wait *w = calloc(1, sizeof *w);
    if (w == NULL || (w->key = strdup(key)) == NULL) {
        free(w);
        return NULL;
    }
    w->pool = p;
    w->fn = fn;
    w->arg = arg;
    TAILQ_INSERT_TAIL(&p->waits, w, link);
    return w;
}

void pool_wait_cancel(struct pool_wait *w)
{
    if (w)
        wait_free(w);
}

/* ---- ending ---- */

void pool_drop(struct pool *p, const char *prefix)
{
    struct pooled *i, *next;
    size_t n = strlen(prefix);
    for (size_t b = 0; b < BUCKETS; b++)
        for (i = TAILQ_FIRST(&p->buckets[b]); i; i = next) {
            next = TAILQ_NEXT(i, link);
            if (strncmp(i->key, prefix, n) == 0)
                discard(i);
        }
    tls_sessions_drop(p->sessions, prefix);
}

static void close_all(struct pool *p)
{
    struct pooled *i;
    for (size_t b = 0; b < BUCKETS; b++)
        while ((i = TAILQ_FIRST(&p->buckets[b])) != NULL) {
            struct connection c = detach(i, false);
            http1_client_close(c.http1);
            http2_client_close(c.http2);
        }
}

void pool_free(struct pool *p)
{
    if (p == NULL)
        return;
    close_all(p);
    while (!LIST_EMPTY(&p->dials))
        pool_dial_over(LIST_FIRST(&p->dials), false);
    while (!TAILQ_EMPTY(&p->waits))
        wait_free(TAILQ_FIRST(&p->waits));
    if (p->turn)
        event_free(p->turn);
    if (p->calm)
        event_free(p->calm);
    lru_set_free(p->lru_set);
    heap_trim_free(p->heap_trim);
    tls_sessions_free(p->sessions);
    free(p);
}
