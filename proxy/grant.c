#include "grant_internal.h"

#include "client_cert.h"
#include "dial_client.h"
#include "guard.h"
#include "hold.h"
#include "meter.h"
#include "spend.h"
#include "tunnel.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void grant_set_state(struct grant *g, enum grant_state s)
{
    g->state = s;
}

void grant_release(struct grant *g)
{
    journal_cancel(g->wait);
    relay_done(&g->relay);
    hold_cancel(g->hold);
    secret_client_cancel(g->secret_wait);
    secret_client_sign_cancel(g->sign_wait);
    aws_upload_free(g->upload);
    fill_free(&g->fill);
    secret_unref(g->value);
    client_cert_free(g->cert);
    scrub_free(g->scrub);
    gather_free(&g->body);
    gather_free(&g->reply);
    http_head_free(&g->held);
    if (g->later)
        event_free(g->later);
    http_head_free(&g->head);
    policy_free(g->decided.policy);
    explicit_bzero(g->token, sizeof g->token);
    free(g);
}

/* From a call of the front, to which nothing may be answered before it returns. */
static void later(struct grant *g)
{
    event_active(g->later, EV_TIMEOUT, 0);
}

/* ---- filling ---- */

/* A reply that cannot be looked through is not asked for. */
static int prepare_scrub(struct grant *g)
{
    const struct credential *c = g->decided.credential;
    if (c->kind == CREDENTIAL_CERTIFICATE) /* the origin never sees the key */
        return 0;
    g->filled = true;
    if (g->value == NULL)
        return 0;
    if (secret_slice(g->value).n < SCRUB_VALUE_MIN) {
        g->unsearched = true;
        return 0;
    }
    struct scrub_set *set = scrub_cache_get(g->injector->scrubs, c->secret, g->value,
                                            c->kind == CREDENTIAL_BASIC ? c->user : NULL);
    if (set == NULL)
        return -1;
    g->scrub = scrub_new(set);
    scrub_set_unref(set);
    return g->scrub ? 0 : -1;
}

static int fill(struct grant *g)
{
    if (g->decided.credential == NULL)
        return 0;
    struct slice value = g->value ? secret_slice(g->value) : (struct slice){"", 0};
    int r = fill_apply(&g->fill, &g->head, &g->body, value);
    if (r == 0)
        r = prepare_scrub(g);
    secret_unref(g->value);
    g->value = NULL;
    return r;
}

static void open_origin(struct grant *g)
{
    char id[48], key[HOST_TEXT_MAX + 320], text[HOST_TEXT_MAX + 16];
    struct injector *i = g->injector;
    struct front f = {&grant_front_ops, g};
    if (fill(g) < 0) {
        grant_end_record(g, RECORD_ABORTED, "fill");
        grant_tell_fail(g, 503, "fill");
        return;
    }
    journal_id(i->journal, g->counter, id, sizeof id);
    snprintf(key, sizeof key, "%s|%s|%u.%u|%s|%s", g->decided.sandbox, i->name, i->generation,
             i->epoch, g->decided.credential ? g->decided.credential->secret : "",
             authority_text_port(&g->authority, text, sizeof text));
    if (grant_upload_begin(g) == 0)
        g->origin = origin_open(&i->origin, i->dial, f, &g->authority, &g->head, key, id, g->token,
                                g->cert);
    if (g->origin == NULL) {
        grant_end_record(g, RECORD_ABORTED, "memory");
        grant_tell_fail(g, 503, "memory");
        return;
    }
    if (g->decided.credential) /* the serialised head is the one copy that is left */
        http_head_free(&g->head);
    grant_set_state(g, G_OPEN);
    relay_admitted(&g->relay, i->base, i->limits.progress_seconds, i->journal, g->counter);
    if (g->body.state == GATHER_OFF) {
        relay_open(&g->relay, grant_upload_back(g));
        return;
    }
    g->relay.back = origin_back(g->origin);
    gather_pump(&g->body, g->relay.back);
}

static void on_admitted_recorded(void *arg, bool ok)
{
    struct grant *g = arg;
    g->wait = NULL;
    if (!ok) {
        grant_tell_fail(g, 503, "audit_unwritable");
        return;
    }
    g->admitted = true;
    open_origin(g);
}

static void admit(struct grant *g)
{
    struct record r;
    grant_set_state(g, G_RECORDING);
    g->counter = journal_next(g->injector->journal);
    grant_record_request(g, &r, RECORD_ADMITTED);
    record_put_str(&r, RF_CODE, "ok");
    if (g->approval[0])
        record_put_str(&r, RF_DETAIL, g->approval);
    struct journal_wait *w = journal_append(g->injector->journal, &r, on_admitted_recorded, g);
    if (w)
        g->wait = w;
}

static void on_signed(void *arg, struct slice signature, const struct err *err)
{
    struct grant *g = arg;
    g->sign_wait = NULL;
    if (signature.n == 0)
        grant_deny(g, 503, "secret_unavailable", err->text);
    else if (fill_signed(&g->fill, &g->head, signature) < 0)
        grant_deny(g, 431, "too_many_headers", "");
    else
        admit(g);
}

/* The session's token, if there is one, is what a reply is searched for. */
static void sign(struct grant *g)
{
    struct slice v = secret_slice(g->value);
    const struct credential *c = g->decided.credential;
    bool aws = c->kind == CREDENTIAL_AWS;
    ssize_t blank = aws ? slice_find(v, ' ') : -1;
    struct sign_wait *w;
    const char *bad = fill_prepare(&g->fill, &g->head, &g->authority, &g->body, v);
    if (bad) {
        grant_deny(g, strcmp(bad, "too_many_headers") == 0 ? 431 : 403, bad, "");
        return;
    }
    struct secret *token = blank < 0 ? NULL : secret_new(v.p + blank + 1, v.n - (size_t)blank - 1);
    secret_unref(g->value);
    g->value = token;
    w = aws ? secret_client_sign(g->injector->secrets, c->secret, grant_key_owner(g),
                                 g->fill.key_id, &g->fill.scope, on_signed, g)
            : secret_client_sign_text(g->injector->secrets, c->secret, 0,
                                      buf_slice(&g->fill.text.text), on_signed, g);
    if (w)
        g->sign_wait = w;
}

/* The sandbox's own, of a reply that it had before. */
static void on_captured(void *arg, struct slice value, const struct slice *values UNUSED,
                        size_t n UNUSED, const struct err *err)
{
    struct grant *g = arg;
    g->sign_wait = NULL;
    g->value = value.n ? secret_new(value.p, value.n) : NULL;
    if (g->value == NULL)
        grant_deny(g, 503, "secret_unavailable", err->text);
    else if (fill_signs(&g->fill))
        sign(g);
    else
        admit(g);
}

static void on_secret(void *arg, struct secret *value, const struct err *err)
{
    struct grant *g = arg;
    g->secret_wait = NULL;
    if (value == NULL) {
        grant_deny(g, 503, "secret_unavailable", err ? err->text : "");
        return;
    }
    if (g->decided.credential->kind == CREDENTIAL_CERTIFICATE) {
        g->cert = client_cert_new(g->injector->base, g->injector->secrets,
                                  g->decided.credential->secret, secret_slice(value));
        if (g->cert)
            admit(g);
        else
            grant_deny(g, 503, "secret_unavailable", "its certificate is none");
        return;
    }
    g->value = secret_ref(value);
    if (fill_signs(&g->fill))
        sign(g);
    else
        admit(g);
}

/* The request is complete but for the credential. */
static void fetch(struct grant *g)
{
    /* what the rule sets and removes is the policy's: the gate has done it, or should have */
    if (guard_edit(&g->head, g->decided.rule) < 0) {
        grant_deny(g, 431, "too_many_headers", "");
        return;
    }
    if (g->decided.credential == NULL) {
        admit(g);
        return;
    }
    const char *bad = fill_check(&g->fill, &g->head, &g->body);
    if (bad) {
        grant_deny(g, 403, bad, "");
        return;
    }
    if (!fill_wanted(&g->fill, &g->head, &g->body)) {
        g->decided.credential = NULL;
        admit(g);
        return;
    }
    grant_set_state(g, G_SECRET);
    if (g->decided.credential->captured) {
        struct sign_wait *s = secret_client_captured(g->injector->secrets, g->decided.sandbox,
                                                     g->decided.credential->secret, on_captured, g);
        if (s)
            g->sign_wait = s;
        return;
    }
    struct secret_wait *w =
        secret_client_get(g->injector->secrets, g->decided.credential->secret, on_secret, g);
    if (w)
        g->secret_wait = w;
}

/* The reply is not to go on: the origin is given up from within its own call. */
void grant_abandon(struct grant *g, unsigned status, const char *code)
{
    grant_end_record(g, RECORD_ABORTED, code);
    g->relay.back.ops->cancel(g->relay.back.self, code);
    grant_tell_fail(g, status, code);
}

/* ---- the body first ---- */

static void on_later(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct grant *g = arg;
    if (g->state == G_CAPTURING) /* answered already */
        return;
    if (g->upload)
        grant_abandon(g, g->refuse_status, g->refuse_code);
    else if (g->state != G_BODY)
        grant_abandon(g, 403, "body_hash");
    else if (g->body.state == GATHER_LARGE)
        grant_deny(g, 413, "body_too_large", "");
    else if (g->body.state == GATHER_FULL)
        grant_deny(g, 503, "overload", "");
    else
        fetch(g);
}

static void gather(struct grant *g, size_t max)
{
    bool ended = g->relay.request_ended; /* while it was held */
    if (g->head.body == BODY_LENGTH && g->head.length > max) {
        grant_deny(g, 413, "body_too_large", "");
        return;
    }
    grant_set_state(g, G_BODY);
    gather_begin(&g->body, max, &g->injector->gathered);
    if (ended) {
        gather_end(&g->body);
        later(g);
    } else if (g->waited) {
        relay_wanted(g);
    }
}

void grant_proceed(struct grant *g)
{
    if (grant_budget(g))
        return;
    size_t max = g->decided.credential ? fill_gathers(&g->fill, &g->head) : 0;
    if (max > 0)
        gather(g, max);
    else
        fetch(g);
}

/* Nothing of ours goes. Unless the client's own may, none does. */
static void start_without(struct grant *g)
{
    const struct rule *rule = g->decided.rule;
    bool pass = rule->credential == NULL || rule->client_credential == CLIENT_PASS;
    if (!pass) {
        http_head_remove(&g->head, rule->credential->header);
        if (guard_foreign(&g->head, rule)) {
            grant_deny(g, 403, "foreign_credential", "");
            return;
        }
    }
    if ((!pass || rule->n_captures) && guard_credentialed(&g->head, rule) < 0)
        grant_deny(g, 431, "too_many_headers", "");
    else
        (rule->ask ? grant_hold : grant_proceed)(g);
}

void grant_start(struct grant *g, struct grant_request *r)
{
    http_head_move(&g->head, &r->head);
    g->authority = r->authority;
    memcpy(g->entry, r->entry, sizeof g->entry);
    memcpy(g->token, r->token, sizeof g->token);
    const char *bad = grant_check(g->injector, r, &g->head, &g->authority, &g->decided);
    if (bad) {
        grant_deny(g, 403, bad, "");
        return;
    }
    g->relay.capture_max = g->decided.rule->capture_body;
    g->relay.upgrade = g->head.upgrade != UPGRADE_NONE;
    if (g->decided.rule->method_scoped && guard_query_override(g->head.query)) {
        grant_deny(g, 403, "method_override", "");
        return;
    }
    guard_clean_request(&g->head);
    if (g->decided.rule->method_scoped)
        (void)guard_strip_overrides(&g->head);
    g->blanks = r->blanks;
    if (g->decided.credential == NULL) {
        start_without(g);
        return;
    }
    bad = fill_begin(&g->fill, g->decided.credential, &r->marks, &g->head);
    if (bad == NULL && guard_foreign(&g->head, g->decided.rule))
        bad = "foreign_credential";
    if (bad) {
        grant_deny(g, 403, bad, "");
        return;
    }
    if (guard_credentialed(&g->head, g->decided.rule) < 0) {
        grant_deny(g, 431, "too_many_headers", "");
        return;
    }
    g->later = event_new(g->injector->base, -1, 0, on_later, g);
    if (g->later == NULL) {
        grant_deny(g, 503, "memory", "");
        return;
    }
    (g->decided.rule->ask ? grant_hold : grant_proceed)(g);
}

struct grant *grant_new(struct injector *i, struct front front)
{
    struct grant *g = malloc(sizeof *g);
    if (g == NULL)
        return NULL;
    memset(g, 0, offsetof(struct grant, head));
    g->injector = i;
    relay_init(&g->relay, front);
    g->relay.sandbox = g->decided.sandbox; /* "" until it is decided */
    http_head_init(&g->head);
    http_head_init(&g->held);
    return g;
}

/* ---- as the back of the hop ---- */

static void back_data(void *self, const void *p, size_t n)
{
    struct grant *g = self;
    if (g->state == G_CAPTURING) /* the origin has answered without it */
        return;
    spend_up(g->relay.spend, n);
    relay_capture(&g->relay, BODY_REQUEST, p, n);
    if (g->state != G_BODY) {
        if (fill_pass(&g->fill, p, n))
            relay_up_bytes(self, p, n);
        else
            later(g);
        return;
    }
    g->relay.up += n;
    gather_data(&g->body, p, n);
    if (g->body.state != GATHER_TAKING)
        later(g);
}

static void back_end(void *self)
{
    struct grant *g = self;
    if (g->state == G_CAPTURING)
        return;
    if (g->state == G_HELD || g->state == G_BUDGET) {
        g->relay.request_ended = true;
        return;
    }
    if (g->state != G_BODY && !fill_passed(&g->fill)) { /* the origin does not get its end */
        later(g);
        return;
    }
    if (g->state != G_BODY) {
        relay_up_end(self);
        return;
    }
    g->relay.request_ended = true;
    gather_end(&g->body);
    later(g);
}

static size_t back_room(void *self)
{
    struct grant *g = self;
    size_t room = g->state == G_BODY ? gather_room(&g->body) : relay_up_room(self);
    return room ? spend_up_room(g->relay.spend, room) : 0;
}

/* Given up while its secret was awaited: nothing left, and nothing is on record yet. */
static void note_given_up(struct grant *g, const char *code)
{
    struct record r;
    if (g->counter == 0)
        g->counter = journal_next(g->injector->journal);
    grant_record_request(g, &r, RECORD_DENIED);
    record_put_str(&r, RF_CODE, code);
    journal_note(g->injector->journal, &r);
}

/* Something is awaited before its record is written. */
static bool is_undecided(const struct grant *g)
{
    return g->state == G_SECRET || g->state == G_BODY || g->state == G_HELD || g->state == G_BUDGET;
}

static void back_id(void *self, char id[STREAM_ID])
{
    struct grant *g = self;
    if (is_undecided(g))
        g->counter = journal_next(g->injector->journal); /* cancel writes its record */
    if (g->counter)
        journal_id(g->injector->journal, g->counter, id, STREAM_ID);
}

static void back_cancel(void *self, const char *code)
{
    struct grant *g = self;
    if (is_undecided(g))
        note_given_up(g, code);
    tunnel_cancelled(g->relay.tunnel, code);
    grant_end_record(g, RECORD_ABORTED, code);
    if (g->relay.back.ops)
        g->relay.back.ops->cancel(g->relay.back.self, code);
    grant_set_state(g, G_DONE);
    grant_release(g);
}

static const struct back_ops back_ops = {
    .data = back_data,
    .end = back_end,
    .room = back_room,
    .resume = relay_resume,
    .id = back_id,
    .cancel = back_cancel,
};

struct back grant_back(struct grant *g)
{
    return (struct back){&back_ops, g};
}
