/* Keeps the requests of a sandbox that have not ended in a plain array. One that was last heard of
 * more than two days ago gives its place to a new one. */
#include "open_requests.h"

#include <stdlib.h>

enum { STALE = 48 * 3600 /* s: its end was never seen */ };

void open_requests_free(struct open_requests *l)
{
    free(l->v);
    *l = (struct open_requests){0};
}

static void take_out(struct open_requests *l, struct open_request *one)
{
    *one = l->v[--l->n];
    if (l->n == 0)
        open_requests_free(l);
}

static int add(struct open_requests *l, uint64_t id, uint64_t up, uint64_t now)
{
    if (l->n == l->room) {
        size_t room = l->room ? 2 * l->room : 4;
        struct open_request *v = realloc(l->v, room * sizeof *v);
        if (v == NULL)
            return -1;
        l->v = v;
        l->room = room;
    }
    l->v[l->n++] = (struct open_request){id, up, now};
    return 0;
}

uint64_t open_requests_note(struct open_requests *l, uint64_t id, uint64_t up, bool ends,
                            bool may_keep, uint64_t now)
{
    struct open_request *its = NULL, *stale = NULL;
    for (size_t i = 0; i < l->n && its == NULL; i++) {
        struct open_request *one = &l->v[i];
        its = one->id == id ? one : NULL;
        stale = now - one->last > STALE ? one : stale;
    }
    if (its) {
        uint64_t fresh = up > its->up ? up - its->up : 0;
        *its = (struct open_request){id, up, now};
        if (ends)
            take_out(l, its);
        return fresh;
    }
    if (ends)
        return up;
    if (stale) {
        *stale = (struct open_request){id, up, now};
        return up;
    }
    if (l->n == OPEN_REQUESTS_MAX)
        return up;
    return may_keep && add(l, id, up, now) == 0 ? up : 0;
}
