#include "grant.h"

#include "dial_client.h"
#include "fill.h"
#include "gather.h"
#include "guard.h"
#include "relay.h"
#include "scrub_head.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum grant_state { G_NEW = 0, G_BODY, G_SECRET, G_RECORDING, G_OPEN, G_DONE };

struct grant {
    struct relay relay; /* first */
    struct injector *injector;
    enum grant_state state;
    struct head head;
    struct authority authority;
    char entry[16], token[512];
    struct grant_decided decided;
    struct fill fill;
    struct gather body;  /* of the request, when the slot or a signature needs it whole */
    struct event *later; /* G_BODY: it is */
    struct secret_wait *secret_wait;
    struct sign_wait *sign_wait;
    struct secret *value;
    struct journal_wait *wait;
    uint64_t counter;
    unsigned refuse_status;
    const char *refuse_code;
    char refuse_detail[128];
    struct origin *origin;
    bool admitted;
    bool body_whole;     /* and what the search held of it is out */
    bool filled;         /* the credential is in: the reply is looked through */
    struct scrub *scrub; /* NULL: not filled, or too short a value */
    uint64_t head_hits;
};

static void set_state(struct grant *g, enum grant_state s)
{
    g->state = s;
}

static void grant_free(struct grant *g)
{
    journal_cancel(g->wait);
    secret_client_cancel(g->secret_wait);
    secret_client_sign_cancel(g->sign_wait);
    fill_free(&g->fill);
    secret_unref(g->value);
    scrub_free(g->scrub);
    gather_free(&g->body);
    if (g->later)
        event_free(g->later);
    http_head_free(&g->head);
    policy_free(g->decided.policy);
    explicit_bzero(g->token, sizeof g->token);
    free(g);
}

static void record_request(struct grant *g, struct record *r, enum record_kind kind)
{
    char text[HOST_TEXT_MAX + 16];
    struct buf shape;
    record_init(r, kind, g->counter);
    record_put_str(r, RF_SCHEME, scheme_name(g->authority.scheme));
    record_put_str(r, RF_AUTHORITY, authority_text(&g->authority, text, sizeof text));
    record_put(r, RF_METHOD, g->head.method);
    record_put(r, RF_PATH, fill_hides_path(&g->fill) ? SLICE("[placeholder]") : g->head.path);
    if (g->head.has_query) {
        buf_init(&shape, 1024);
        guard_query_shape(g->head.query, &shape);
        record_put(r, RF_QUERY, buf_slice(&shape));
        buf_free(&shape);
    }
    if (g->decided.rule)
        record_put_str(r, RF_RULE, g->decided.rule->text);
    if (g->decided.credential)
        record_put_str(r, RF_CREDENTIAL, g->decided.credential->secret);
    record_put_str(r, RF_ENTRY, g->entry);
    record_put_str(r, RF_SANDBOX, g->decided.sandbox);
}

static void tell_fail(struct grant *g, unsigned status, const char *code)
{
    char id[48] = "-";
    if (g->counter)
        journal_id(g->injector->journal, g->counter, id, sizeof id);
    struct front f = g->relay.front;
    set_state(g, G_DONE);
    grant_free(g);
    f.ops->fail(f.self, status, code, id);
}

static void on_denied_recorded(void *arg, bool ok)
{
    struct grant *g = arg;
    g->wait = NULL;
    if (ok)
        tell_fail(g, g->refuse_status, g->refuse_code);
    else
        tell_fail(g, 503, "audit_unwritable");
}

static void deny(struct grant *g, unsigned status, const char *code, const char *detail)
{
    struct record r;
    g->refuse_status = status;
    g->refuse_code = code;
    set_state(g, G_RECORDING);
    g->counter = journal_next(g->injector->journal);
    record_request(g, &r, RECORD_DENIED);
    record_put_str(&r, RF_CODE, code);
    record_put_u64(&r, RF_STATUS, status);
    record_put_str(&r, RF_DETAIL, detail);
    struct journal_wait *w = journal_append(g->injector->journal, &r, on_denied_recorded, g);
    if (w)
        g->wait = w;
}

/* How often the reply held the secret. */
static uint64_t hits(const struct grant *g)
{
    return g->head_hits + (g->scrub ? scrub_hits(g->scrub) : 0);
}

static void end_record(struct grant *g, enum record_kind kind, const char *code)
{
    struct record r;
    if (!g->admitted)
        return;
    g->admitted = false;
    record_init(&r, kind, g->counter);
    record_put_str(&r, RF_CODE, code);
    if (g->relay.status)
        record_put_u64(&r, RF_STATUS, g->relay.status);
    record_put_u64(&r, RF_UP, g->relay.up);
    record_put_u64(&r, RF_DOWN, g->relay.down);
    record_put_u64(&r, RF_MS, relay_ms(&g->relay));
    if (hits(g) > 0)
        record_put_u64(&r, RF_COUNT, hits(g));
    if (g->origin) {
        record_put_str(&r, RF_ADDRESS, origin_facts(g->origin)->address);
        record_put_str(&r, RF_DETAIL, origin_facts(g->origin)->detail);
    }
    journal_note(g->injector->journal, &r);
}

/* ---- filling ---- */

/* A reply that cannot be looked through is not asked for. */
static int prepare_scrub(struct grant *g)
{
    const struct credential *c = g->decided.credential;
    g->filled = true;
    if (g->value == NULL || secret_slice(g->value).n < SCRUB_VALUE_MIN)
        return 0;
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

static const struct front_ops front_ops;

static void open_origin(struct grant *g)
{
    char id[48], key[HOST_TEXT_MAX + 320], text[HOST_TEXT_MAX + 16];
    struct injector *i = g->injector;
    struct front f = {&front_ops, g};
    if (fill(g) < 0) {
        end_record(g, RECORD_ABORTED, "fill");
        tell_fail(g, 503, "fill");
        return;
    }
    journal_id(i->journal, g->counter, id, sizeof id);
    snprintf(key, sizeof key, "%s|%s|%u|%s|%s", g->decided.sandbox, i->name, i->generation,
             g->decided.credential ? g->decided.credential->secret : "",
             authority_text_port(&g->authority, text, sizeof text));
    g->origin = origin_open(&i->origin, i->dial, f, &g->authority, &g->head, key, id, g->token);
    if (g->origin == NULL) {
        end_record(g, RECORD_ABORTED, "memory");
        tell_fail(g, 503, "memory");
        return;
    }
    if (g->decided.credential) /* the serialised head is the one copy that is left */
        http_head_free(&g->head);
    set_state(g, G_OPEN);
    if (g->body.state == GATHER_OFF) {
        relay_open(&g->relay, origin_back(g->origin));
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
        tell_fail(g, 503, "audit_unwritable");
        return;
    }
    g->admitted = true;
    open_origin(g);
}

static void admit(struct grant *g)
{
    struct record r;
    set_state(g, G_RECORDING);
    g->counter = journal_next(g->injector->journal);
    record_request(g, &r, RECORD_ADMITTED);
    record_put_str(&r, RF_CODE, "ok");
    struct journal_wait *w = journal_append(g->injector->journal, &r, on_admitted_recorded, g);
    if (w)
        g->wait = w;
}

static void on_signed(void *arg, const char *signature, const struct err *err)
{
    struct grant *g = arg;
    g->sign_wait = NULL;
    if (signature == NULL)
        deny(g, 503, "secret_unavailable", err->text);
    else if (fill_signed(&g->fill, &g->head, signature) < 0)
        deny(g, 431, "too_many_headers", "");
    else
        admit(g);
}

/* The session's token, if there is one, is what a reply is searched for. */
static void sign(struct grant *g)
{
    struct slice v = secret_slice(g->value);
    ssize_t blank = slice_find(v, ' ');
    if (fill_prepare(&g->fill, &g->head, &g->authority, &g->body, v) < 0) {
        deny(g, 431, "too_many_headers", "");
        return;
    }
    struct secret *token = blank < 0 ? NULL : secret_new(v.p + blank + 1, v.n - (size_t)blank - 1);
    secret_unref(g->value);
    g->value = token;
    struct sign_wait *w = secret_client_sign(g->injector->secrets, g->decided.credential->secret,
                                             g->fill.key_id, &g->fill.scope, on_signed, g);
    if (w)
        g->sign_wait = w;
}

static void on_secret(void *arg, struct secret *value, const struct err *err)
{
    struct grant *g = arg;
    g->secret_wait = NULL;
    if (value == NULL) {
        deny(g, 503, "secret_unavailable", err ? err->text : "");
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
        deny(g, 431, "too_many_headers", "");
        return;
    }
    if (g->decided.credential == NULL) {
        admit(g);
        return;
    }
    const char *bad = fill_check(&g->fill, &g->head, &g->body);
    if (bad) {
        deny(g, 403, bad, "");
        return;
    }
    set_state(g, G_SECRET);
    struct secret_wait *w =
        secret_client_get(g->injector->secrets, g->decided.credential->secret, on_secret, g);
    if (w)
        g->secret_wait = w;
}

/* The reply is not to go on: the origin is given up from within its own call. */
static void abandon(struct grant *g, unsigned status, const char *code)
{
    end_record(g, RECORD_ABORTED, code);
    g->relay.back.ops->cancel(g->relay.back.self, code);
    tell_fail(g, status, code);
}

/* ---- the body first ---- */

static void on_later(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct grant *g = arg;
    if (g->state != G_BODY)
        abandon(g, 403, "body_hash");
    else if (g->body.state == GATHER_LARGE)
        deny(g, 413, "body_too_large", "");
    else if (g->body.state == GATHER_FULL)
        deny(g, 503, "overload", "");
    else
        fetch(g);
}

/* From a call of the front, to which nothing may be answered before it returns. */
static void later(struct grant *g)
{
    event_active(g->later, EV_TIMEOUT, 0);
}

static void gather(struct grant *g, size_t max)
{
    if (g->head.body == BODY_LENGTH && g->head.length > max) {
        deny(g, 413, "body_too_large", "");
        return;
    }
    set_state(g, G_BODY);
    gather_begin(&g->body, max, &g->injector->gathered);
}

void grant_start(struct grant *g, struct grant_request *r)
{
    g->head = r->head;
    http_head_init(&r->head);
    g->authority = r->authority;
    memcpy(g->entry, r->entry, sizeof g->entry);
    memcpy(g->token, r->token, sizeof g->token);
    const char *bad = grant_check(g->injector, r, &g->head, &g->authority, &g->decided);
    if (bad) {
        deny(g, 403, bad, "");
        return;
    }
    guard_clean_request(&g->head);
    if (g->decided.rule->method_scoped)
        (void)guard_strip_overrides(&g->head);
    if (g->decided.credential == NULL) {
        fetch(g);
        return;
    }
    bad = fill_begin(&g->fill, g->decided.credential, &r->marks, &g->head);
    if (bad == NULL && guard_foreign(&g->head, g->decided.rule))
        bad = "foreign_credential";
    if (bad) {
        deny(g, 403, bad, "");
        return;
    }
    if (guard_credentialed(&g->head, g->decided.rule) < 0) {
        deny(g, 431, "too_many_headers", "");
        return;
    }
    g->later = event_new(g->injector->base, -1, 0, on_later, g);
    if (g->later == NULL) {
        deny(g, 503, "memory", "");
        return;
    }
    size_t max = fill_gathers(&g->fill, &g->head);
    if (max > 0)
        gather(g, max);
    else
        fetch(g);
}

struct grant *grant_new(struct injector *i, struct front front)
{
    struct grant *g = calloc(1, sizeof *g);
    if (g == NULL)
        return NULL;
    g->injector = i;
    relay_init(&g->relay, front);
    http_head_init(&g->head);
    return g;
}

/* ---- as the front of the origin ---- */

/* In a copy of our own. -1: out of memory. */
static int clean_head(struct grant *g, struct head *to, const struct head *from)
{
    ssize_t n = scrub_head(scrub_set(g->scrub), to, from);
    g->head_hits += n > 0 ? (uint64_t)n : 0;
    return n < 0 ? -1 : 0;
}

static void front_reply(void *self, const struct head *h)
{
    struct grant *g = self;
    struct head clean;
    if (g->filled && h->body != BODY_NONE && scrub_head_coded(h)) {
        abandon(g, 502, "cannot_scrub");
        return;
    }
    g->relay.status = h->status;
    if (g->scrub == NULL) {
        g->relay.front.ops->reply(g->relay.front.self, h);
        return;
    }
    int r = clean_head(g, &clean, h);
    if (r == 0)
        g->relay.front.ops->reply(g->relay.front.self, &clean);
    http_head_free(&clean);
    if (r < 0)
        abandon(g, 503, "memory");
}

static void front_data(void *self, const void *p, size_t n)
{
    struct grant *g = self;
    struct slice s = {p, n};
    if (g->scrub && scrub_feed(g->scrub, s, &s) < 0) {
        abandon(g, 503, "memory");
        return;
    }
    g->relay.down += s.n;
    if (s.n > 0)
        g->relay.front.ops->data(g->relay.front.self, s.p, s.n);
}

/* What the search still holds of the body goes on: there is no more of it. */
static int flush_scrub(struct grant *g)
{
    struct slice rest = {"", 0};
    if (g->scrub && !g->body_whole && scrub_end(g->scrub, &rest) < 0)
        return -1;
    g->body_whole = true;
    g->relay.down += rest.n;
    if (rest.n > 0) /* the room for it was never given away */
        g->relay.front.ops->data(g->relay.front.self, rest.p, rest.n);
    return 0;
}

/* Trailers come after the body, so what the search still holds of it goes first. */
static void front_trailers(void *self, const struct head *fields)
{
    struct grant *g = self;
    struct head clean;
    if (flush_scrub(g) < 0)
        return;
    if (g->scrub == NULL) {
        g->relay.front.ops->trailers(g->relay.front.self, fields);
        return;
    }
    int r = clean_head(g, &clean, fields);
    if (r == 0)
        g->relay.front.ops->trailers(g->relay.front.self, &clean);
    http_head_free(&clean);
}

static void front_end(void *self)
{
    struct grant *g = self;
    struct front f = g->relay.front;
    if (flush_scrub(g) < 0) {
        end_record(g, RECORD_ABORTED, "memory");
        tell_fail(g, 503, "memory");
        return;
    }
    end_record(g, RECORD_COMPLETED, hits(g) > 0 ? "secret_reflected" : "ok");
    set_state(g, G_DONE);
    grant_free(g);
    f.ops->end(f.self);
}

static void front_fail(void *self, unsigned status, const char *code, const char *id UNUSED)
{
    struct grant *g = self;
    end_record(g, RECORD_ABORTED, code);
    tell_fail(g, status, code);
}

static size_t front_room(void *self)
{
    struct grant *g = self;
    size_t room = g->relay.front.ops->room(g->relay.front.self);
    size_t held = g->scrub ? scrub_held(g->scrub) : 0;
    return room > held ? room - held : 0;
}

static void front_wanted(void *self)
{
    struct grant *g = self;
    if (g->body.state != GATHER_OFF)
        gather_pump(&g->body, g->relay.back);
    else
        relay_wanted(self);
}

static const struct front_ops front_ops = {
    .reply = front_reply,
    .data = front_data,
    .trailers = front_trailers,
    .end = front_end,
    .fail = front_fail,
    .room = front_room,
    .wanted = front_wanted,
};

/* ---- as the back of the hop ---- */

static void back_data(void *self, const void *p, size_t n)
{
    struct grant *g = self;
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
    return g->state == G_BODY ? gather_room(&g->body) : relay_up_room(self);
}

static void back_cancel(void *self, const char *code)
{
    struct grant *g = self;
    end_record(g, RECORD_ABORTED, code);
    if (g->relay.back.ops)
        g->relay.back.ops->cancel(g->relay.back.self, code);
    set_state(g, G_DONE);
    grant_free(g);
}

static const struct back_ops back_ops = {
    .data = back_data,
    .end = back_end,
    .room = back_room,
    .resume = relay_resume,
    .cancel = back_cancel,
};

struct back grant_back(struct grant *g)
{
    return (struct back){&back_ops, g};
}
