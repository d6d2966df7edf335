/* Shares of a bound: see quota.h. */
#include "quota.h"

#include "assertion.h"

#include <stdlib.h>
#include <string.h>

struct quota_owner {
    char *name;
    size_t n;
    LIST_ENTRY(quota_owner) link;
};

static struct quota_owner *find(const struct quota *q, struct slice name)
{
    struct quota_owner *o;
    LIST_FOREACH(o, &q->owners, link)
    if (slice_eq_str(name, o->name))
        return o;
    return NULL;
}

static struct quota_owner *add(struct quota *q, struct slice name)
{
    struct quota_owner *o = calloc(1, sizeof *o);
    if (o == NULL || (o->name = slice_dup(name)) == NULL) {
        free(o);
        return NULL;
    }
    LIST_INSERT_HEAD(&q->owners, o, link);
    return o;
}

static void drop(struct quota_owner *o)
{
    LIST_REMOVE(o, link);
    free(o->name);
    free(o);
}

static enum quota_end judge(const struct quota *q, size_t own, size_t n)
{
    ASSERT(q->used <= q->total);
    size_t left = q->total - q->used;
    if (n > left)
        return own > 0 ? QUOTA_SHARE : QUOTA_OUT;
    if (n > q->each || own > q->each - n)
        return QUOTA_SHARE;
    return own == 0 || own + n <= left - n ? QUOTA_TAKEN : QUOTA_SHARE;
}

enum quota_end quota_would(const struct quota *q, struct slice owner, size_t n)
{
    return n == 0 ? QUOTA_TAKEN : judge(q, quota_of(q, owner), n);
}

enum quota_end quota_take(struct quota *q, struct quota_part *p, struct slice owner, size_t n)
{
    if (n == 0)
        return QUOTA_TAKEN;
    struct quota_owner *o = p->owner ? p->owner : find(q, owner);
    enum quota_end end = judge(q, o ? o->n : 0, n);
    if (end != QUOTA_TAKEN)
        return end;
    if (o == NULL && (o = add(q, owner)) == NULL)
        return QUOTA_OUT;
    p->of = q;
    p->owner = o;
    p->n += n;
    o->n += n;
    q->used += n;
    return QUOTA_TAKEN;
}

void quota_give(struct quota_part *p, size_t n)
{
    struct quota_owner *o = p->owner;
    if (n > p->n)
        n = p->n;
    if (o == NULL)
        return;
    p->of->used -= n;
    p->n -= n;
    o->n -= n;
    if (p->n == 0)
        p->owner = NULL;
    if (o->n == 0)
        drop(o);
}

void quota_leave(struct quota_part *p)
{
    quota_give(p, p->n);
}

size_t quota_of(const struct quota *q, struct slice owner)
{
    const struct quota_owner *o = find(q, owner);
    return o ? o->n : 0;
}
