#include "exchange_internal.h"

#include "dial_client.h"
#include "guard.h"
#include "policy.h"
#include "preview.h"
#include "spend.h"
#include "relay.h"
#include "tunnel.h"
#include "upgrade.h"
#include "watch.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void exchange_set_state(struct exchange *x, enum exchange_state s)
{
    x->state = s;
}

void exchange_free(struct exchange *x)
{
    journal_cancel(x->wait);
    preview_free(x->preview);
    relay_done(&x->relay);
    watch_free(x->watch);
    http_head_free(&x->head);
    policy_free(x->policy);
    free(x);
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
    if (x->relay.sandbox)
        record_put_str(r, RF_SANDBOX, x->relay.sandbox);
    if (x->relay.policy)
        record_put_str(r, RF_POLICY, x->relay.policy);
}

/* ---- refusing ---- */

void exchange_tell_fail(struct exchange *x, unsigned status, const char *code)
{
    char id[48] = "-";
    if (x->counter)
        journal_id(x->gate->journal, x->counter, id, sizeof id);
    struct front f = x->relay.front;
    exchange_set_state(x, EXCHANGE_DONE);
    stream_retry(&f, x->retry);
    bool answered = status == 200 && preview_answer(x->preview, &f, code, id);
    exchange_free(x);
    if (answered)
        f.ops->end(f.self);
    else
        f.ops->fail(f.self, status, code, id);
}

static void on_denied_recorded(void *arg, bool ok)
{
    struct exchange *x = arg;
    x->wait = NULL;
    if (ok)
        exchange_tell_fail(x, x->refuse_status, x->refuse_code);
    else
        exchange_tell_fail(x, 503, "audit_unwritable");
}

static void make_denial(struct exchange *x, unsigned status, const char *code, struct record *r)
{
    char target[HOST_TEXT_MAX + 16] = "-";
    if (x->counter == 0)
        x->counter = journal_next(x->gate->journal);
    if (x->authority.host[0])
        authority_text(&x->authority, target, sizeof target);
    gate_denied(x->gate, code, target, 1);
    record_request(x, r, RECORD_DENIED);
    record_put_str(r, RF_CODE, code);
    if (status)
        record_put_u64(r, RF_STATUS, status);
    struct slice detail = slice_str(x->refuse_detail);
    if (detail.n)
        record_put(r, RF_DETAIL,
                   guard_has_placeholder(x->gate, detail) ? SLICE("[placeholder]") : detail);
}

void exchange_deny(struct exchange *x, unsigned status, const char *code)
{
    struct record r;
    x->refuse_status = status;
    x->refuse_code = code;
    exchange_set_state(x, EXCHANGE_RECORDING);
    make_denial(x, status, code, &r);
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
    exchange_deny(x, status, code);
}

/* ---- the way out ---- */

static bool holds_placeholder(void *gate, struct slice text)
{
    return guard_has_placeholder(gate, text);
}

void exchange_end_record(struct exchange *x, enum record_kind kind, const char *code)
{
    struct record r;
    if (!x->admitted)
        return;
    x->admitted = false;
    tunnel_verdict(x->relay.tunnel, &kind, &code);
    relay_record_bodies(&x->relay, x->gate->journal, x->counter, holds_placeholder, x->gate);
    relay_record(&x->relay, &r, kind, x->counter, code);
    if (x->origin)
        origin_record(origin_facts(x->origin), relay_begun(&x->relay), &r);
    journal_note(x->gate->journal, &r);
}

/* What the preview still holds goes first. */
void exchange_pump(struct exchange *x)
{
    struct relay *r = &x->relay;
    if (!preview_pump(x->preview, &r->back, &r->up))
        return;
    preview_free(x->preview);
    x->preview = NULL;
    if (r->request_ended)
        r->back.ops->end(r->back.self);
    else
        r->front.ops->wanted(r->front.self);
}

static void open_back(struct exchange *x, struct back back)
{
    exchange_set_state(x, EXCHANGE_OPEN);
    if (x->preview == NULL) {
        relay_open(&x->relay, back);
        return;
    }
    x->relay.back = back;
    exchange_pump(x);
}

static void open_origin(struct exchange *x)
{
    char id[48], key[HOST_TEXT_MAX + 192], text[HOST_TEXT_MAX + 16];
    struct front f = {&exchange_front_ops, x};
    journal_id(x->gate->journal, x->counter, id, sizeof id);
    snprintf(key, sizeof key, "%s|%s|%s|%s", x->who.sandbox, x->who.route->name,
             scheme_name(x->authority.scheme),
             authority_text_port(&x->authority, text, sizeof text));
    x->origin = origin_open(&x->gate->origin, x->who.route->dial, f, &x->authority, &x->head, key,
                            id, x->who.token, NULL);
    if (x->origin == NULL) {
        exchange_end_record(x, RECORD_ABORTED, "memory");
        exchange_tell_fail(x, 503, "memory");
        return;
    }
    relay_admitted(&x->relay, x->gate->base, x->gate->limits.progress_seconds, x->gate->journal,
                   x->counter);
    open_back(x, origin_back(x->origin));
}

static void on_admitted_recorded(void *arg, bool ok)
{
    struct exchange *x = arg;
    x->wait = NULL;
    if (!ok) {
        exchange_tell_fail(x, 503, "audit_unwritable");
        return;
    }
    x->admitted = true;
    open_origin(x);
}

void exchange_open_plain(struct exchange *x)
{
    struct record r;
    exchange_set_state(x, EXCHANGE_RECORDING);
    x->counter = journal_next(x->gate->journal);
    record_request(x, &r, RECORD_ADMITTED);
    record_put_str(&r, RF_CODE, "ok");
    struct journal_wait *w = journal_append(x->gate->journal, &r, on_admitted_recorded, x);
    if (w)
        x->wait = w;
}

static void open_hop(struct exchange *x)
{
    struct front f = {&exchange_front_ops, x};
    struct hop_marks marks;
    struct hop_blanks blanks;
    guard_marks(x->gate, &x->who, x->rule, x->inject, &marks, &blanks);
    struct hop_request q = {
        .authority = x->authority,
        .generation = x->who.route->generation,
        .secret = x->inject ? x->rule->credential->secret : "",
        .entry = x->entry,
        .token = x->who.token,
        .marks = &marks,
        .blanks = &blanks,
        .head = &x->head,
    };
    struct back hop = hop_open(x->who.route->hop, f, &q);
    if (hop.ops == NULL) {
        exchange_deny(x, 503, "injector_gone");
        return;
    }
    open_back(x, hop);
}

/* ---- deciding ---- */

static bool decide(struct exchange *x, struct decision *d)
{
    const char *why;
    if (guard_method(x->head.method) < 0) {
        exchange_deny(x, 405, "method");
        return false;
    }
    if (x->head.form == TARGET_ASTERISK || path_check(x->head.path, &why) < 0) {
        exchange_deny(x, 400, "path_ambiguous");
        return false;
    }
    struct policy_request q = {&x->authority, x->head.method, x->head.path};
    x->policy = policy_ref(x->who.route->policy);
    policy_decide(x->policy, &q, d);
    if (d->rule)
        snprintf(x->rule_text, sizeof x->rule_text, "%s", d->rule->text);
    bool allowed = d->verdict != VERDICT_DENY;
    if (!allowed || d->rule->tunnel) { /* in clear to us is not what a tunnel is for */
        exchange_deny(x, 403, allowed ? "tunnel" : d->code);
        return false;
    }
    return true;
}

static void go(struct exchange *x)
{
    if (x->rule->credential || x->rule->ask)
        open_hop(x);
    else if (x->rule->budget || policy_budget(x->policy))
        exchange_budget(x);
    else
        exchange_open_plain(x);
}

static void on_inspected(void *arg, enum inspect_answer a, const struct inspect_result *why)
{
    struct exchange *x = arg;
    if (a == INSPECT_PASS) {
        go(x);
        return;
    }
    memcpy(x->refuse_detail, why->detail, sizeof x->refuse_detail);
    exchange_deny(x, why->status, why->code);
}

/* What the rule asks of the body comes before *admitted*. */
static void inspect(struct exchange *x)
{
    struct inspect_result why;
    struct preview_order o = {.base = x->gate->base,
                              .inspection = x->rule->inspection,
                              .head = &x->head,
                              .seconds = x->gate->limits.idle_seconds,
                              .total = &x->gate->previewed,
                              .wanted = relay_wanted,
                              .decided = on_inspected,
                              .arg = x};
    enum inspect_answer a = preview_head(o.inspection, o.head, &why);
    if (a != INSPECT_MORE) {
        on_inspected(x, a, &why);
        return;
    }
    x->preview = preview_new(&o);
    if (x->preview == NULL)
        exchange_deny(x, 503, "memory");
    else
        exchange_set_state(x, EXCHANGE_PREVIEW);
}

void exchange_start(struct exchange *x, struct head *h, const struct authority *a,
                    const char *entry)
{
    struct decision d;
    const char *code;
    x->entry = entry;
    x->authority = *a;
    http_head_move(&x->head, h);
    if (!decide(x, &d))
        return;
    x->rule = d.rule;
    /* with a credential, or somebody's approval, the injector records it */
    if (d.rule && d.rule->credential == NULL && !d.rule->ask)
        x->relay.capture_max = d.rule->capture_body;
    code = guard_conditions(x->rule, &x->head);
    if (code) {
        exchange_deny(x, 403, code);
        return;
    }
    if (x->rule->credential && a->scheme != SCHEME_HTTPS && !x->rule->allow_plaintext) {
        exchange_deny(x, 403, "secret_needs_tls");
        return;
    }
    if (x->rule->method_scoped && guard_query_override(x->head.query)) {
        exchange_deny(x, 403, "method_override");
        return;
    }
    if (x->head.upgrade != UPGRADE_NONE && !x->rule->websocket) {
        exchange_deny(x, 403, "websocket");
        return;
    }
    x->relay.upgrade = x->head.upgrade != UPGRADE_NONE;
    guard_clean_request(&x->head);
    if (x->rule->method_scoped && guard_strip_overrides(&x->head))
        gate_denied(x->gate, "override_stripped", a->host, 1);
    if (guard_credentials(x->gate, &x->who, &x->head, x->rule, &x->inject, &code) < 0) {
        exchange_deny(x, 403, code);
        return;
    }
    if (guard_edit(&x->head, x->rule) < 0) {
        exchange_deny(x, 431, "too_many_headers");
        return;
    }
    (x->rule->inspection ? inspect : go)(x);
}

struct exchange *exchange_new(struct gate *g, const struct identity *who, struct front front)
{
    struct exchange *x = malloc(sizeof *x);
    if (x == NULL)
        return NULL;
    memset(x, 0, offsetof(struct exchange, head));
    x->gate = g;
    x->who = *who;
    relay_init(&x->relay, front);
    if (g->mode != GATE_LOCAL && x->who.sandbox[0])
        x->relay.sandbox = x->who.sandbox;
    if (g->mode == GATE_TOKEN && who->route)
        x->relay.policy = who->route->name;
    http_head_init(&x->head);
    return x;
}

/* ---- as the back of its front ---- */

static void back_data(void *self, const void *p, size_t n)
{
    struct exchange *x = self;
    spend_up(x->relay.spend, n);
    relay_capture(&x->relay, BODY_REQUEST, p, n);
    if (x->preview) {
        x->taken += n;
        preview_data(x->preview, p, n);
    } else {
        relay_up_bytes(x, p, n);
    }
}

static void back_end(void *self)
{
    struct exchange *x = self;
    if (x->preview == NULL) {
        relay_up_end(x);
        return;
    }
    x->relay.request_ended = true;
    preview_end(x->preview);
}

static size_t back_room(void *self)
{
    struct exchange *x = self;
    if (x->state == EXCHANGE_BUDGET || (x->state == EXCHANGE_RECORDING && x->relay.spend))
        return 0;
    size_t room = x->preview ? preview_room(x->preview) : relay_up_room(x);
    return spend_up_room(x->relay.spend, room);
}

/* Nothing is made of a request's trailers; these only matter for what they try. */
static const struct refusal *back_trailers(void *self, const struct head *fields)
{
    struct exchange *x = self;
    return guard_request_trailers(x->gate, &x->who, fields);
}

static void back_id(void *self, char id[STREAM_ID])
{
    struct exchange *x = self;
    if (x->state == EXCHANGE_PREVIEW || x->state == EXCHANGE_BUDGET)
        x->counter = journal_next(x->gate->journal); /* cancel writes its record */
    if (x->counter)
        journal_id(x->gate->journal, x->counter, id, STREAM_ID);
}

static bool back_refuse(void *self, unsigned status, const char *code)
{
    struct exchange *x = self;
    const struct back *b = &x->relay.back;
    bool far = x->counter == 0 && x->state == EXCHANGE_OPEN && b->ops && b->ops->refuse;
    return far && b->ops->refuse(b->self, status, code);
}

static void back_cancel(void *self, const char *code)
{
    struct exchange *x = self;
    struct record r;
    if (x->state == EXCHANGE_PREVIEW ||
        x->state == EXCHANGE_BUDGET) { /* it was not decided on, and has no record yet */
        make_denial(x, 0, code, &r);
        journal_note(x->gate->journal, &r);
    }
    exchange_end_record(x, RECORD_ABORTED, code);
    if (x->relay.back.ops)
        x->relay.back.ops->cancel(x->relay.back.self, code);
    exchange_set_state(x, EXCHANGE_DONE);
    exchange_free(x);
}

static const struct back_ops back_ops = {
    .data = back_data,
    .trailers = back_trailers,
    .end = back_end,
    .room = back_room,
    .resume = relay_resume,
    .id = back_id,
    .refuse = back_refuse,
    .cancel = back_cancel,
};

struct back exchange_back(struct exchange *x)
{
    return (struct back){&back_ops, x};
}
