#include "preview.h"

#include "buf.h"
#include "pack.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum preview_state {
    PREVIEW_READING = 0,
    PREVIEW_WASTING, /* refused; git says what it has to say before it listens */
    PREVIEW_DECIDED,
    PREVIEW_PASSING
};

struct preview {
    struct preview_order o;
    enum preview_state state;
    struct inspect_request request;
    struct buf held;
    struct event *turn; /* the decision, or the end of patience */
    bool nudge;         /* who feeds us may have stopped at our bound */
    enum inspect_answer answer;
    struct inspect_result why;
    struct buf answer_text;
    size_t bound, wasted;
};

static void set_state(struct preview *p, enum preview_state s)
{
    p->state = s;
}

static bool coded(const struct head *h)
{
    for (size_t i = 0; i < h->n; i++)
        if (slice_eq_str(h->fields[i].name, "content-encoding") &&
            !slice_ieq_str(h->fields[i].value, "identity"))
            return true;
    return false;
}

static struct inspect_request request_of(const struct head *h)
{
    struct inspect_request r = {.method = h->method,
                                .path = h->path,
                                .query = h->query,
                                .has_query = h->has_query,
                                .n_types = http_head_count(h, "content-type"),
                                .coded = coded(h),
                                .has_body = h->body != BODY_NONE,
                                .length = h->body == BODY_LENGTH ? h->length : 0};
    const struct field *type = http_head_find(h, "content-type");
    if (type)
        r.type = type->value;
    return r;
}

enum inspect_answer preview_head(const struct inspection *in, const struct head *h,
                                 struct inspect_result *why)
{
    struct inspect_request r = request_of(h);
    return inspect_head(in, &r, why);
}

/* No front is told anything from inside its own call: the loop does it. */
static void decide(struct preview *p, enum inspect_answer a)
{
    p->answer = a;
    set_state(p, PREVIEW_DECIDED);
    event_active(p->turn, 0, 0);
}

static void refuse(struct preview *p, unsigned status, const char *code)
{
    p->why = (struct inspect_result){.status = status, .code = code};
    decide(p, INSPECT_REFUSED);
}

/* Refuse as git's own server does, once the client has said all. */
static void refuse_push(struct preview *p, const struct push *push, bool whole)
{
    buf_init(&p->answer_text, STREAM_IN_MAX);
    if (!push->report || push->n == 0 || push_answer(push, p->why.detail, &p->answer_text) < 0) {
        buf_free(&p->answer_text);
        decide(p, INSPECT_REFUSED);
        return;
    }
    p->why.status = 200;
    p->answer = INSPECT_REFUSED;
    set_state(p, PREVIEW_WASTING);
    p->nudge = !whole;
    if (whole)
        decide(p, INSPECT_REFUSED);
    else
        event_active(p->turn, 0, 0);
}

/* The commands may pass; the pack has to show that they rewrite no history. */
static enum inspect_answer look_at_pack(struct preview *p, const struct push *push, bool whole)
{
    struct slice all = buf_slice(&p->held);
    if (!whole && all.n <= p->bound)
        return INSPECT_MORE;
    enum pack_answer a = PACK_NOT_SHOWN;
    if (whole && push->end <= all.n)
        a = pack_shows((struct slice){all.p + push->end, all.n - push->end}, push);
    if (a == PACK_SHOWN)
        return INSPECT_PASS;
    p->why.status = 403;
    p->why.code = "ref";
    snprintf(p->why.detail, sizeof p->why.detail, "%s",
             a == PACK_BAD ? "the pack cannot be read"
             : whole       ? "not shown to be a fast-forward"
                           : "too large to show that it is a fast-forward");
    return INSPECT_REFUSED;
}

static void look_at_push(struct preview *p, bool whole, enum inspect_answer a)
{
    struct push push;
    int r = push_read(buf_slice(&p->held), &push);
    if (r == 1 && a == INSPECT_PASS && p->why.pack)
        a = look_at_pack(p, &push, whole);
    if (r == 1 && a == INSPECT_REFUSED)
        refuse_push(p, &push, whole);
    else if (a != INSPECT_MORE)
        decide(p, a);
}

static void look(struct preview *p, bool whole)
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

static void wait_more(struct preview *p)
{
    struct timeval patience = {(time_t)p->o.seconds, 0};
    if (p->state == PREVIEW_READING || p->state == PREVIEW_WASTING)
        event_add(p->turn, &patience);
}

static void on_turn(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct preview *p = arg;
    if (p->nudge) {
        p->nudge = false;
        wait_more(p);
        if (p->state == PREVIEW_WASTING) {
            p->o.wanted(p->o.arg);
            return;
        }
    }
    if (p->state == PREVIEW_READING) {
        p->answer = INSPECT_REFUSED;
        p->why = (struct inspect_result){.status = 408, .code = "timeout"};
    }
    set_state(p, PREVIEW_PASSING);
    p->o.decided(p->o.arg, p->answer, &p->why);
}

struct preview *preview_new(const struct preview_order *o)
{
    struct preview *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->o = *o;
    p->request = request_of(o->head);
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

void preview_free(struct preview *p)
{
    if (p == NULL)
        return;
    *p->o.total -= buf_len(&p->held);
    event_free(p->turn);
    buf_free(&p->held);
    buf_free(&p->answer_text);
    free(p);
}

bool preview_answer(const struct preview *p, const struct front *f, const char *code,
                    const char *id)
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

size_t preview_room(const struct preview *p)
{
    return p->state == PREVIEW_WASTING   ? STREAM_CHUNK
           : p->state == PREVIEW_READING ? buf_room(&p->held)
                                         : 0;
}

void preview_data(struct preview *p, const void *bytes, size_t n)
{
    if (p->state == PREVIEW_WASTING) {
        p->wasted += n;
        if (p->wasted > PREVIEW_WASTE_MAX)
            decide(p, INSPECT_REFUSED);
        wait_more(p);
        return;
    }
    if (p->state != PREVIEW_READING)
        return;
    if (*p->o.total + n > PREVIEW_TOTAL) {
        refuse(p, 503, "overload");
        return;
    }
    if (buf_append(&p->held, bytes, n) < 0) {
        refuse(p, 503, "memory");
        return;
    }
    *p->o.total += n;
    look(p, false);
    wait_more(p);
}

void preview_end(struct preview *p)
{
    if (p->state == PREVIEW_READING)
        look(p, true);
    else if (p->state == PREVIEW_WASTING)
        decide(p, INSPECT_REFUSED);
}

bool preview_pump(struct preview *p, const struct back *to, uint64_t *passed)
{
    while (buf_len(&p->held) > 0) {
        size_t room = to->ops->room(to->self), n = buf_len(&p->held);
        if (room == 0)
            return false;
        n = n < room ? n : room;
        to->ops->data(to->self, buf_data(&p->held), n);
        buf_drain(&p->held, n);
        *p->o.total -= n;
        *passed += n;
    }
    return true;
}
