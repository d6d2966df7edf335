/* Holds what comes of a push, asks the rule about its commands, and where its pack has to show
 * more, follows that to its end. */
#include "push_stream.h"

#include "pack_end.h"
#include "push.h"
#include "push_judge.h"

#include <stdio.h>
#include <stdlib.h>

struct push_stream {
    const struct inspection *in;
    struct quota *total;
    const char *owner;
    struct quota_part share;
    struct buf held;
    struct inspect_result why;
    struct pack_end pack;
    bool in_pack; /* its commands may pass, if its pack shows the rest */
};

struct push_stream *push_stream_new(const struct inspection *in, struct quota *total,
                                    const char *owner)
{
    struct push_stream *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->in = in;
    p->total = total;
    p->owner = owner;
    buf_init(&p->held, INSPECT_LARGE + 1);
    return p;
}

void push_stream_free(struct push_stream *p)
{
    if (p == NULL)
        return;
    pack_end_done(&p->pack);
    quota_leave(&p->share);
    buf_free(&p->held);
    free(p);
}

static enum inspect_answer refuse(struct push_stream *p, const char *code, const char *text)
{
    p->why.status = 503;
    p->why.code = code;
    snprintf(p->why.detail, sizeof p->why.detail, "%s", text);
    return INSPECT_REFUSED;
}

/* Of the pack, these bytes are new. */
static enum inspect_answer follow(struct push_stream *p, struct slice bytes, bool end)
{
    enum pack_end_state s = pack_end_take(&p->pack, bytes);
    if (s == PACK_END_WHOLE || s == PACK_END_BAD || end)
        return push_judge_pack(buf_slice(&p->held), &p->why);
    return buf_len(&p->held) > INSPECT_LARGE ? push_judge_large(&p->why) : INSPECT_MORE;
}

static enum inspect_answer judge(struct push_stream *p, bool end)
{
    struct slice all = buf_slice(&p->held);
    struct push push;
    enum inspect_answer a = push_judge(p->in, all, end, &p->why);
    if (a != INSPECT_PASS || !p->why.pack)
        return a;
    if (push_read(all, &push) != 1)
        return refuse(p, "body_ambiguous", "push");
    p->in_pack = true;
    pack_end_init(&p->pack, (unsigned)(push.commands[0].old_id.n / 2));
    return follow(p, (struct slice){all.p + push.end, all.n - push.end}, end);
}

enum inspect_answer push_stream_take(struct push_stream *p, struct slice bytes, bool end)
{
    if (quota_take(p->total, &p->share, slice_str(p->owner), bytes.n) != QUOTA_TAKEN)
        return refuse(p, "overload", "too much is held of other pushes; try again");
    if (bytes.n > buf_room(&p->held))
        return push_judge_large(&p->why);
    if (buf_append_slice(&p->held, bytes) < 0)
        return refuse(p, "memory", "out of memory");
    return p->in_pack ? follow(p, bytes, end) : judge(p, end);
}

const struct inspect_result *push_stream_why(const struct push_stream *p)
{
    return &p->why;
}

struct slice push_stream_held(const struct push_stream *p)
{
    return buf_slice(&p->held);
}

void push_stream_sent(struct push_stream *p, size_t n)
{
    buf_drain(&p->held, n);
    quota_give(&p->share, n);
}

int push_stream_answer(const struct push_stream *p, struct buf *out)
{
    struct push push;
    return push_read(buf_slice(&p->held), &push) == 1 && push.report && push.n > 0 &&
           push_answer(&push, p->why.detail, out) == 0;
}
