/* The body of a request on its way through the detectors of its rule: nothing of it goes on, to the
 * inspection, the log or the origin, before they have seen it. A body that is not to pass with
 * something in it, and is short enough, is seen whole before the request is admitted. */
#include "exchange_internal.h"

#include "body_facts.h"
#include "detect_stream.h"
#include "guard_placeholder.h"
#include "policy.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

enum { OUTWARD_HELD = 64 * 1024 };

struct exchange_outward {
    struct detect_stream *stream;
    struct quota_part share;
    struct event *turn; /* the refusal, what comes after the whole, or the end of the wait */
    bool ended, passed; /* by the client; and to whom it goes */
    bool whole;         /* it is held until it was seen whole */
    bool refused, told;
    char found[DETECT_FOUND_MAX];
};

static bool is_own(void *arg, struct slice text)
{
    const struct exchange *x = arg;
    return guard_has_placeholder(x->gate, text);
}

static void wait_more(struct exchange *x)
{
    struct timeval wait = {(time_t)x->gate->limits.idle_seconds, 0};
    if (x->outward->whole)
        event_add(x->outward->turn, &wait);
}

static void name_found(struct exchange *x)
{
    struct exchange_outward *o = x->outward;
    detect_found_text(detect_stream_counts(o->stream), o->found);
    if (o->found[0])
        x->relay.found = o->found;
}

void exchange_outward_found(struct exchange *x)
{
    struct exchange_outward *o = x->outward;
    const struct upstream *b = &x->relay.upstream;
    if (o == NULL || o->told)
        return;
    name_found(x);
    if (x->relay.found == NULL || b->ops == NULL || b->ops->found == NULL)
        return;
    o->told = true;
    b->ops->found(b->self, o->found);
}

/* No side is told anything from inside its own call: the loop does it. */
static void refuse(struct exchange *x)
{
    static const struct timeval soon = {0, 1000};
    struct exchange_outward *o = x->outward;
    enum detect_end end = detect_stream_state(o->stream);
    const char *code = end == DETECT_UNREADABLE ? "content_type" : "pattern";
    struct event *again = o->turn; /* who ends the exchange frees it */
    name_found(x);
    size_t n = strnlen(o->found, sizeof x->refuse_detail - 1);
    memcpy(x->refuse_detail, o->found, n);
    x->refuse_detail[n] = 0;
    x->refuse_field = true;
    o->refused = true;
    if (exchange_refuse_body(x, end == DETECT_UNREADABLE ? 415 : 403, code))
        return; /* and the exchange may be gone, with o */
    o->refused = false;
    event_add(again, &soon);
}

static void on_turn(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct exchange *x = arg;
    struct exchange_outward *o = x->outward;
    if (detect_stream_state(o->stream) != DETECT_PASSES) {
        if (!o->refused)
            refuse(x);
        return;
    }
    if (!o->whole || x->state != EXCHANGE_OUTWARD) /* refused meanwhile */
        return;
    o->whole = false;
    if (o->ended)
        exchange_ask(x);
    else
        exchange_deny(x, 408, "timeout");
}

static int prepare(struct exchange *x, enum detect_form form)
{
    const struct detect_rules *rules = x->rule->outward;
    struct exchange_outward *o = calloc(1, sizeof *o);
    x->outward = o;
    if (o == NULL)
        return -1;
    o->whole = rules->refuse && x->head.body == BODY_LENGTH && x->head.length <= OUTWARD_HELD;
    o->turn = event_new(x->gate->base, -1, 0, on_turn, x);
    o->stream = detect_stream_new(rules, form, is_own, x);
    return o->turn && o->stream ? 0 : -1;
}

bool exchange_outward(struct exchange *x)
{
    struct inspect_request facts = body_facts(&x->head);
    enum detect_form form;
    if (x->rule->outward == NULL || !facts.has_body)
        return true;
    if (facts.coded || facts.n_types > 1 || !detect_form_of(facts.type, &form)) {
        exchange_deny(x, 415, facts.coded ? "content_coding" : "content_type");
        return false;
    }
    if (prepare(x, form) < 0) {
        exchange_outward_free(x);
        exchange_deny(x, 503, "memory");
        return false;
    }
    enum quota_end end = quota_take(&x->gate->inspected, &x->outward->share,
                                    slice_str(x->who.sandbox), DETECT_STREAM_SIZE);
    if (end != QUOTA_TAKEN) {
        exchange_outward_free(x); /* its body is not looked at */
        exchange_deny(x, 503, end == QUOTA_SHARE ? "share_used" : "overload");
        return false;
    }
    wait_more(x);
    return true;
}

bool exchange_outward_waits(const struct exchange *x)
{
    return x->outward && x->outward->whole;
}

void exchange_outward_free(struct exchange *x)
{
    struct exchange_outward *o = x->outward;
    if (o == NULL)
        return;
    quota_leave(&o->share);
    if (o->turn)
        event_free(o->turn);
    detect_stream_free(o->stream);
    free(o);
    x->outward = NULL;
    x->relay.found = NULL;
}

/* What is decided goes on, as far as there is room. */
void exchange_outward_pump(struct exchange *x)
{
    struct exchange_outward *o = x->outward;
    if (o->whole || detect_stream_state(o->stream) != DETECT_PASSES)
        return;
    struct slice ready = detect_stream_ready(o->stream);
    size_t sent = 0, room;
    while (sent < ready.n && (room = exchange_pass_room(x)) > 0) {
        size_t n = ready.n - sent < room ? ready.n - sent : room;
        exchange_pass(x, ready.p + sent, n);
        sent += n;
    }
    detect_stream_went(o->stream, sent);
    if (o->ended && !o->passed && detect_stream_empty(o->stream)) {
        o->passed = true;
        exchange_pass_end(x);
    }
}

static void after(struct exchange *x)
{
    struct exchange_outward *o = x->outward;
    if (detect_stream_state(o->stream) != DETECT_PASSES || (o->whole && o->ended))
        event_active(o->turn, 0, 0);
    else if (o->whole)
        wait_more(x);
    else
        exchange_outward_pump(x);
}

void exchange_outward_data(struct exchange *x, const void *p, size_t n)
{
    struct detect_stream *s = x->outward->stream;
    if (detect_stream_state(s) != DETECT_PASSES)
        return;
    detect_stream_take(s, p, n);
    after(x);
}

void exchange_outward_end(struct exchange *x)
{
    struct detect_stream *s = x->outward->stream;
    if (detect_stream_state(s) != DETECT_PASSES)
        return;
    x->outward->ended = true;
    detect_stream_end(s);
    after(x);
}

/* No more than can go on: what waits here is read from memory that others have used meanwhile. */
size_t exchange_outward_room(struct exchange *x)
{
    const struct exchange_outward *o = x->outward;
    if (detect_stream_state(o->stream) != DETECT_PASSES)
        return STREAM_CHUNK;
    size_t room = detect_stream_room(o->stream), on = room;
    if (!o->whole)
        on = detect_stream_ready(o->stream).n > 0 ? 0 : exchange_pass_room(x);
    return on < room ? on : room;
}
