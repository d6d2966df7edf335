/* A list of texts, last named first; the pool asks it which origins chose HTTP/2 the last time. */
#include "lru_set.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct one {
    char *text;
    TAILQ_ENTRY(one) link;
};

struct lru_set {
    size_t n, max;
    TAILQ_HEAD(list, one) list; /* named most recently first */
};

struct lru_set *lru_set_new(size_t max)
{
    struct lru_set *k = calloc(1, sizeof *k);
    if (k == NULL)
        return NULL;
    k->max = max;
    TAILQ_INIT(&k->list);
    return k;
}

static struct one *find(const struct lru_set *k, const char *text)
{
    struct one *o;
    TAILQ_FOREACH(o, &k->list, link)
    if (strcmp(o->text, text) == 0)
        return o;
    return NULL;
}

static void forget(struct lru_set *k, struct one *o)
{
    TAILQ_REMOVE(&k->list, o, link);
    k->n--;
    free(o->text);
    free(o);
}

void lru_set_free(struct lru_set *k)
{
    if (k == NULL)
        return;
    while (!TAILQ_EMPTY(&k->list))
        forget(k, TAILQ_FIRST(&k->list));
    free(k);
}

bool lru_set_has(const struct lru_set *k, const char *text)
{
    return find(k, text) != NULL;
}

void lru_set_put(struct lru_set *k, const char *text, bool in)
{
    struct one *o = find(k, text);
    if (o)
        forget(k, o);
    if (!in || (o = calloc(1, sizeof *o)) == NULL)
        return;
    if ((o->text = strdup(text)) == NULL) {
        free(o);
        return;
    }
    TAILQ_INSERT_HEAD(&k->list, o, link);
    if (++k->n > k->max)
        forget(k, TAILQ_LAST(&k->list, list));
}
