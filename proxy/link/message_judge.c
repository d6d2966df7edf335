/* The copy of a message, how much of it is out, and its end, which goes through the filter inside
 * when it was judged. */
#include "message_judge.h"

#include "buf.h"

#include <stdlib.h>
#include <string.h>

struct message_judge {
    struct message_judge_order o;
    struct tunnel_filter inner; /* piece NULL: none */
    struct quota_part share;
    struct buf message;
    size_t out;     /* bytes of it that are */
    struct buf end; /* what came of the last byte */
};

enum { END_MAX = 4096 /* more than any filter holds back of a message */ };

struct message_judge *message_judge_new(const struct message_judge_order *o)
{
    struct message_judge *h = calloc(1, sizeof *h);
    if (h == NULL)
        return NULL;
    h->o = *o;
    if (o->inner)
        h->inner = *o->inner;
    buf_init_wiped(&h->message, o->max);
    buf_init_wiped(&h->end, END_MAX);
    return h;
}

void message_judge_free(struct message_judge *h)
{
    if (h == NULL)
        return;
    quota_leave(&h->share);
    buf_free(&h->message);
    buf_free(&h->end);
    free(h);
}

static const char *keep(struct message_judge *h, struct slice in)
{
    if (in.n > buf_room(&h->message))
        return "too_large_to_inspect";
    enum quota_end end = quota_take(h->o.total, &h->share, slice_str(h->o.owner), in.n);
    if (end != QUOTA_TAKEN)
        return end == QUOTA_SHARE ? "share_used" : "overload";
    return buf_append_slice(&h->message, in) < 0 ? "memory" : NULL;
}

/* All but its last byte. */
static const char *piece(void *self, struct slice in, struct slice *out)
{
    struct message_judge *h = self;
    const char *bad = keep(h, in);
    *out = (struct slice){"", 0};
    if (bad)
        return bad;
    struct slice all = buf_slice(&h->message);
    if (all.n <= h->out + 1)
        return NULL;
    struct slice may = {all.p + h->out, all.n - 1 - h->out};
    h->out = all.n - 1;
    *out = may;
    return h->inner.piece ? h->inner.piece(h->inner.self, may, out) : NULL;
}

static const char *whole(void *self, bool *wait)
{
    struct message_judge *h = self;
    return h->o.judge(h->o.arg, buf_slice(&h->message), wait);
}

static const char *finish(struct message_judge *h, struct slice last)
{
    struct slice some = last;
    const char *bad = NULL;
    if (h->inner.piece && last.n > 0)
        bad = h->inner.piece(h->inner.self, last, &some);
    if (bad == NULL && buf_append_slice(&h->end, some) < 0)
        bad = "memory";
    if (bad || h->inner.piece == NULL || h->inner.held(h->inner.self) == 0)
        return bad;
    bad = h->inner.rest(h->inner.self, &some);
    return bad == NULL && buf_append_slice(&h->end, some) < 0 ? "memory" : bad;
}

static const char *rest(void *self, struct slice *out)
{
    struct message_judge *h = self;
    struct slice all = buf_slice(&h->message);
    buf_clear(&h->end);
    const char *bad = finish(h, all.n ? (struct slice){all.p + h->out, all.n - h->out} : SLICE(""));
    *out = buf_slice(&h->end);
    h->out = 0;
    buf_free(&h->message);
    quota_leave(&h->share);
    return bad;
}

static const char *control(void *self, char *p, size_t n)
{
    struct message_judge *h = self;
    return h->inner.piece ? h->inner.control(h->inner.self, p, n) : NULL;
}

static size_t held(const void *self)
{
    const struct message_judge *h = self;
    return buf_len(&h->message) - h->out + (h->inner.piece ? h->inner.held(h->inner.self) : 0);
}

struct tunnel_filter message_judge_filter(struct message_judge *h)
{
    return (struct tunnel_filter){
        .piece = piece, .rest = rest, .control = control, .held = held, .self = h, .whole = whole};
}
