/* Groups in a ring, in each a ring of its owners, of each its items in order. Who was served goes
 * to the end of its ring; a group or owner without items is forgotten. */
#include "fair_queue.h"

#include <stdlib.h>
#include <string.h>

enum { LOOK = 16 }; /* at owners of one group in a turn */

struct fair_owner {
    struct fair_group *group;
    char *name; /* whole */
    TAILQ_HEAD(fair_items, fair_item) items;
    TAILQ_ENTRY(fair_owner) link;
};

struct fair_group {
    struct fair_queue *queue;
    char *name; /* up to the first '|' */
    TAILQ_HEAD(fair_owners, fair_owner) owners;
    TAILQ_ENTRY(fair_group) link;
};

static struct slice group_of(struct slice owner)
{
    ssize_t bar = slice_find(owner, '|');
    return (struct slice){owner.p, bar < 0 ? owner.n : (size_t)bar};
}

static struct fair_group *find_group(const struct fair_queue *q, struct slice name)
{
    struct fair_group *g;
    TAILQ_FOREACH(g, &q->groups, link)
    if (slice_eq_str(name, g->name))
        return g;
    return NULL;
}

static struct fair_owner *find_owner(const struct fair_group *g, struct slice name)
{
    struct fair_owner *o;
    TAILQ_FOREACH(o, &g->owners, link)
    if (slice_eq_str(name, o->name))
        return o;
    return NULL;
}

static void drop_group(struct fair_group *g)
{
    TAILQ_REMOVE(&g->queue->groups, g, link);
    free(g->name);
    free(g);
}

static struct fair_group *add_group(struct fair_queue *q, struct slice name)
{
    struct fair_group *g = calloc(1, sizeof *g);
    if (g == NULL || (g->name = slice_dup(name)) == NULL) {
        free(g);
        return NULL;
    }
    g->queue = q;
    TAILQ_INIT(&g->owners);
    TAILQ_INSERT_TAIL(&q->groups, g, link);
    return g;
}

static struct fair_owner *add_owner(struct fair_queue *q, struct slice name)
{
    struct fair_group *g = find_group(q, group_of(name));
    struct fair_owner *o = g ? find_owner(g, name) : NULL;
    if (o || (g == NULL && (g = add_group(q, group_of(name))) == NULL))
        return o;
    o = calloc(1, sizeof *o);
    if (o == NULL || (o->name = slice_dup(name)) == NULL) {
        free(o);
        if (TAILQ_EMPTY(&g->owners))
            drop_group(g);
        return NULL;
    }
    o->group = g;
    TAILQ_INIT(&o->items);
    TAILQ_INSERT_TAIL(&g->owners, o, link);
    return o;
}

void fair_queue_init(struct fair_queue *q, size_t total, size_t each)
{
    memset(q, 0, sizeof *q);
    q->quota.total = total;
    q->quota.each = each;
    TAILQ_INIT(&q->groups);
}

enum quota_end fair_queue_add(struct fair_queue *q, struct fair_item *i, struct slice owner,
                              void *self)
{
    enum quota_end end = quota_take(&q->quota, &i->part, group_of(owner), 1);
    if (end != QUOTA_TAKEN)
        return end;
    i->owner = add_owner(q, owner);
    if (i->owner == NULL) {
        quota_leave(&i->part);
        return QUOTA_OUT;
    }
    i->self = self;
    TAILQ_INSERT_TAIL(&i->owner->items, i, link);
    return QUOTA_TAKEN;
}

void fair_queue_leave(struct fair_item *i)
{
    struct fair_owner *o = i->owner;
    if (o == NULL)
        return;
    struct fair_group *g = o->group;
    i->owner = NULL;
    quota_leave(&i->part);
    TAILQ_REMOVE(&o->items, i, link);
    if (!TAILQ_EMPTY(&o->items))
        return;
    TAILQ_REMOVE(&g->owners, o, link);
    free(o->name);
    free(o);
    if (TAILQ_EMPTY(&g->owners))
        drop_group(g);
}

bool fair_queue_has(const struct fair_queue *q, struct slice owner)
{
    const struct fair_group *g = find_group(q, group_of(owner));
    return g && find_owner(g, owner);
}

/* Of this group: each owner that is looked at goes to the end of its ring. */
static struct fair_item *next_of(struct fair_group *g,
                                 bool (*may)(void *arg, const struct fair_item *i), void *arg)
{
    struct fair_owner *first = TAILQ_FIRST(&g->owners), *o = first;
    for (unsigned n = 0; n < LOOK && (n == 0 || o != first); n++, o = TAILQ_FIRST(&g->owners)) {
        struct fair_item *i = TAILQ_FIRST(&o->items);
        TAILQ_REMOVE(&g->owners, o, link);
        TAILQ_INSERT_TAIL(&g->owners, o, link);
        if (may(arg, i))
            return i;
    }
    return NULL;
}

struct fair_item *fair_queue_next(struct fair_queue *q,
                                  bool (*may)(void *arg, const struct fair_item *i), void *arg)
{
    struct fair_group *g;
    TAILQ_FOREACH(g, &q->groups, link)
    {
        struct fair_item *i = next_of(g, may, arg);
        if (i == NULL)
            continue;
        TAILQ_REMOVE(&q->groups, g, link);
        TAILQ_INSERT_TAIL(&q->groups, g, link);
        fair_queue_leave(i);
        return i;
    }
    return NULL;
}
