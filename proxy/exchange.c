#include "exchange.h"

#include "dial_client.h"
#include "guard.h"
#include "policy.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct exchange {
    struct gate *gate;
    struct identity who;
    struct front front;
    enum exchange_state state;
    struct head head;
    struct authority authority;
    const char *entry;
    const struct rule *rule;
    struct policy *policy; /* whose rule it is; a reference */
    char rule_text[256];
    bool inject;
    struct back back;
    struct origin *origin;
    struct journal_wait *wait;
    uint64_t counter; /* of the record id */
    unsigned refuse_status;
    const char *refuse_code;
    unsigned status;
    uint64_t up, down;
    bool admitted, request_ended;
    struct timespec begun;
};

static void set_state(struct exchange *x, enum exchange_state s)
{
    x->state = s;
}

static void exchange_free(struct exchange *x)
{
    journal_cancel(x->wait);
    http_head_free(&x->head);
    policy_free(x->policy);
    free(x);
}

static uint64_t elapsed_ms(const struct exchange *x)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ns =
        (now.tv_sec - x->begun.tv_sec) * INT64_C(1000000000) + now.tv_nsec - x->begun.tv_nsec;
    return (uint64_t)(ns / 1000000);
}

/* The path as it may be logged: placeholders never. */
static void put_path(struct exchange *x, struct record *r)
{
    struct slice p = x->head.path;
    if (p.n == 0)
        return;
    record_put(r, RF_PATH, guard_has_placeholder(x->gate, p) ? SLICE("[placeholder]") : p);
    if (x->head.has_query) {
        struct buf shape;
        buf_init(&shape, 1024);
        guard_query_shape(x->head.query, &shape);
        bool hide = guard_has_placeholder(x->gate, x->head.query); /* it may be a name */
        record_put(r, RF_QUERY, hide ? SLICE("[placeholder]") : buf_slice(&shape));
        buf_free(&shape);
    }
}

static void record_request(struct exchange *x, struct record *r, enum record_kind kind)
{
    char text[HOST_TEXT_MAX + 16];
    record_init(r, kind, x->counter);
    if (x->authority.host[0]) {
        record_put_str(r, RF_SCHEME, scheme_name(x->authority.scheme));
        record_put_str(r, RF_AUTHORITY, authority_text(&x->authority, text, sizeof text));
    }
    record_put(r, RF_METHOD, x->head.method);
    put_path(x, r);
    record_put_str(r, RF_RULE, x->rule_text);
    record_put_str(r, RF_ENTRY, x->entry);
    if (x->gate->mode == GATE_TOKEN && x->who.sandbox[0])
        record_put_str(r, RF_SANDBOX, x->who.sandbox);
}

/* ---- refusing ---- */

static void tell_fail(struct exchange *x, unsigned status, const char *code)
{
    char id[48] = "-";
    if (x->counter)
        journal_id(x->gate->journal, x->counter, id, sizeof id);
    struct front f = x->front;
    set_state(x, EXCHANGE_DONE);
    exchange_free(x);
    f.ops->fail(f.self, status, code, id);
}

static void on_denied_recorded(void *arg, bool ok)
{
    struct exchange *x = arg;
    x->wait = NULL;
    if (ok)
        tell_fail(x, x->refuse_status, x->refuse_code);
    else
        tell_fail(x, 503, "audit_unwritable");
}

static void deny(struct exchange *x, unsigned status, const char *code)
{
    struct record r;
    char target[HOST_TEXT_MAX + 16] = "-";
    x->refuse_status = status;
    x->refuse_code = code;
    set_state(x, EXCHANGE_RECORDING);
    x->counter = journal_next(x->gate->journal);
    if (x->authority.host[0])
        authority_text(&x->authority, target, sizeof target);
    gate_denied(x->gate, code, target, 1);
    record_request(x, &r, RECORD_DENIED);
    record_put_str(&r, RF_CODE, code);
    record_put_u64(&r, RF_STATUS, status);
    struct journal_wait *w = journal_append(x->gate->journal, &r, on_denied_recorded, x);
    if (w)
        x->wait = w;
}

void exchange_refuse(struct exchange *x, const struct head *h, const struct authority *a,
                     const char *entry, unsigned status, const char *code)
{
    x->entry = entry;
    if (a)
        x->authority = *a;
    if (h && http_head_copy(&x->head, h) < 0)
        http_head_init(&x->head);
    deny(x, status, code);
}

/* ---- the way out ---- */

static void end_record(struct exchange *x, enum record_kind kind, const char *code,
                       const struct origin_facts *facts)
{
    struct record r;
    if (!x->admitted)
        return;
    x->admitted = false;
    record_init(&r, kind, x->counter);
    record_put_str(&r, RF_CODE, code);
    if (x->status)
        record_put_u64(&r, RF_STATUS, x->status);
    record_put_u64(&r, RF_UP, x->up);
    record_put_u64(&r, RF_DOWN, x->down);
    record_put_u64(&r, RF_MS, elapsed_ms(x));
    if (facts) {
        record_put_str(&r, RF_ADDRESS, facts->address);
        record_put_str(&r, RF_DETAIL, facts->detail);
    }
    journal_note(x->gate->journal, &r);
}

static const struct front_ops front_ops;

static void open_origin(struct exchange *x)
{
    char id[48], key[HOST_TEXT_MAX + 192], text[HOST_TEXT_MAX + 16];
    struct front f = {&front_ops, x};
    journal_id(x->gate->journal, x->counter, id, sizeof id);
    snprintf(key, sizeof key, "%s|%s|%s|%s", x->who.sandbox, x->who.route->name,
             scheme_name(x->authority.scheme),
             authority_text_port(&x->authority, text, sizeof text));
    x->origin = origin_open(&x->gate->origin, x->who.route->dial, f, &x->authority, &x->head, key,
                            id, x->who.token);
    if (x->origin == NULL) {
        end_record(x, RECORD_ABORTED, "memory", NULL);
        tell_fail(x, 503, "memory");
        return;
    }
    x->back = origin_back(x->origin);
    set_state(x, EXCHANGE_OPEN);
    if (x->request_ended)
        x->back.ops->end(x->back.self);
    else /* a kept connection has room at once, and nobody else says so */
        x->front.ops->wanted(x->front.self);
}

static void on_admitted_recorded(void *arg, bool ok)
{
    struct exchange *x = arg;
    x->wait = NULL;
    if (!ok) {
        tell_fail(x, 503, "audit_unwritable");
        return;
    }
    x->admitted = true;
    open_origin(x);
}

static void open_plain(struct exchange *x)
{
    struct record r;
    set_state(x, EXCHANGE_RECORDING);
    x->counter = journal_next(x->gate->journal);
    record_request(x, &r, RECORD_ADMITTED);
    record_put_str(&r, RF_CODE, "ok");
    struct journal_wait *w = journal_append(x->gate->journal, &r, on_admitted_recorded, x);
    if (w)
        x->wait = w;
}

static void open_hop(struct exchange *x)
{
    struct front f = {&front_ops, x};
    struct hop_marks marks = {.n = 0};
    if (x->inject)
        guard_marks(x->gate, &x->who, x->rule, &marks);
    struct hop_request q = {
        .authority = x->authority,
        .generation = x->who.route->generation,
        .secret = x->inject ? x->rule->credential->secret : "",
        .entry = x->entry,
        .token = x->who.token,
        .marks = &marks,
        .head = &x->head,
    };
    x->back = hop_open(x->who.route->hop, f, &q);
    if (x->back.ops == NULL) {
        deny(x, 503, "injector_gone");
        return;
    }
    set_state(x, EXCHANGE_OPEN);
    if (x->request_ended)
        x->back.ops->end(x->back.self);
}

/* ---- deciding ---- */

static bool decide(struct exchange *x, struct decision *d)
{
    const char *why;
    if (guard_method(x->head.method) < 0) {
        deny(x, 405, "method");
        return false;
    }
    if (x->head.form == TARGET_ASTERISK || path_check(x->head.path, &why) < 0) {
        deny(x, 400, "path_ambiguous");
        return false;
    }
    struct policy_request q = {&x->authority, x->head.method, x->head.path};
    x->policy = policy_ref(x->who.route->policy);
    policy_decide(x->policy, &q, d);
    if (d->rule)
        snprintf(x->rule_text, sizeof x->rule_text, "%s", d->rule->text);
    if (d->verdict != VERDICT_ALLOW) {
        deny(x, 403, d->code);
        return false;
    }
    return true;
}

void exchange_start(struct exchange *x, struct head *h, const struct authority *a,
                    const char *entry)
{
    struct decision d;
    const char *code;
    x->entry = entry;
    x->authority = *a;
    x->head = *h;
    http_head_init(h);
    if (!decide(x, &d))
        return;
    x->rule = d.rule;
    if (x->rule->credential && a->scheme != SCHEME_HTTPS) {
        deny(x, 403, "secret_needs_tls");
        return;
    }
    guard_clean_request(&x->head);
    if (x->rule->method_scoped && guard_strip_overrides(&x->head))
        gate_denied(x->gate, "override_stripped", a->host, 1);
    if (guard_credentials(x->gate, &x->who, &x->head, x->rule, &x->inject, &code) < 0) {
        deny(x, 403, code);
        return;
    }
    if (guard_edit(&x->head, x->rule) < 0) {
        deny(x, 431, "too_many_headers");
        return;
    }
    if (x->rule->credential)
        open_hop(x);
    else
        open_plain(x);
}

struct exchange *exchange_new(struct gate *g, const struct identity *who, struct front front)
{
    struct exchange *x = calloc(1, sizeof *x);
    if (x == NULL)
        return NULL;
    x->gate = g;
    x->who = *who;
    x->front = front;
    http_head_init(&x->head);
    clock_gettime(CLOCK_MONOTONIC, &x->begun);
    return x;
}

/* ---- as the front of its back ---- */

static void front_reply(void *self, const struct head *reply)
{
    struct exchange *x = self;
    struct head h;
    set_state(x, EXCHANGE_REPLYING);
    x->status = reply->status;
    if (http_head_copy(&h, reply) < 0) {
        http_head_free(&h);
        return; /* the front has seen no reply; its end will be a failure */
    }
    guard_clean_reply(&h, x->rule->credential != NULL, x->rule->cookies);
    x->front.ops->reply(x->front.self, &h);
    http_head_free(&h);
}

static void front_data(void *self, const void *p, size_t n)
{
    struct exchange *x = self;
    x->down += n;
    x->front.ops->data(x->front.self, p, n);
}

static void front_end(void *self)
{
    struct exchange *x = self;
    struct front f = x->front;
    end_record(x, RECORD_COMPLETED, "ok", x->origin ? origin_facts(x->origin) : NULL);
    set_state(x, EXCHANGE_DONE);
    exchange_free(x);
    f.ops->end(f.self);
}

static void front_fail(void *self, unsigned status, const char *code, const char *id)
{
    struct exchange *x = self;
    char target[HOST_TEXT_MAX + 16];
    authority_text(&x->authority, target, sizeof target);
    if (status == 403 || status == 421 || status == 503)
        gate_denied(x->gate, code, target, 1);
    if (x->origin) {
        end_record(x, RECORD_ABORTED, code, origin_facts(x->origin));
        tell_fail(x, status, code);
        return;
    }
    x->back = (struct back){NULL, NULL};
    if (id == NULL && x->state == EXCHANGE_OPEN) {
        deny(x, status, code); /* the injector's end was lost before it said anything */
        return;
    }
    struct front f = x->front;
    char copy[48];
    snprintf(copy, sizeof copy, "%s", id ? id : "-");
    exchange_free(x);
    f.ops->fail(f.self, status, code, copy);
}

static size_t front_room(void *self)
{
    struct exchange *x = self;
    return x->front.ops->room(x->front.self);
}

static void front_wanted(void *self)
{
    struct exchange *x = self;
    x->front.ops->wanted(x->front.self);
}

static const struct front_ops front_ops = {
    .reply = front_reply,
    .data = front_data,
    .end = front_end,
    .fail = front_fail,
    .room = front_room,
    .wanted = front_wanted,
};

/* ---- as the back of its front ---- */

static void back_data(void *self, const void *p, size_t n)
{
    struct exchange *x = self;
    x->up += n;
    if (x->back.ops)
        x->back.ops->data(x->back.self, p, n);
}

static void back_end(void *self)
{
    struct exchange *x = self;
    x->request_ended = true;
    if (x->back.ops)
        x->back.ops->end(x->back.self);
}

static size_t back_room(void *self)
{
    struct exchange *x = self;
    return x->back.ops ? x->back.ops->room(x->back.self) : 0;
}

static void back_resume(void *self)
{
    struct exchange *x = self;
    if (x->back.ops)
        x->back.ops->resume(x->back.self);
}

static void back_cancel(void *self)
{
    struct exchange *x = self;
    const struct origin_facts *facts = x->origin ? origin_facts(x->origin) : NULL;
    end_record(x, RECORD_ABORTED, "client_gone", facts);
    if (x->back.ops)
        x->back.ops->cancel(x->back.self);
    set_state(x, EXCHANGE_DONE);
    exchange_free(x);
}

static const struct back_ops back_ops = {
    .data = back_data,
    .end = back_end,
    .room = back_room,
    .resume = back_resume,
    .cancel = back_cancel,
};

struct back exchange_back(struct exchange *x)
{
    return (struct back){&back_ops, x};
}

void exchange_note_denied(struct gate *g, const struct identity *who, const char *code,
                          const char *target, const char *entry, const char *detail)
{
    struct record r;
    gate_denied(g, code, target, 1);
    record_init(&r, RECORD_DENIED, 0);
    record_put_str(&r, RF_CODE, code);
    record_put_str(&r, RF_TARGET, target);
    record_put_str(&r, RF_ENTRY, entry);
    record_put_str(&r, RF_DETAIL, detail);
    if (g->mode == GATE_TOKEN && who)
        record_put_str(&r, RF_SANDBOX, who->sandbox);
    journal_note(g->journal, &r);
}
