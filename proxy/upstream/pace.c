/* Counts by GCRA: one time an owner, when all that it has begun is paid for; an owner whose time
 * has passed is forgotten. */
#include "pace.h"

#include <stdlib.h>
#include <string.h>

enum { EACH_US = 1000000 / PACE_SECOND };

/* due: us; when all that was begun is paid for (the theoretical arrival time of GCRA). */
struct pace_owner {
    char *name;
    uint64_t due;
    LIST_ENTRY(pace_owner) link;
};

static void drop(struct pace *p, struct pace_owner *o)
{
    LIST_REMOVE(o, link);
    p->n--;
    free(o->name);
    free(o);
}

/* One whose burst is whole again is like one that was never there. */
static struct pace_owner *find(struct pace *p, struct slice name, uint64_t now)
{
    struct pace_owner *o, *next, *found = NULL;
    for (o = LIST_FIRST(&p->owners); o; o = next) {
        next = LIST_NEXT(o, link);
        if (slice_eq_str(name, o->name))
            found = o;
        else if (o->due <= now)
            drop(p, o);
    }
    return found;
}

static struct pace_owner *add(struct pace *p, struct slice name, uint64_t now)
{
    struct pace_owner *o = p->n < PACE_OWNERS ? calloc(1, sizeof *o) : NULL;
    if (o == NULL || (o->name = slice_dup(name)) == NULL) {
        free(o);
        return NULL;
    }
    o->due = now;
    LIST_INSERT_HEAD(&p->owners, o, link);
    p->n++;
    return o;
}

long pace_begin(struct pace *p, struct slice owner, uint64_t now)
{
    struct pace_owner *o = find(p, owner, now);
    if (o == NULL)
        o = add(p, owner, now);
    if (o == NULL)
        return 1000 / PACE_SECOND;
    uint64_t due = o->due > now ? o->due : now;
    uint64_t burst = (uint64_t)PACE_BURST * EACH_US, ahead = due - now;
    uint64_t wait = ahead > burst - EACH_US ? ahead - (burst - EACH_US) : 0;
    if (wait > 0)
        return (long)((wait + 999) / 1000);
    o->due = due + EACH_US;
    return 0;
}

void pace_free(struct pace *p)
{
    while (!LIST_EMPTY(&p->owners))
        drop(p, LIST_FIRST(&p->owners));
}
