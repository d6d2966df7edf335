/* One list of values, newest first: one that is used again moves to its downstream. When captured
 * ones are too many, the oldest of the sandbox that has most goes. */
#include "recall.h"

#include "strlist.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct recalled {
    char *name, *sandbox; /* sandbox NULL: the policy's */
    struct secret *value;
    TAILQ_ENTRY(recalled) link;
};

struct recall {
    size_t captured, bytes;                   /* of sandboxes' own */
    TAILQ_HEAD(recalled_list, recalled) list; /* the newest first */
    struct strlist listed;                    /* names */
};

struct recall *recall_new(void)
{
    struct recall *r = calloc(1, sizeof *r);
    if (r)
        TAILQ_INIT(&r->list);
    return r;
}

static void recalled_free(struct recalled *x)
{
    secret_unref(x->value);
    free(x->name);
    free(x->sandbox);
    free(x);
}

static void drop(struct recall *r, struct recalled *x)
{
    TAILQ_REMOVE(&r->list, x, link);
    if (x->sandbox) {
        r->captured--;
        r->bytes -= secret_slice(x->value).n;
    }
    recalled_free(x);
}

void recall_free(struct recall *r)
{
    if (r == NULL)
        return;
    while (!TAILQ_EMPTY(&r->list))
        drop(r, TAILQ_FIRST(&r->list));
    strlist_done(&r->listed);
    free(r);
}

static bool is_of(const struct recalled *x, const char *name, const char *sandbox)
{
    return strcmp(x->name, name) == 0 && (x->sandbox == NULL) == (sandbox == NULL) &&
           (sandbox == NULL || strcmp(x->sandbox, sandbox) == 0);
}

/* Those that are too many of one secret and sandbox. */
static void forget_old(struct recall *r, const char *name, const char *sandbox)
{
    struct recalled *x, *next;
    unsigned n = 0;
    for (x = TAILQ_FIRST(&r->list); x; x = next) {
        next = TAILQ_NEXT(x, link);
        if (is_of(x, name, sandbox) && ++n > RECALL_VALUES)
            drop(r, x);
    }
}

static size_t bytes_of(const struct recall *r, const char *sandbox)
{
    const struct recalled *x;
    size_t n = 0;
    TAILQ_FOREACH(x, &r->list, link)
    if (x->sandbox && strcmp(x->sandbox, sandbox) == 0)
        n += secret_slice(x->value).n;
    return n;
}

/* The oldest of the sandbox that has most: one that gathers values pushes out its own. */
static void forget_most(struct recall *r)
{
    struct recalled *x, *worst = NULL;
    size_t most = 0;
    TAILQ_FOREACH_REVERSE(x, &r->list, recalled_list, link)
    {
        size_t n = x->sandbox ? bytes_of(r, x->sandbox) : 0;
        if (n > most) {
            most = n;
            worst = x;
        }
    }
    if (worst)
        drop(r, worst);
}

int recall_put(struct recall *r, const char *name, const char *sandbox, struct secret *value)
{
    struct recalled *x;
    TAILQ_FOREACH(x, &r->list, link)
    if (is_of(x, name, sandbox) &&
        (x->value == value || secret_eq(x->value, secret_slice(value)))) {
        TAILQ_REMOVE(&r->list, x, link); /* what is used again is new again */
        TAILQ_INSERT_HEAD(&r->list, x, link);
        return 0;
    }
    x = calloc(1, sizeof *x);
    if (x == NULL)
        return -1;
    x->value = secret_ref(value);
    x->name = strdup(name);
    x->sandbox = sandbox ? strdup(sandbox) : NULL;
    if (x->name == NULL || (sandbox && x->sandbox == NULL)) {
        recalled_free(x);
        return -1;
    }
    TAILQ_INSERT_HEAD(&r->list, x, link);
    if (sandbox) {
        r->captured++;
        r->bytes += secret_slice(value).n;
    }
    if (sandbox == NULL || *sandbox) /* "" stands for many sandboxes */
        forget_old(r, name, sandbox);
    while (r->captured > RECALL_CAPTURED || r->bytes > RECALL_CAPTURED_BYTES)
        forget_most(r);
    return 1;
}

struct secret *recall_next(const struct recall *r, const char *name, const struct recalled **at)
{
    const struct recalled *x = *at ? TAILQ_NEXT(*at, link) : TAILQ_FIRST(&r->list);
    while (x && strcmp(x->name, name) != 0)
        x = TAILQ_NEXT(x, link);
    *at = x;
    return x ? x->value : NULL;
}

bool recall_is_listed(const struct recall *r, const char *name)
{
    for (size_t i = 0; i < r->listed.n; i++)
        if (strcmp(r->listed.v[i], name) == 0)
            return true;
    return false;
}

int recall_mark_listed(struct recall *r, const char *name)
{
    return recall_is_listed(r, name) ? 0 : strlist_add(&r->listed, name);
}
