/* An exchange on its way to the origin: refused, or decided, guarded, inspected, recorded and sent
 * to the dialer or the injector. The reply's way is in exchange_reply.c. */
#include "exchange_internal.h"

#include "admission.h"
#include "assertion.h"
#include "cloud_identity.h"
#include "dial_client.h"
#include "guard_placeholder.h"
#include "guide.h"
#include "inbound.h"
#include "override_watch.h"
#include "policy.h"
#include "body_inspection.h"
#include "budget_client.h"
#include "preview_sessions.h"
#include "relay.h"
#include "request_record.h"
#include "tunnel.h"
#include "upgrade.h"
#include "placeholder_scan.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const states[] = {
    [EXCHANGE_NEW] = "new",
    [EXCHANGE_INBOUND] = "who may see it",
    [EXCHANGE_OUTWARD] = "looking for patterns",
    [EXCHANGE_BODY_INSPECTION] = "inspecting",
    [EXCHANGE_BUDGET] = "budget",
    [EXCHANGE_RECORDING] = "recording",
    [EXCHANGE_OPEN] = "sent on",
    [EXCHANGE_REPLYING] = "reply",
    [EXCHANGE_DONE] = "done",
};

void exchange_set_state(struct exchange *x, enum exchange_state s)
{
    ASSERT(x->state != EXCHANGE_DONE); /* it is freed next */
    TRACE(&x->relay.trace, states[s], "status %u, %llu bytes up, %llu down", x->relay.status,
          (unsigned long long)x->relay.up, (unsigned long long)x->relay.down);
    x->state = s;
}

void exchange_free(struct exchange *x)
{
    journal_cancel(x->wait, "cancelled");
    preview_ask_cancel(x->asked);
    body_inspection_free(x->body_inspection);
    free(x->calls);
    mcp_stream_free(x->events);
    override_watch_free(x->override);
    exchange_outward_free(x);
    relay_done(&x->relay);
    exchange_session_free(x);
    placeholder_scan_free(x->placeholder_scan);
    exchange_answer_free(x);
    http_head_free(&x->head);
    policy_free(x->policy);
    free(x);
}

/* As it may be logged: placeholders never, and one may be a name in the query. */
static void record_request(struct exchange *x, struct record *r, enum record_kind kind)
{
    const struct head *h = &x->head;
    const struct request_record q = {.authority = x->authority.host[0] ? &x->authority : NULL,
                                     .head = h,
                                     .hides_path = guard_has_placeholder(x->gate, h->path),
                                     .hides_query =
                                         h->has_query && guard_has_placeholder(x->gate, h->query),
                                     .kubernetes = x->rule ? x->rule->kubernetes : NULL,
                                     .rule = x->rule_text,
                                     .entry = x->entry,
                                     .sandbox = x->relay.sandbox,
                                     .policy = x->relay.policy};
    request_record(r, kind, x->counter, &q);
}

/* ---- refusing ---- */

void exchange_tell_how(const struct exchange *x, const struct downstream *f)
{
    bool rpc = x->rule && x->rule->inspection && x->rule->inspection->kind == INSPECT_MCP;
    stream_retry(f, x->retry);
    if (rpc && f->ops->rpc)
        f->ops->rpc(f->self, x->rpc_id);
    if (x->rule && x->rule->kubernetes && f->ops->kube)
        f->ops->kube(f->self);
}

static struct mcp_stream_at stream_at(const struct exchange *x)
{
    return (struct mcp_stream_at){&x->authority, x->relay.sandbox};
}

void exchange_events(struct exchange *x, const struct head *reply)
{
    struct mcp_stream_at at = stream_at(x);
    const struct field *type = http_head_find(reply, "content-type");
    if (rule_reads_messages(x->rule) && slice_eq_str(x->head.method, "GET") &&
        reply->status == 200 && type && slice_istarts(type->value, SLICE("text/event-stream")))
        x->events = mcp_stream_new(&x->gate->mcp_streams, &at, &x->relay.downstream);
}

void exchange_tell_end(struct exchange *x, unsigned status, const char *code, const char *id)
{
    struct downstream f = x->relay.downstream;
    bool begun = x->state == EXCHANGE_REPLYING;
    exchange_set_state(x, EXCHANGE_DONE);
    if (x->inbound == NULL) /* else it was nobody inside */
        guide_refused(x->gate->guide, id, status, code, x->head.method, &x->authority,
                      x->refuse_field ? x->refuse_detail : "");
    exchange_tell_how(x, &f);
    struct mcp_stream_at at = stream_at(x);
    struct mcp_stream *stream =
        x->calls ? mcp_stream_of(&x->gate->mcp_streams, &at, &x->head) : NULL;
    bool answered =
        !begun && (status == 200 ? body_inspection_answer(x->body_inspection, &f, code, id)
                                 : mcp_answer(x->calls, stream, &f, status, code, id));
    exchange_free(x);
    if (answered)
        f.ops->end(f.self);
    else
        f.ops->fail(f.self, status, code, id);
}

void exchange_tell_fail(struct exchange *x, unsigned status, const char *code)
{
    char id[48] = "-";
    if (x->counter)
        journal_id(x->gate->journal, x->counter, id, sizeof id);
    exchange_tell_end(x, status, code, id);
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

/* For whoever started the sandbox: counted by code and target, and field where one was refused. */
static void tell_denied(struct exchange *x, const char *code, const char *target,
                        struct slice detail)
{
    char text[HOST_TEXT_MAX + INSPECT_DETAIL_MAX + 2];
    bool field = x->refuse_field && detail.n > 0;
    snprintf(text, sizeof text, field ? "%s %.*s" : "%s", target, SL(detail));
    gate_denied(x->gate, code, text, 1);
}

static void make_denial(struct exchange *x, unsigned status, const char *code, struct record *r)
{
    char target[HOST_TEXT_MAX + 16] = "-";
    struct slice detail = slice_str(x->refuse_detail);
    if (detail.n && guard_has_placeholder(x->gate, detail))
        detail = SLICE("[placeholder]");
    if (x->counter == 0)
        x->counter = journal_next(x->gate->journal);
    if (x->authority.host[0])
        authority_text(&x->authority, target, sizeof target);
    tell_denied(x, code, target, detail);
    record_request(x, r, RECORD_DENIED);
    record_put_str(r, RF_CODE, code);
    if (status)
        record_put_u64(r, RF_STATUS, status);
    exchange_outward_found(x);
    if (x->relay.found)
        record_put_str(r, RF_PATTERNS, x->relay.found);
    else if (detail.n)
        record_put(r, RF_DETAIL, detail);
}

void exchange_deny(struct exchange *x, unsigned status, const char *code)
{
    struct record r;
    x->refuse_status = status;
    x->refuse_code = code;
    TRACE(&x->relay.trace, "refused", "%u %s", status, code);
    if (x->inbound) {
        exchange_inbound_count(x->gate, x->inbound, code);
        exchange_tell_end(x, status, code, "-");
        return;
    }
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
    exchange_outward_found(x);
    relay_record_bodies(&x->relay, x->gate->journal, x->counter, holds_placeholder, x->gate);
    relay_record(&x->relay, &r, kind, x->counter, code);
    if (x->origin)
        origin_record(origin_facts(x->origin), relay_begun(&x->relay), &r);
    journal_note(x->gate->journal, &r);
}

/* What the inspection still holds goes first. */
void exchange_pump(struct exchange *x)
{
    struct relay *r = &x->relay;
    if (!body_inspection_pump(x->body_inspection, &r->upstream, &r->up))
        return;
    body_inspection_free(x->body_inspection);
    x->body_inspection = NULL;
    if (r->request_ended) {
        exchange_outward_found(x);
        r->upstream.ops->end(r->upstream.self);
    } else {
        exchange_wanted(x);
    }
}

void exchange_wanted(void *self)
{
    struct exchange *x = self;
    if (x->outward)
        exchange_outward_pump(x);
    relay_wanted(x);
}

static void open_upstream(struct exchange *x, struct upstream upstream)
{
    exchange_set_state(x, EXCHANGE_OPEN);
    if (x->body_inspection == NULL && (x->outward == NULL || x->relay.request_ended)) {
        relay_open(&x->relay, upstream);
        return;
    }
    x->relay.upstream = upstream;
    if (x->body_inspection)
        exchange_pump(x);
    else
        exchange_wanted(x);
}

static void open_origin(struct exchange *x)
{
    char id[48], key[HOST_TEXT_MAX + 192], text[HOST_TEXT_MAX + 16], way[24];
    struct downstream f = {&exchange_downstream_ops, x};
    journal_id(x->gate->journal, x->counter, id, sizeof id);
    snprintf(way, sizeof way, "inbound %u", x->inbound ? x->inbound->port : 0);
    snprintf(key, sizeof key, "%s|%s|%s|%s", x->who.sandbox, x->who.route->name,
             x->inbound ? way : scheme_name(x->authority.scheme), /* no way out is one in */
             authority_text_port(&x->authority, text, sizeof text));
    struct authority at = x->authority;
    struct dial_client *dial = x->inbound ? exchange_inbound_dial(x, &at) : x->who.route->dial;
    x->origin = origin_open(&x->gate->origin, dial, f, &at, &x->head, key, id, x->who.token, NULL,
                            &x->relay.trace);
    if (x->origin == NULL) {
        exchange_end_record(x, RECORD_ABORTED, "memory");
        exchange_tell_fail(x, 503, "memory");
        return;
    }
    relay_admitted(&x->relay, x->gate->base, x->gate->limits.progress_seconds, x->gate->journal,
                   x->counter);
    open_upstream(x, origin_upstream(x->origin));
}

/* Nobody is asked for it. */
static void open_answer(struct exchange *x)
{
    struct upstream answer = exchange_answer_open(x);
    if (answer.ops == NULL) {
        exchange_end_record(x, RECORD_ABORTED, "memory");
        exchange_tell_fail(x, 503, "memory");
        return;
    }
    open_upstream(x, answer);
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
    (x->answer ? open_answer : open_origin)(x);
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

static void open_injector_channel(struct exchange *x)
{
    struct downstream f = {&exchange_downstream_ops, x};
    struct injector_channel_marks marks;
    struct injector_channel_blanks blanks;
    guard_marks(x->gate, &x->who, x->rule, x->inject, &marks, &blanks);
    struct injector_channel_request q = {
        .authority = x->authority,
        .generation = x->who.route->generation,
        .secret = x->inject ? x->rule->credential->secret : "",
        .entry = x->entry,
        .token = x->who.token,
        .owner = x->who.sandbox,
        .marks = &marks,
        .blanks = &blanks,
        .head = &x->head,
        .trace = &x->relay.trace,
    };
    struct upstream injector_channel = injector_channel_open(x->who.route->injector_channel, f, &q);
    if (injector_channel.ops == NULL) {
        bool share = injector_channel_share_used(x->who.route->injector_channel, x->who.sandbox);
        exchange_deny(x, 503, share ? "share_used" : "injector_gone");
        return;
    }
    open_upstream(x, injector_channel);
}

/* ---- deciding ---- */

/* The gate's own part of the list: whose placeholders there are, and where. */
static int check_placeholders(void *self, struct head *h, struct admission *a)
{
    struct exchange *x = self;
    return guard_credentials(x->gate, &x->who, h, a->decision.rule, &a->answer);
}

/* The record and the line at the end of `run` say which field it was. */
static void refuse_head(struct exchange *x, const struct guard_answer *why)
{
    snprintf(x->refuse_detail, sizeof x->refuse_detail, "%s", why->where);
    x->refuse_field = true;
    exchange_deny(x, why->status, why->code);
}

/* False: refused. */
static bool decide(struct exchange *x, struct admission *a)
{
    x->policy = policy_ref(x->who.route->policy);
    const struct admission_request q = {
        .policy = x->policy, .authority = &x->authority, .own = check_placeholders, .role = x};
    bool admitted = admission_check(&q, &x->head, a) == 0;
    const struct rule *rule = a->decision.rule;
    bool allowed = a->decision.verdict != VERDICT_DENY;
    TRACE(&x->relay.trace, "decided", "%s by the rule %s", allowed ? "yes" : "no",
          rule ? rule->text : "(none)");
    if (rule)
        snprintf(x->rule_text, sizeof x->rule_text, "%s", rule->text);
    x->rule = allowed ? rule : NULL;
    if (!admitted)
        refuse_head(x, &a->answer);
    return admitted;
}

static void go(struct exchange *x)
{
    if (x->by_injector)
        open_injector_channel(x);
    else if (x->rule->budget || policy_budget(x->policy))
        exchange_budget(x);
    else
        exchange_open_plain(x);
}

static void on_inspected(void *arg, enum inspect_answer a, const struct inspect_result *why)
{
    struct exchange *x = arg;
    memcpy(x->rpc_id, why->rpc_id, sizeof x->rpc_id);
    x->calls = mcp_refused_new(x->rule->inspection, why);
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
    struct inspect_result why = {.rpc_id = ""};
    struct body_inspection_order o = {.base = x->gate->base,
                                      .inspection = x->rule->inspection,
                                      .head = &x->head,
                                      .seconds = x->gate->limits.idle_seconds,
                                      .total = &x->gate->inspected,
                                      .owner = x->who.sandbox,
                                      .wanted = exchange_wanted,
                                      .decided = on_inspected,
                                      .arg = x};
    enum inspect_answer a = body_inspection_head(o.inspection, o.head, &why);
    if (a != INSPECT_MORE) {
        on_inspected(x, a, &why);
        return;
    }
    x->body_inspection = body_inspection_new(&o);
    if (x->body_inspection == NULL)
        exchange_deny(x, 503, "memory");
    else
        exchange_set_state(x, EXCHANGE_BODY_INSPECTION);
}

void exchange_ask(struct exchange *x)
{
    (x->rule->inspection ? inspect : go)(x);
}

/* Refused before anything of it went. */
static void deny_body(struct exchange *x, unsigned status, const char *code)
{
    body_inspection_free(x->body_inspection); /* neither has a say any more */
    x->body_inspection = NULL;
    budget_client_free(x->relay.budget_client);
    x->relay.budget_client = NULL;
    exchange_deny(x, status, code);
}

static bool is_undecided(const struct exchange *x)
{
    return x->state == EXCHANGE_INBOUND || x->state == EXCHANGE_OUTWARD ||
           x->state == EXCHANGE_BODY_INSPECTION || x->state == EXCHANGE_BUDGET;
}

/* What such a body asked for has not been done, since the origin never had the end of it. */
bool exchange_refuse_body(struct exchange *x, unsigned status, const char *code)
{
    if (is_undecided(x)) {
        deny_body(x, status, code);
        return true;
    }
    if (x->state != EXCHANGE_OPEN && x->state != EXCHANGE_REPLYING) /* a record is being written */
        return false;
    const struct upstream b = x->relay.upstream;
    exchange_outward_found(x);
    if (!x->admitted && b.ops && b.ops->refuse && b.ops->refuse(b.self, status, code))
        return true; /* its record is another's: fail follows, with the id */
    exchange_end_record(x, RECORD_ABORTED, code);
    if (b.ops)
        b.ops->cancel(b.self, code);
    exchange_tell_fail(x, status, code);
    return true;
}

static bool on_override(void *arg)
{
    return exchange_refuse_body(arg, 403, "method_override");
}

/* A body that names another method is looked for as it passes, here where nobody else does. False:
 * refused. */
static bool watch_overrides(struct exchange *x)
{
    bool memory;
    x->override = override_watch_new(x->gate->base, &x->head, on_override, x, &memory);
    if (memory)
        exchange_deny(x, 503, "memory");
    return !memory;
}

static void trace_request(const struct exchange *x)
{
    char at[HOST_TEXT_MAX + 16];
    TRACE(&x->relay.trace, "request",
          "%.*s %s://%s (%s), %zu fields, %zu bytes of path, %zu of query", SL(x->head.method),
          scheme_name(x->authority.scheme), authority_text(&x->authority, at, sizeof at), x->entry,
          x->head.n, x->head.path.n, x->head.query.n);
}

void exchange_start(struct exchange *x, struct head *h, const struct authority *a,
                    const char *entry)
{
    struct admission found;
    x->entry = entry;
    x->authority = *a;
    http_head_move(&x->head, h);
    trace_request(x);
    if (cloud_identity_at(policy_identity(x->who.route->policy), a)) {
        exchange_metadata(x);
        return;
    }
    if (!decide(x, &found))
        return;
    x->by_injector = found.by_injector;
    x->inject = found.answer.inject;
    x->relay.upgrade = x->head.upgrade != UPGRADE_NONE;
    if (!x->by_injector) /* else the injector records it */
        x->relay.capture_max = x->rule->capture_body;
    if (found.stripped)
        gate_denied(x->gate, "override_stripped", a->host, 1);
    if (found.decision.methods_matter && !x->by_injector && !watch_overrides(x))
        return;
    if (!exchange_outward(x))
        return;
    if (exchange_outward_waits(x))
        exchange_set_state(x, EXCHANGE_OUTWARD);
    else
        exchange_ask(x);
}

struct exchange *exchange_new(struct gate *g, const struct identity *who,
                              struct downstream downstream)
{
    struct exchange *x = malloc(sizeof *x);
    if (x == NULL)
        return NULL;
    memset(x, 0, offsetof(struct exchange, head));
    x->gate = g;
    x->who = *who;
    relay_init(&x->relay, downstream);
    x->relay.trace = gate_trace(g, &x->who, relay_begun(&x->relay));
    if (g->mode != GATE_LOCAL && x->who.sandbox[0])
        x->relay.sandbox = x->who.sandbox;
    if (g->mode == GATE_TOKEN && who->route)
        x->relay.policy = who->route->name;
    http_head_init(&x->head);
    return x;
}

/* ---- as the upstream of its downstream ---- */

static void upstream_data(void *self, const void *p, size_t n)
{
    struct exchange *x = self;
    if (override_watch_data(x->override, p, n))
        return;
    if (x->outward)
        exchange_outward_data(x, p, n);
    else
        exchange_pass(x, p, n);
}

static void upstream_end(void *self)
{
    struct exchange *x = self;
    if (override_watch_found(x->override))
        return;
    if (x->outward)
        exchange_outward_end(x);
    else
        exchange_pass_end(x);
}

static size_t upstream_room(void *self)
{
    struct exchange *x = self;
    return x->outward ? exchange_outward_room(x) : exchange_pass_room(x);
}

void exchange_pass(struct exchange *x, const void *p, size_t n)
{
    budget_client_up(x->relay.budget_client, n);
    relay_capture(&x->relay, BODY_REQUEST, p, n);
    if (x->body_inspection) {
        x->taken += n;
        body_inspection_data(x->body_inspection, p, n);
    } else {
        relay_up_bytes(x, p, n);
    }
}

void exchange_pass_end(struct exchange *x)
{
    if (x->body_inspection == NULL) {
        exchange_outward_found(x);
        relay_up_end(x);
        return;
    }
    x->relay.request_ended = true;
    body_inspection_end(x->body_inspection);
}

size_t exchange_pass_room(struct exchange *x)
{
    if (x->state == EXCHANGE_BUDGET || (x->state == EXCHANGE_RECORDING && x->relay.budget_client))
        return 0;
    size_t room = x->body_inspection ? body_inspection_room(x->body_inspection) : relay_up_room(x);
    return budget_client_up_room(x->relay.budget_client, room);
}

/* Nothing is made of a request's trailers; these only matter for what they try. */
static const struct refusal *upstream_trailers(void *self, const struct head *fields)
{
    struct exchange *x = self;
    return guard_request_trailers(x->gate, &x->who, fields);
}

static void upstream_id(void *self, char id[STREAM_ID])
{
    struct exchange *x = self;
    if (is_undecided(x))
        x->counter = journal_next(x->gate->journal); /* cancel writes its record */
    if (x->counter)
        journal_id(x->gate->journal, x->counter, id, STREAM_ID);
}

static bool upstream_refuse(void *self, unsigned status, const char *code)
{
    struct exchange *x = self;
    const struct upstream *b = &x->relay.upstream;
    bool far = x->counter == 0 && x->state == EXCHANGE_OPEN && b->ops && b->ops->refuse;
    return far && b->ops->refuse(b->self, status, code);
}

static void upstream_cancel(void *self, const char *code)
{
    struct exchange *x = self;
    struct record r;
    if (is_undecided(x)) { /* it was not decided on, and has no record yet */
        make_denial(x, 0, code, &r);
        journal_note(x->gate->journal, &r);
    }
    journal_cancel(x->wait, code);
    x->wait = NULL;
    exchange_outward_found(x);
    exchange_end_record(x, RECORD_ABORTED, code);
    if (x->relay.upstream.ops)
        x->relay.upstream.ops->cancel(x->relay.upstream.self, code);
    exchange_set_state(x, EXCHANGE_DONE);
    exchange_free(x);
}

static const struct upstream_ops upstream_ops = {
    .data = upstream_data,
    .trailers = upstream_trailers,
    .end = upstream_end,
    .room = upstream_room,
    .resume = relay_resume,
    .id = upstream_id,
    .refuse = upstream_refuse,
    .cancel = upstream_cancel,
};

struct upstream exchange_upstream(struct exchange *x)
{
    return (struct upstream){&upstream_ops, x};
}
