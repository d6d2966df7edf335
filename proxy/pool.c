#include "pool.h"

#include "meter.h"
#include "shed.h"
#include "tls_sessions.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum { KNOWN_MAX = 128, SESSIONS_MAX = 128 };

struct pooled {
    struct pool *pool;
    struct connection c; /* the pool's own */
    char *key;
    bool idle;
    struct pool_dial *dial; /* over when the connection has settled */
    TAILQ_ENTRY(pooled) link;
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

/* A key whose origin chose HTTP/2 the last time. */
struct known {
    char *key;
    TAILQ_ENTRY(known) link;
};

struct pool {
    unsigned max, seconds;
    size_t idle, n_known;
    struct event
        *turn; /* those who wait are told from the loop, never from within another's call */
    struct shed *shed;
    struct tls_sessions *sessions;
    TAILQ_HEAD(pooled_list, pooled) list; /* most recently used first */
    TAILQ_HEAD(, pool_wait) waits;
    LIST_HEAD(, pool_dial) dials;
    TAILQ_HEAD(known_list, known) known; /* most recently seen first */
};

static void on_turn(evutil_socket_t fd UNUSED, short what UNUSED, void *arg);

struct pool *pool_new(struct event_base *base, unsigned max, unsigned seconds)
{
    struct pool *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->max = max;
    p->seconds = seconds;
    TAILQ_INIT(&p->list);
    TAILQ_INIT(&p->waits);
    LIST_INIT(&p->dials);
    TAILQ_INIT(&p->known);
    p->turn = event_new(base, -1, 0, on_turn, p);
    p->shed = shed_new(base);
    p->sessions = tls_sessions_new(SESSIONS_MAX);
    if (p->turn == NULL || p->shed == NULL || p->sessions == NULL) {
        pool_free(p);
        return NULL;
    }
    return p;
}

struct tls_sessions *pool_sessions(struct pool *p)
{
    return p->sessions;
}

/* ---- connections ---- */

static void set_idle(struct pooled *i, bool idle)
{
    if (i->idle != idle)
        i->pool->idle += idle ? 1 : (size_t)-1;
    i->idle = idle;
    meter_set(METER_POOL_IDLE, i->pool->idle);
}

/* Out of the pool, whoever has it now. */
static struct connection detach(struct pooled *i)
{
    struct connection c = i->c;
    set_idle(i, false);
    TAILQ_REMOVE(&i->pool->list, i, link);
    pool_dial_over(i->dial, false);
    free(i->key);
    free(i);
    return c;
}

static void discard(struct pooled *i)
{
    shed_note(i->pool->shed);
    struct connection c = detach(i);
    http1_client_close(c.http1);
    if (c.http2)
        http2_client_drain(c.http2);
}

static struct pooled *attach(struct pool *p, const char *key, struct connection c)
{
    struct pooled *i = calloc(1, sizeof *i);
    if (i == NULL || (i->key = strdup(key)) == NULL) {
        free(i);
        return NULL;
    }
    i->pool = p;
    i->c = c;
    TAILQ_INSERT_HEAD(&p->list, i, link);
    return i;
}

/* As many idle ones as may be. */
static void trim(struct pool *p)
{
    struct pooled *i, *before;
    for (i = TAILQ_LAST(&p->list, pooled_list); i && p->idle > p->max; i = before) {
        before = TAILQ_PREV(i, pooled_list, link);
        if (i->idle)
            discard(i);
    }
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
        TAILQ_REMOVE(&p->list, i, link);
        TAILQ_INSERT_HEAD(&p->list, i, link);
        set_idle(i, true);
        trim(p);
        break;
    case HTTP2_LEFT:
        (void)detach(i); /* it is its own now */
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
    for (i = TAILQ_FIRST(&p->list); i; i = next) {
        next = TAILQ_NEXT(i, link);
        if (strcmp(i->key, key) != 0 || !wanted(i, want))
            continue;
        if (i->c.http2) {
            if (!http2_client_takes(i->c.http2))
                continue; /* full for now, or about to say that it leaves */
            set_idle(i, false);
            return i->c;
        }
        c = detach(i);
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

/* ---- what is known ---- */

static struct known *find_known(const struct pool *p, const char *key)
{
    struct known *k;
    TAILQ_FOREACH(k, &p->known, link)
    if (strcmp(k->key, key) == 0)
        return k;
    return NULL;
}

static void forget(struct pool *p, struct known *k)
{
    TAILQ_REMOVE(&p->known, k, link);
    p->n_known--;
    free(k->key);
    free(k);
}

void pool_spoke(struct pool *p, const char *key, bool http2)
{
    struct known *k = find_known(p, key);
    if (k)
        forget(p, k);
    if (!http2 || (k = calloc(1, sizeof *k)) == NULL)
        return;
    k->key = strdup(key);
    if (k->key == NULL) {
        free(k);
        return;
    }
    TAILQ_INSERT_HEAD(&p->known, k, link);
    if (++p->n_known > KNOWN_MAX)
        forget(p, TAILQ_LAST(&p->known, known_list));
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

struct pool_wait *pool_wait(struct pool *p, const char *key, pool_wait_fn fn, void *arg)
{
    if (find_known(p, key) == NULL || !dialled(p, key))
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
    for (i = TAILQ_FIRST(&p->list); i; i = next) {
        next = TAILQ_NEXT(i, link);
        if (strncmp(i->key, prefix, n) == 0)
            discard(i);
    }
    tls_sessions_drop(p->sessions, prefix);
}

static void close_all(struct pool *p)
{
    struct pooled *i;
    while ((i = TAILQ_FIRST(&p->list)) != NULL) {
        struct connection c = detach(i);
        http1_client_close(c.http1);
        http2_client_close(c.http2);
    }
}

void pool_free(struct pool *p)
{
    if (p == NULL)
        return;
    close_all(p);
    while (!TAILQ_EMPTY(&p->known))
        forget(p, TAILQ_FIRST(&p->known));
    while (!LIST_EMPTY(&p->dials))
        pool_dial_over(LIST_FIRST(&p->dials), false);
    while (!TAILQ_EMPTY(&p->waits))
        wait_free(TAILQ_FIRST(&p->waits));
    if (p->turn)
        event_free(p->turn);
    shed_free(p->shed);
    tls_sessions_free(p->sessions);
    free(p);
}
