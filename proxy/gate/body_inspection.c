/* Holds a body and has the inspection look at it each time there is more, until it decides or
 * the bound is reached. A refused push is answered as git's server would, once the client has
 * said all. */
#include "body_inspection.h"

#include "assertion.h"
#include "body_facts.h"
#include "buf.h"
#include "push.h"
#include "push_judge.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum body_inspection_state {
    BODY_INSPECTION_READING = 0,
    BODY_INSPECTION_WASTING, /* refused; git says what it has to say before it listens */
    BODY_INSPECTION_DECIDED,
    BODY_INSPECTION_PASSING
};

struct body_inspection {
    struct body_inspection_order o;
    enum body_inspection_state state;
    struct inspect_request request;
    struct buf held;
    struct quota_part share;
    struct event *turn; /* the decision, or the end of the wait */
    bool nudge;         /* who feeds us may have stopped at our bound */
    enum inspect_answer answer;
    struct inspect_result why;
    struct buf answer_text;
    size_t bound, wasted;
};

static void set_state(struct body_inspection *p, enum body_inspection_state s)
{
    ASSERT(s >= p->state); /* what was decided stays so */
    p->state = s;
}

enum inspect_answer body_inspection_head(const struct inspection *in, const struct head *h,
                                         struct inspect_result *why)
{
    struct inspect_request r = body_facts(h);
    return inspect_head(in, &r, why);
}

/* No front is told anything from inside its own call: the loop does it. */
static void decide(struct body_inspection *p, enum inspect_answer a)
{
    p->answer = a;
    set_state(p, BODY_INSPECTION_DECIDED);
    event_active(p->turn, 0, 0);
}

static void refuse(struct body_inspection *p, unsigned status, const char *code)
{
    p->why = (struct inspect_result){.status = status, .code = code};
    decide(p, INSPECT_REFUSED);
}

/* Refuse as git's own server does, once the client has said all. */
static void refuse_push(struct body_inspection *p, const struct push *push, bool whole)
{
    buf_init(&p->answer_text, STREAM_IN_MAX);
    if (!push->report || push->n == 0 || push_answer(push, p->why.detail, &p->answer_text) < 0) {
        buf_free(&p->answer_text);
        decide(p, INSPECT_REFUSED);
        return;
    }
    p->why.status = 200;
    p->answer = INSPECT_REFUSED;
    set_state(p, BODY_INSPECTION_WASTING);
    p->nudge = !whole;
    if (whole)
        decide(p, INSPECT_REFUSED);
    else
        event_active(p->turn, 0, 0);
}

/* The commands may pass; the pack has to show that they rewrite no history. */
static enum inspect_answer look_at_pack(struct body_inspection *p, bool whole)
{
    struct slice all = buf_slice(&p->held);
    if (whole)
        return push_judge_pack(all, &p->why);
    return all.n > p->bound ? push_judge_large(&p->why) : INSPECT_MORE;
}

static void look_at_push(struct body_inspection *p, bool whole, enum inspect_answer a)
{
    struct push push;
    int r = push_read(buf_slice(&p->held), &push);
    if (r == 1 && a == INSPECT_PASS && p->why.pack)
        a = look_at_pack(p, whole);
    if (r == 1 && a == INSPECT_REFUSED)
        refuse_push(p, &push, whole);
    else if (a != INSPECT_MORE)
        decide(p, a);
}

static void look(struct body_inspection *p, bool whole)
{
    enum inspect_answer a =
        inspect_body(p->o.inspection, &p->request, buf_slice(&p->held), whole, &p->why);
    if (p->o.inspection->kind == INSPECT_GIT && p->o.inspection->refs_given)
        look_at_push(p, whole, a);
    else if (a != INSPECT_MORE)
        decide(p, a);
    else if (buf_len(&p->held) > p->bound)
        refuse(p, 413, "too_large_to_inspect");
}

static void wait_more(struct body_inspection *p)
{
    struct timeval start_wait = {(time_t)p->o.seconds, 0};
    if (p->state == BODY_INSPECTION_READING || p->state == BODY_INSPECTION_WASTING)
        event_add(p->turn, &start_wait);
}

static void on_turn(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct body_inspection *p = arg;
    if (p->nudge) {
        p->nudge = false;
        wait_more(p);
        if (p->state == BODY_INSPECTION_WASTING) {
            p->o.wanted(p->o.arg);
            return;
        }
    }
    if (p->state == BODY_INSPECTION_READING) {
        p->answer = INSPECT_REFUSED;
        p->why = (struct inspect_result){.status = 408, .code = "timeout"};
    }
    set_state(p, BODY_INSPECTION_PASSING);
    p->o.decided(p->o.arg, p->answer, &p->why);
}

struct body_inspection *body_inspection_new(const struct body_inspection_order *o)
{
    struct body_inspection *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->o = *o;
    p->request = body_facts(o->head);
    p->bound = inspect_bound(o->inspection);
    buf_init(&p->held, p->bound + 1);
    p->turn = event_new(o->base, -1, 0, on_turn, p);
    if (p->turn == NULL) {
        free(p);
        return NULL;
    }
    wait_more(p);
    return p;
}

void body_inspection_free(struct body_inspection *p)
{
    if (p == NULL)
        return;
    quota_leave(&p->share);
    event_free(p->turn);
    buf_free(&p->held);
    buf_free(&p->answer_text);
    free(p);
}

bool body_inspection_answer(const struct body_inspection *p, const struct downstream *f,
                            const char *code, const char *id)
{
    struct slice text = buf_slice(&p->answer_text);
    struct head h;
    char mark[96];
    snprintf(mark, sizeof mark, "%s %s", code, id);
    http_head_init(&h);
    h.status = 200;
    h.minor = 1;
    h.body = BODY_LENGTH;
    h.length = text.n;
    bool ok =
        http_head_set(&h, "content-type", SLICE("application/x-git-receive-pack-result")) == 0 &&
        http_head_set(&h, "cache-control", SLICE("no-cache")) == 0 &&
        http_head_set(&h, "durward-denied", slice_str(mark)) == 0;
    if (ok) {
        f->ops->reply(f->self, &h);
        f->ops->data(f->self, text.p, text.n);
    }
    http_head_free(&h);
    return ok;
}

size_t body_inspection_room(const struct body_inspection *p)
{
    return p->state == BODY_INSPECTION_WASTING   ? STREAM_CHUNK
           : p->state == BODY_INSPECTION_READING ? buf_room(&p->held)
                                                 : 0;
}

void body_inspection_data(struct body_inspection *p, const void *bytes, size_t n)
{
    if (p->state == BODY_INSPECTION_WASTING) {
        p->wasted += n;
        if (p->wasted > BODY_INSPECTION_WASTE_MAX)
            decide(p, INSPECT_REFUSED);
        wait_more(p);
        return;
    }
    if (p->state != BODY_INSPECTION_READING)
        return;
    enum quota_end end = quota_take(p->o.total, &p->share, slice_str(p->o.owner), n);
    if (end != QUOTA_TAKEN) {
        refuse(p, 503, end == QUOTA_SHARE ? "share_used" : "overload");
        return;
    }
    if (buf_append(&p->held, bytes, n) < 0) {
        refuse(p, 503, "memory");
        return;
    }
    look(p, false);
    wait_more(p);
}

void body_inspection_end(struct body_inspection *p)
{
    if (p->state == BODY_INSPECTION_READING)
        look(p, true);
    else if (p->state == BODY_INSPECTION_WASTING)
        decide(p, INSPECT_REFUSED);
}

bool body_inspection_pump(struct body_inspection *p, const struct upstream *to, uint64_t *passed)
{
    size_t n = stream_send(to, buf_slice(&p->held));
    buf_drain(&p->held, n);
    quota_give(&p->share, n);
    *passed += n;
    return buf_len(&p->held) == 0;
}
