#include "lasting.h"

#include <stdlib.h>

enum { STALE = 48 * 3600 /* s: its end was never seen */ };

void lasting_free(struct lasting *l)
{
    free(l->v);
    *l = (struct lasting){0};
}

static void take_out(struct lasting *l, struct lasting_one *one)
{
    *one = l->v[--l->n];
    if (l->n == 0)
        lasting_free(l);
}

static int add(struct lasting *l, uint64_t id, uint64_t up, uint64_t now)
{
    if (l->n == l->room) {
        size_t room = l->room ? 2 * l->room : 4;
        struct lasting_one *v = realloc(l->v, room * sizeof *v);
        if (v == NULL)
            return -1;
        l->v = v;
        l->room = room;
    }
    l->v[l->n++] = (struct lasting_one){id, up, now};
    return 0;
}

uint64_t lasting_note(struct lasting *l, uint64_t id, uint64_t up, bool ends, bool may_keep,
                      uint64_t now)
{
    struct lasting_one *its = NULL, *stale = NULL;
    for (size_t i = 0; i < l->n && its == NULL; i++) {
        struct lasting_one *one = &l->v[i];
        its = one->id == id ? one : NULL;
        stale = now - one->last > STALE ? one : stale;
    }
    if (its) {
        uint64_t fresh = up > its->up ? up - its->up : 0;
        *its = (struct lasting_one){id, up, now};
        if (ends)
            take_out(l, its);
        return fresh;
    }
    if (ends)
        return up;
    if (stale) {
        *stale = (struct lasting_one){id, up, now};
        return up;
    }
    if (l->n == LASTING_MAX)
        return up;
    return may_keep && add(l, id, up, now) == 0 ? up : 0;
}
