/* An injection on its way to the origin: held or charged, its body gathered, the secret fetched or
 * a signature made, recorded and sent. Each further step has a injection_*.c of its own. */
#include "injection_internal.h"

#include "assertion.h"
#include "client_cert.h"
#include "dial_client.h"
#include "override_watch.h"
#include "pending_approval.h"
#include "meter.h"
#include "budget_client.h"
#include "tunnel.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const states[] = {
    [G_NEW] = "new",
    [G_HELD] = "approval asked",
    [G_BUDGET] = "budget",
    [G_BODY] = "body awaited",
    [G_SECRET] = "secret asked",
    [G_RECORDING] = "recording",
    [G_OPEN] = "sent on",
    [G_RENEWING] = "renewing",
    [G_CAPTURING] = "capturing",
    [G_DRAINING] = "reply drained",
    [G_DONE] = "done",
};

void injection_set_state(struct injection *g, enum injection_state s)
{
    ASSERT(g->state != G_DONE); /* it is freed next */
    TRACE(&g->relay.trace, states[s], "status %u, %llu bytes up, %llu down", g->relay.status,
          (unsigned long long)g->relay.up, (unsigned long long)g->relay.down);
    g->state = s;
}

void injection_release(struct injection *g)
{
    journal_cancel(g->wait, "cancelled");
    injection_llm_end(g);
    injection_session_end(g);
    relay_done(&g->relay);
    pending_approval_cancel(g->pending_approval);
    secret_client_cancel(g->secret_wait);
    secret_client_sign_cancel(g->sign_wait);
    aws_upload_free(g->upload);
    override_watch_free(g->override);
    injection_renew_end(g);
    placement_free(&g->placement);
    secret_unref(g->value);
    client_cert_free(g->cert);
    scrub_free(g->scrub);
    injection_taint_end(g);
    body_buffer_free(&g->body);
    body_buffer_free(&g->reply);
    injection_mcp_end(g);
    quota_leave(&g->exchange);
    http_head_free(&g->held);
    if (g->later)
        event_free(g->later);
    http_head_free(&g->head);
    policy_free(g->decided.policy);
    explicit_bzero(g->token, sizeof g->token);
    free(g);
}

/* From a call of the downstream, to which nothing may be answered before it returns. */
static void later(struct injection *g)
{
    if (g->later)
        event_active(g->later, EV_TIMEOUT, 0);
}

/* ---- filling ---- */

/* A reply that cannot be looked through is not asked for. */
static int prepare_scrub(struct injection *g)
{
    struct slice v = g->value ? secret_slice(g->value) : (struct slice){"", 0};
    if (v.n > SCRUB_VALUE_MAX)
        return -1;
    g->unsearched = g->value && v.n < SCRUB_VALUE_MIN;
    return g->searched ? injection_scrub_begin(g) : 0;
}

static int placement(struct injection *g)
{
    if (prepare_scrub(g) < 0)
        return -1;
    if (g->decided.credential == NULL)
        return 0;
    injection_renew_keep(g);
    struct slice value = g->value ? secret_slice(g->value) : (struct slice){"", 0};
    int r = placement_apply(&g->placement, &g->head, &g->body, value);
    g->filled = g->decided.credential->kind != CREDENTIAL_CERTIFICATE;
    if (g->searched)
        g->own = g->value;
    else
        secret_unref(g->value);
    g->value = NULL;
    return r;
}

/* ---- a body of signed chunks: what signs them stands before the origin ---- */

/* Perhaps from a call of the downstream, to which nothing may be answered before it returns. */
static void on_upload_failed(void *self, unsigned status, const char *code)
{
    struct injection *g = self;
    g->refuse_status = status;
    g->refuse_code = code;
    event_active(g->later, EV_TIMEOUT, 0);
}

static const char *key_owner(const struct injection *g)
{
    return g->decided.credential->captured ? g->decided.sandbox : "";
}

static int upload_begin(struct injection *g)
{
    struct injector *i = g->injector;
    struct aws_upload_owner owner = {on_upload_failed, relay_wanted, g};
    const struct aws_claim *c = &g->placement.claim;
    if (!placement_chunks(&g->placement))
        return 0;
    g->upload =
        aws_upload_new(owner, i->secrets, g->decided.credential->secret, key_owner(g),
                       g->placement.key_id, &g->placement.scope, g->placement.signature, c->decoded,
                       c->trailer[0] ? c->trailer : NULL, &i->gathered, g->decided.sandbox);
    return g->upload ? 0 : -1;
}

static struct upstream upload_upstream(struct injection *g)
{
    struct upstream origin = origin_upstream(g->origin);
    return g->upload ? aws_upload_upstream(g->upload, origin) : origin;
}

/* ---- the origin ---- */

static void open_origin(struct injection *g)
{
    char id[48], key[HOST_TEXT_MAX + 320], text[HOST_TEXT_MAX + 16];
    struct injector *i = g->injector;
    struct downstream f = {&injection_downstream_ops, g};
    if (placement(g) < 0) {
        injection_end_record(g, RECORD_ABORTED, "fill");
        injection_tell_fail(g, 503, "fill");
        return;
    }
    if (g->head.body == BODY_NONE && !placement_passed(&g->placement)) {
        injection_end_record(g, RECORD_ABORTED, "body_hash"); /* no end could be kept back */
        injection_tell_fail(g, 403, "body_hash");
        return;
    }
    journal_id(i->journal, g->counter, id, sizeof id);
    snprintf(key, sizeof key, "%s|%s|%u.%u|%s|%s|%s", g->decided.sandbox, i->name, i->generation,
             i->epoch, g->decided.credential ? g->decided.credential->secret : "",
             scheme_name(g->authority.scheme),
             authority_text_port(&g->authority, text, sizeof text));
    if (upload_begin(g) == 0)
        g->origin = origin_open(&i->origin, i->dial, f, &g->authority, &g->head, key, id, g->token,
                                g->cert, &g->relay.trace);
    if (g->origin == NULL) {
        injection_end_record(g, RECORD_ABORTED, "memory");
        injection_tell_fail(g, 503, "memory");
        return;
    }
    if (g->decided.credential) /* the serialised head is the one copy that is left */
        http_head_free(&g->head);
    injection_set_state(g, G_OPEN);
    relay_admitted(&g->relay, i->base, i->limits.progress_seconds, i->journal, g->counter);
    if (g->body.state == BODY_BUFFER_OFF) {
        struct upstream upstream = upload_upstream(g);
        if (!g->relay.request_ended || placement_passed(&g->placement)) {
            relay_open(&g->relay, upstream);
            return;
        }
        g->relay.upstream =
            upstream; /* it ended before there was an origin, and is not what was signed */
        later(g);
        return;
    }
    g->relay.upstream = origin_upstream(g->origin);
    body_buffer_pump(&g->body, g->relay.upstream);
}

static void on_admitted_recorded(void *arg, bool ok)
{
    struct injection *g = arg;
    g->wait = NULL;
    if (!ok) {
        injection_tell_fail(g, 503, "audit_unwritable");
        return;
    }
    g->admitted = true;
    open_origin(g);
}

void injection_admit(struct injection *g)
{
    char detail[sizeof g->message_text + sizeof g->approval + 2];
    struct record r;
    injection_set_state(g, G_RECORDING);
    g->counter = journal_next(g->injector->journal);
    injection_record_request(g, &r, RECORD_ADMITTED);
    record_put_str(&r, RF_CODE, "ok");
    if (g->message_text[0] && g->approval[0])
        snprintf(detail, sizeof detail, "%s; %s", g->message_text, g->approval);
    else
        snprintf(detail, sizeof detail, "%s%s", g->message_text, g->approval);
    record_put_str(&r, RF_DETAIL, detail);
    struct journal_wait *w = journal_append(g->injector->journal, &r, on_admitted_recorded, g);
    if (w)
        g->wait = w;
}

static void deny_secret(struct injection *g, const struct err *err)
{
    bool share = err->code == ERR_LIMIT;
    injection_deny(g, 503, share ? "share_used" : "secret_unavailable", err->text);
}

static void on_signed(void *arg, struct slice signature, const struct err *err)
{
    struct injection *g = arg;
    g->sign_wait = NULL;
    TRACE(&g->relay.trace, "signature", "%s", signature.n ? "is here" : "is not to be had");
    if (signature.n == 0)
        deny_secret(g, err);
    else if (placement_signed(&g->placement, &g->head, signature) < 0)
        injection_deny(g, 431, "too_many_headers", "");
    else
        injection_search(g);
}

/* The value that this request is filled with. */
static int remember_own(struct injection *g)
{
    const struct credential *c = g->decided.credential;
    return g->value == NULL ? 0
                            : injection_remember(g->injector, c->secret,
                                                 c->captured ? g->decided.sandbox : NULL, g->value);
}

/* The session's token, if there is one, is what a reply is searched for. */
static void sign(struct injection *g)
{
    struct slice v = secret_slice(g->value);
    const struct credential *c = g->decided.credential;
    bool aws = c->kind == CREDENTIAL_AWS;
    ssize_t blank = aws ? slice_find(v, ' ') : -1;
    struct sign_wait *w;
    const char *bad = placement_prepare(&g->placement, &g->head, &g->authority, &g->body, v);
    if (bad) {
        injection_deny(g, strcmp(bad, "too_many_headers") == 0 ? 431 : 403, bad, "");
        return;
    }
    struct secret *token = blank < 0 ? NULL : secret_new(v.p + blank + 1, v.n - (size_t)blank - 1);
    secret_unref(g->value);
    g->value = token;
    if ((blank >= 0 && token == NULL) || remember_own(g) < 0) {
        injection_deny(g, 503, "memory", "");
        return;
    }
    secret_client_trace(g->injector->secrets, &g->relay.trace);
    w = aws ? secret_client_sign(g->injector->secrets, g->decided.sandbox, c->secret, key_owner(g),
                                 g->placement.key_id, &g->placement.scope, on_signed, g)
            : secret_client_sign_text(g->injector->secrets, g->decided.sandbox, c->secret, 0,
                                      buf_slice(&g->placement.text.text), on_signed, g);
    if (w)
        g->sign_wait = w;
}

/* The sandbox's own, of a reply that it had before. */
static void on_captured(void *arg, struct slice value, const struct slice *values UNUSED,
                        size_t n UNUSED, const struct err *err)
{
    struct injection *g = arg;
    g->sign_wait = NULL;
    g->value = value.n ? secret_new(value.p, value.n) : NULL;
    if (g->value == NULL)
        deny_secret(g, err);
    else if (placement_signs(&g->placement))
        sign(g);
    else if (remember_own(g) < 0)
        injection_deny(g, 503, "memory", "");
    else
        injection_search(g);
}

static void on_secret(void *arg, struct secret *value, const struct err *err)
{
    struct injection *g = arg;
    g->secret_wait = NULL;
    TRACE(&g->relay.trace, "secret", "%s", value ? "is here" : "is not to be had");
    if (value == NULL) {
        injection_deny(g, 503, "secret_unavailable", err ? err->text : "");
        return;
    }
    if (g->decided.credential->kind == CREDENTIAL_CERTIFICATE) {
        g->cert = client_cert_new(g->injector->base, g->injector->secrets, g->decided.sandbox,
                                  g->decided.credential->secret, secret_slice(value));
        if (g->cert)
            injection_search(g);
        else
            injection_deny(g, 503, "secret_unavailable", "its certificate cannot be parsed");
        return;
    }
    g->value = secret_ref(value);
    if (placement_signs(&g->placement)) {
        sign(g);
        return;
    }
    injection_renew_begin(g);
    if (remember_own(g) < 0)
        injection_deny(g, 503, "memory", "");
    else
        injection_search(g);
}

void injection_secret(struct injection *g)
{
    injection_set_state(g, G_SECRET);
    secret_client_trace(g->injector->secrets, &g->relay.trace);
    struct secret_wait *w =
        secret_client_get(g->injector->secrets, g->decided.credential->secret, on_secret, g);
    if (w)
        g->secret_wait = w;
}

/* The request is complete but for the credential. */
static void fetch(struct injection *g)
{
    if (g->decided.credential == NULL) {
        injection_search(g);
        return;
    }
    const char *bad = placement_check(&g->placement, &g->head, &g->body);
    if (bad) {
        injection_deny(g, 403, bad, "");
        return;
    }
    if (!placement_wanted(&g->placement, &g->head, &g->body)) {
        g->decided.credential = NULL;
        injection_search(g);
        return;
    }
    if (g->decided.credential->captured) {
        injection_set_state(g, G_SECRET);
        struct sign_wait *s = secret_client_captured(g->injector->secrets, g->decided.sandbox,
                                                     g->decided.credential->secret, on_captured, g);
        if (s)
            g->sign_wait = s;
        return;
    }
    injection_secret(g);
}

/* The reply is not to go on: the origin is given up from within its own call. */
void injection_abandon(struct injection *g, unsigned status, const char *code)
{
    injection_end_record(g, RECORD_ABORTED, code);
    if (g->relay.upstream.ops)
        g->relay.upstream.ops->cancel(g->relay.upstream.self, code);
    injection_tell_fail(g, status, code);
}

void injection_deny_full(struct injection *g, enum quota_end end, const char *what)
{
    if (end == QUOTA_SHARE)
        g->retry = 1;
    injection_deny(g, 503, end == QUOTA_SHARE ? "share_used" : "overload", what);
}

/* ---- the body first ---- */

static void on_later(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct injection *g = arg;
    if (g->state == G_CAPTURING || g->state == G_DRAINING) /* answered already */
        return;
    if (g->upload)
        injection_abandon(g, g->refuse_status, g->refuse_code);
    else if (g->state != G_BODY && g->relay.upstream.ops == NULL)
        return; /* it stays broken, and open_origin looks */
    else if (g->state != G_BODY)
        injection_abandon(g, 403, "body_hash");
    else if (g->body.state == BODY_BUFFER_LARGE)
        injection_deny(g, 413, "body_too_large", "");
    else if (g->body.state == BODY_BUFFER_FULL)
        injection_deny_full(g, g->body.full, "bodies that are held");
    else if (injection_judges(g) && !g->judged)
        injection_judge(g);
    else
        fetch(g);
}

static void body_buffer(struct injection *g, size_t max)
{
    bool ended = g->relay.request_ended; /* while it was held */
    if (g->head.body == BODY_LENGTH && g->head.length > max) {
        injection_deny(g, 413, "body_too_large", "");
        return;
    }
    injection_set_state(g, G_BODY);
    body_buffer_begin(&g->body, max, &g->injector->gathered, g->decided.sandbox);
    if (ended) {
        body_buffer_end(&g->body);
        later(g);
    } else if (g->waited) {
        relay_wanted(g);
    }
}

void injection_proceed(struct injection *g)
{
    if (injection_budget(g))
        return;
    size_t max = g->decided.credential ? placement_body_limit(&g->placement, &g->head) : 0;
    bool whole = g->body.state == BODY_BUFFER_WHOLE; /* its messages were read */
    if (whole && !g->charged)
        budget_client_up(g->relay.budget_client, buf_len(&g->body.body));
    g->charged = true;
    if (whole && max > 0 && buf_len(&g->body.body) > max)
        injection_deny(g, 413, "body_too_large", "");
    else if (max > 0 && !whole)
        body_buffer(g, max);
    else
        fetch(g);
}

static void start(struct injection *g)
{
    if (!injection_judges(g)) {
        (g->decided.rule->ask ? injection_await_approval : injection_proceed)(g);
        return;
    }
    size_t max = injection_judge_begin(g);
    if (max > 0)
        body_buffer(g, max);
}

static bool on_override(void *arg)
{
    struct injection *g = arg;
    if (g->relay.upstream.ops)
        injection_abandon(g, 403, "method_override");
    else if (g->state == G_BODY)
        injection_deny(g, 403, "method_override", "");
    else /* answered already, or a record is being written */
        return false;
    return true;
}

/* Its gate let pass what is refused here: it has another policy, or it lies. */
static void overrule(struct injection *g)
{
    const struct guard_answer *why = &g->decided.answer;
    char detail[sizeof why->where + 32];
    snprintf(detail, sizeof detail, "%s%sits gate let it pass", why->where,
             why->where[0] ? "; " : "");
    injection_deny(g, why->status, why->code, detail);
}

/* What is needed while it is under way. False: refused. */
static bool prepare(struct injection *g)
{
    bool memory = false;
    if (g->decided.methods_matter)
        g->override = override_watch_new(g->injector->base, &g->head, on_override, g, &memory);
    if (g->decided.credential || injection_judges(g)) {
        g->later = event_new(g->injector->base, -1, 0, on_later, g);
        memory |= g->later == NULL;
    }
    if (memory)
        injection_deny(g, 503, "memory", "");
    return !memory;
}

/* A part of a file, where its rule does not say that nothing is in it. */
static int range_begin(struct injection *g)
{
    if (g->decided.rule->ranges)
        return 0;
    byte_range_read(&g->head, &g->range);
    return g->range.name ? byte_range_widen(&g->range, &g->head, SCRUB_LONGEST) : 0;
}

void injection_start(struct injection *g, struct injection_request *r)
{
    http_head_move(&g->head, &r->head);
    g->bodiless = slice_eq(g->head.method, SLICE("HEAD"));
    g->authority = r->authority;
    g->relay.trace = r->trace;
    memcpy(g->entry, r->entry, sizeof g->entry);
    memcpy(g->token, r->token, sizeof g->token);
    if (injection_check(g->injector, r, &g->head, &g->authority, &g->placement, &g->decided) < 0) {
        overrule(g);
        return;
    }
    TRACE(&g->relay.trace, "decided", "yes by the rule %s, secret %s", g->decided.rule->text,
          g->decided.credential ? g->decided.credential->secret : "(none)");
    enum quota_end end =
        quota_take(&g->injector->exchanges, &g->exchange, slice_str(g->decided.sandbox), 1);
    if (end != QUOTA_TAKEN) {
        injection_deny_full(g, end, "requests under way");
        return;
    }
    const char *barred = injection_judges(g) ? NULL : injection_llm_barred(g, false);
    if (barred) {
        injection_deny(g, 403, "llm", barred);
        return;
    }
    injection_taint_begin(g);
    if (g->searched && range_begin(g) < 0) {
        injection_deny(g, 431, "too_many_headers", "");
        return;
    }
    g->relay.capture_max = g->decided.rule->capture_body;
    g->relay.upgrade = g->head.upgrade != UPGRADE_NONE;
    g->blanks = r->blanks;
    if (prepare(g))
        start(g);
}

/* An exchange has a connection to an origin: half of the descriptors are for those. */
void injection_shares(struct injector *i, size_t files)
{
    i->gathered = (struct quota)BODY_BUFFER_QUOTA;
    i->exchanges = (struct quota){.total = files / 2, .each = INJECTOR_CHANNEL_EXCHANGES_EACH};
}

struct injection *injection_new(struct injector *i, struct downstream downstream)
{
    struct injection *g = malloc(sizeof *g);
    if (g == NULL)
        return NULL;
    memset(g, 0, offsetof(struct injection, placement));
    placement_init(&g->placement);
    g->injector = i;
    relay_init(&g->relay, downstream);
    g->relay.sandbox = g->decided.sandbox; /* "" until it is decided */
    http_head_init(&g->head);
    http_head_init(&g->held);
    return g;
}

/* ---- as the upstream of the injector channel ---- */

static void upstream_data(void *self, const void *p, size_t n)
{
    struct injection *g = self;
    if (g->state == G_CAPTURING || g->state == G_DRAINING) /* answered without it */
        return;
    if (override_watch_data(g->override, p, n))
        return;
    budget_client_up(g->relay.budget_client, n);
    relay_capture(&g->relay, BODY_REQUEST, p, n);
    if (g->state != G_BODY) {
        if (placement_pass(&g->placement, p, n))
            relay_up_bytes(self, p, n);
        else
            later(g);
        return;
    }
    g->relay.up += n;
    body_buffer_data(&g->body, p, n);
    if (g->body.state != BODY_BUFFER_TAKING)
        later(g);
}

static void upstream_end(void *self)
{
    struct injection *g = self;
    if (g->state == G_CAPTURING || g->state == G_DRAINING || override_watch_found(g->override))
        return;
    if (g->state != G_BODY &&
        g->relay.upstream.ops == NULL) { /* open_origin asks whether it is whole */
        g->relay.request_ended = true;
        return;
    }
    if (g->state != G_BODY &&
        !placement_passed(&g->placement)) { /* the origin does not get its end */
        later(g);
        return;
    }
    if (g->state != G_BODY) {
        relay_up_end(self);
        return;
    }
    g->relay.request_ended = true;
    body_buffer_end(&g->body);
    later(g);
}

static size_t upstream_room(void *self)
{
    struct injection *g = self;
    size_t room = g->state == G_BODY ? body_buffer_room(&g->body) : relay_up_room(self);
    return room ? budget_client_up_room(g->relay.budget_client, room) : 0;
}

static void upstream_resume(void *self)
{
    struct injection *g = self;
    if (g->messages == NULL || injection_mcp_pump(g))
        relay_resume(self);
}

/* Given up while its secret was awaited: nothing left, and nothing is on record yet. */
static void note_given_up(struct injection *g, const char *code)
{
    struct record r;
    if (g->counter == 0)
        g->counter = journal_next(g->injector->journal);
    injection_record_request(g, &r, RECORD_DENIED);
    record_put_str(&r, RF_CODE, code);
    journal_note(g->injector->journal, &r);
}

/* Something is awaited before its record is written. */
static bool is_undecided(const struct injection *g)
{
    return g->state == G_SECRET || g->state == G_BODY || g->state == G_HELD || g->state == G_BUDGET;
}

static void upstream_id(void *self, char id[STREAM_ID])
{
    struct injection *g = self;
    if (is_undecided(g))
        g->counter = journal_next(g->injector->journal); /* cancel writes its record */
    if (g->counter)
        journal_id(g->injector->journal, g->counter, id, STREAM_ID);
}

static void upstream_cancel(void *self, const char *code)
{
    struct injection *g = self;
    if (is_undecided(g))
        note_given_up(g, code);
    journal_cancel(g->wait, code);
    g->wait = NULL;
    tunnel_cancelled(g->relay.tunnel, code);
    injection_end_record(g, RECORD_ABORTED, code);
    if (g->relay.upstream.ops)
        g->relay.upstream.ops->cancel(g->relay.upstream.self, code);
    injection_set_state(g, G_DONE);
    injection_release(g);
}

static void upstream_found(void *self, const char *patterns)
{
    struct injection *g = self;
    snprintf(g->found, sizeof g->found, "%s", patterns);
    g->relay.found = g->found;
}

static const struct upstream_ops upstream_ops = {
    .data = upstream_data,
    .end = upstream_end,
    .found = upstream_found,
    .room = upstream_room,
    .resume = upstream_resume,
    .id = upstream_id,
    .cancel = upstream_cancel,
};

struct upstream injection_upstream(struct injection *g)
{
    return (struct upstream){&upstream_ops, g};
}
