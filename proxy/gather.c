#include "gather.h"

void gather_begin(struct gather *g, size_t max, size_t *total)
{
    *g = (struct gather){.state = GATHER_TAKING, .max = max, .total = total};
    buf_init_wiped(&g->body, max);
}

static void release(struct gather *g)
{
    *g->total -= g->held;
    g->held = 0;
}

void gather_free(struct gather *g)
{
    if (g->state == GATHER_OFF)
        return;
    buf_free(&g->body);
    release(g);
    g->state = GATHER_OFF;
}

/* One byte more than may come, so that a body that is too long is seen to be. */
size_t gather_room(const struct gather *g)
{
    return g->state == GATHER_TAKING ? buf_room(&g->body) + 1 : 0;
}

void gather_data(struct gather *g, const void *p, size_t n)
{
    if (g->state != GATHER_TAKING)
        return;
    if (n > buf_room(&g->body))
        g->state = GATHER_LARGE;
    else if (*g->total + n > GATHER_TOTAL_MAX || buf_append(&g->body, p, n) < 0)
        g->state = GATHER_FULL;
    else {
        g->held += n;
        *g->total += n;
        return;
    }
    buf_free(&g->body);
    release(g);
}

void gather_end(struct gather *g)
{
    if (g->state == GATHER_TAKING)
        g->state = GATHER_WHOLE;
}

void gather_replace(struct gather *g, struct buf *b)
{
    buf_free(&g->body);
    g->body = *b;
    buf_init_wiped(b, 0);
}

bool gather_pump(struct gather *g, struct back back)
{
    size_t room;
    while (buf_len(&g->body) > 0 && (room = back.ops->room(back.self)) > 0) {
        size_t n = buf_len(&g->body) < room ? buf_len(&g->body) : room;
        back.ops->data(back.self, buf_data(&g->body), n);
        buf_drain(&g->body, n);
    }
    if (buf_len(&g->body) > 0)
        return false;
    gather_free(g);
    back.ops->end(back.self);
    return true;
}
