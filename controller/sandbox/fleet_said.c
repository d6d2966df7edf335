/* A tree by kind and id (tsearch), and a list. */
#include "fleet_said.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct said {
    char kind[NOTE_KIND_MAX + 1], id[NOTE_ID_MAX + 1];
    char *body;
    size_t n;
    uint64_t until, seen; /* us; in which reading */
    TAILQ_ENTRY(said) link;
};

struct fleet_said {
    void *tree;
    size_t n, bytes, n_shown, bytes_shown; /* shown: of those that are no revocations */
    uint64_t reading;
    TAILQ_HEAD(, said) list;
};

static int compare(const void *a, const void *b)
{
    const struct said *x = a, *y = b;
    int c = strcmp(x->kind, y->kind);
    return c ? c : strcmp(x->id, y->id);
}

struct fleet_said *fleet_said_new(void)
{
    struct fleet_said *k = calloc(1, sizeof *k);
    if (k)
        TAILQ_INIT(&k->list);
    return k;
}

/* What sandboxes make hosts say takes no revocation's place. */
static bool is_shown(const char *kind)
{
    return strcmp(kind, "revoked") != 0;
}

static void count(struct fleet_said *k, const struct said *o, bool there)
{
    size_t one = there ? 1 : (size_t)-1, bytes = there ? o->n : (size_t)0 - o->n;
    k->n += one;
    k->bytes += bytes;
    k->n_shown += is_shown(o->kind) ? one : 0;
    k->bytes_shown += is_shown(o->kind) ? bytes : 0;
}

static void drop(struct fleet_said *k, struct said *o)
{
    tdelete(o, &k->tree, compare);
    TAILQ_REMOVE(&k->list, o, link);
    count(k, o, false);
    free(o->body);
    free(o);
}

void fleet_said_free(struct fleet_said *k)
{
    struct said *o;
    while (k && (o = TAILQ_FIRST(&k->list)) != NULL)
        drop(k, o);
    free(k);
}

static struct said *find(struct fleet_said *k, const char *kind, const char *id)
{
    struct said like;
    snprintf(like.kind, sizeof like.kind, "%s", kind);
    snprintf(like.id, sizeof like.id, "%s", id);
    struct said *const *at = tfind(&like, &k->tree, compare);
    return at ? *at : NULL;
}

static bool has_room(const struct fleet_said *k, const char *kind, size_t n)
{
    return k->n < FLEET_SAID_MAX && k->bytes + n <= FLEET_SAID_BYTES &&
           (!is_shown(kind) ||
            (k->n_shown < FLEET_SAID_MAX / 2 && k->bytes_shown + n <= FLEET_SAID_BYTES / 2));
}

static void drop_over(struct fleet_said *k, uint64_t now)
{
    struct said *o, *next;
    for (o = TAILQ_FIRST(&k->list); o; o = next) {
        next = TAILQ_NEXT(o, link);
        if (o->until <= now)
            drop(k, o);
    }
}

int fleet_said_add(struct fleet_said *k, const char *kind, const char *id, struct slice body,
                   uint64_t now, uint64_t us)
{
    if (find(k, kind, id))
        return 0;
    if (!has_room(k, kind, body.n))
        drop_over(k, now);
    struct said *o = has_room(k, kind, body.n) ? calloc(1, sizeof *o) : NULL;
    if (o == NULL || (o->body = slice_dup(body)) == NULL) {
        free(o);
        return -1;
    }
    snprintf(o->kind, sizeof o->kind, "%s", kind);
    snprintf(o->id, sizeof o->id, "%s", id);
    o->n = body.n;
    o->until = now + us;
    o->seen = k->reading;
    if (tsearch(o, &k->tree, compare) == NULL) {
        free(o->body);
        free(o);
        return -1;
    }
    TAILQ_INSERT_TAIL(&k->list, o, link);
    count(k, o, true);
    return 0;
}

void fleet_said_forget(struct fleet_said *k, const char *kind, const char *id)
{
    struct said *o = find(k, kind, id);
    if (o)
        drop(k, o);
}

void fleet_said_begin(struct fleet_said *k)
{
    k->reading++;
}

void fleet_said_seen(struct fleet_said *k, const char *kind, const char *id)
{
    struct said *o = find(k, kind, id);
    if (o)
        o->seen = k->reading;
}

void fleet_said_missing(struct fleet_said *k, uint64_t now,
                        void (*fn)(void *arg, const char *kind, const char *id, struct slice body,
                                   uint32_t seconds),
                        void *arg)
{
    struct said *o;
    drop_over(k, now);
    TAILQ_FOREACH(o, &k->list, link)
    if (o->seen != k->reading)
        fn(arg, o->kind, o->id, (struct slice){o->body, o->n},
           (uint32_t)((o->until - now) / 1000000));
}
