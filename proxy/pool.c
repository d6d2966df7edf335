#include "pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct idle {
    struct pool *pool;
    struct http1_client *client;
    char *key;
    TAILQ_ENTRY(idle) link;
};

struct pool {
    unsigned max, seconds;
    size_t n;
    TAILQ_HEAD(idle_list, idle) list; /* most recently used first */
};

struct pool *pool_new(unsigned max, unsigned seconds)
{
    struct pool *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->max = max;
    p->seconds = seconds;
    TAILQ_INIT(&p->list);
    return p;
}

static struct http1_client *detach(struct idle *i)
{
    struct http1_client *c = i->client;
    TAILQ_REMOVE(&i->pool->list, i, link);
    i->pool->n--;
    free(i->key);
    free(i);
    return c;
}

static void on_gone(void *arg)
{
    http1_client_close(detach(arg));
}

void pool_free(struct pool *p)
{
    if (p == NULL)
        return;
    pool_drop(p, "");
    free(p);
}

struct http1_client *pool_take(struct pool *p, const char *key)
{
    struct idle *i, *next;
    for (i = TAILQ_FIRST(&p->list); i; i = next) {
        next = TAILQ_NEXT(i, link);
        if (strcmp(i->key, key) != 0)
            continue;
        struct http1_client *c = detach(i);
        if (http1_client_alive(c))
            return c;
        http1_client_close(c);
    }
    return NULL;
}

void pool_give(struct pool *p, const char *key, struct http1_client *c)
{
    struct idle *i = p->max ? calloc(1, sizeof *i) : NULL;
    if (i == NULL || (i->key = strdup(key)) == NULL) {
        free(i);
        http1_client_close(c);
        return;
    }
    if (p->n >= p->max)
        http1_client_close(detach(TAILQ_LAST(&p->list, idle_list)));
    i->pool = p;
    i->client = c;
    TAILQ_INSERT_HEAD(&p->list, i, link);
    p->n++;
    http1_client_idle(c, p->seconds, on_gone, i);
}

void pool_drop(struct pool *p, const char *prefix)
{
    struct idle *i, *next;
    size_t n = strlen(prefix);
    for (i = TAILQ_FIRST(&p->list); i; i = next) {
        next = TAILQ_NEXT(i, link);
        if (strncmp(i->key, prefix, n) == 0)
            http1_client_close(detach(i));
    }
}

size_t pool_idle(const struct pool *p)
{
    return p->n;
}
