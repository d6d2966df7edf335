/* Takes bytes up to the body's bound and the sandbox's share, and sends them on when the body may
 * go; once a bound is crossed it keeps nothing. */
#include "body_buffer.h"

void body_buffer_begin(struct body_buffer *g, size_t max, struct quota *total, const char *owner)
{
    *g = (struct body_buffer){
        .state = BODY_BUFFER_TAKING, .max = max, .total = total, .owner = owner};
    buf_init_wiped(&g->body, max);
}

void body_buffer_free(struct body_buffer *g)
{
    if (g->state == BODY_BUFFER_OFF)
        return;
    buf_free(&g->body);
    quota_leave(&g->held);
    g->state = BODY_BUFFER_OFF;
}

/* One byte more than may come, so that a body that is too long is seen to be. */
size_t body_buffer_room(const struct body_buffer *g)
{
    return g->state == BODY_BUFFER_TAKING ? buf_room(&g->body) + 1 : 0;
}

void body_buffer_data(struct body_buffer *g, const void *p, size_t n)
{
    if (g->state != BODY_BUFFER_TAKING)
        return;
    if (n > buf_room(&g->body)) {
        g->state = BODY_BUFFER_LARGE;
    } else {
        g->full = quota_take(g->total, &g->held, slice_str(g->owner), n);
        if (g->full == QUOTA_TAKEN && buf_append(&g->body, p, n) < 0)
            g->full = QUOTA_OUT;
        if (g->full == QUOTA_TAKEN)
            return;
        g->state = BODY_BUFFER_FULL;
    }
    buf_free(&g->body);
    quota_leave(&g->held);
}

void body_buffer_end(struct body_buffer *g)
{
    if (g->state == BODY_BUFFER_TAKING)
        g->state = BODY_BUFFER_WHOLE;
}

void body_buffer_replace(struct body_buffer *g, struct buf *b)
{
    buf_free(&g->body);
    g->body = *b;
    buf_init_wiped(b, 0);
}

void body_buffer_keep(struct body_buffer *g)
{
    g->keeps = true;
    g->sent = 0;
    g->told = false;
}

void body_buffer_again(struct body_buffer *g)
{
    g->keeps = false;
    g->sent = 0;
    g->told = false;
}

void body_buffer_release(struct body_buffer *g)
{
    if (!g->keeps)
        return;
    g->keeps = false;
    if (g->told)
        body_buffer_free(g);
    else
        buf_drain(&g->body, g->sent);
}

static bool pump_kept(struct body_buffer *g, struct upstream upstream)
{
    if (g->told)
        return true;
    struct slice all = buf_slice(&g->body), rest = {all.p + g->sent, all.n - g->sent};
    g->sent += stream_send(&upstream, rest);
    g->told = g->sent == all.n;
    if (g->told)
        upstream.ops->end(upstream.self);
    return g->told;
}

bool body_buffer_pump(struct body_buffer *g, struct upstream upstream)
{
    if (g->keeps)
        return pump_kept(g, upstream);
    buf_drain(&g->body, stream_send(&upstream, buf_slice(&g->body)));
    if (buf_len(&g->body) > 0)
        return false;
    body_buffer_free(g);
    upstream.ops->end(upstream.self);
    return true;
}
