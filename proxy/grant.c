#include "grant.h"

#include "dial_client.h"
#include "grpc_message.h"
#include "guard.h"
#include "http1_head.h"
#include "policy.h"
#include "relay.h"
#include "scrub_frames.h"
#include "secret.h"
#include "token.h"
#include "tunnel.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum grant_state { G_NEW = 0, G_SECRET, G_RECORDING, G_OPEN, G_DONE };

struct grant {
    struct relay relay; /* first */
    struct injector *injector;
    enum grant_state state;
    struct head head;
    struct authority authority;
    char entry[16], token[512], sandbox[65];
    const struct rule *rule;
    struct policy *policy;               /* whose rule it is; a reference */
    const struct credential *credential; /* NULL: the client's own goes (pass) */
    struct secret_wait *secret_wait;
    struct secret *value;
    struct journal_wait *wait;
    uint64_t counter;
    unsigned refuse_status;
    const char *refuse_code;
    char refuse_detail[128];
    struct origin *origin;
    bool admitted;
    bool body_whole;  /* and what the search held of it is out */
    bool filled;      /* the credential is in: the reply is looked through */
    bool in_messages; /* the reply's body is a stream of them */
    struct grpc_message message;
    struct scrub *scrub; /* NULL: not filled, or too short a value */
    uint64_t head_hits;
    struct scrub_frames frames;
};

static void set_state(struct grant *g, enum grant_state s)
{
    g->state = s;
}

static void grant_free(struct grant *g)
{
    journal_cancel(g->wait);
    relay_done(&g->relay);
    secret_client_cancel(g->secret_wait);
    secret_unref(g->value);
    scrub_free(g->scrub);
    http_head_free(&g->head);
    policy_free(g->policy);
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
    record_put(r, RF_PATH, g->head.path);
    if (g->head.has_query) {
        buf_init(&shape, 1024);
        guard_query_shape(g->head.query, &shape);
        record_put(r, RF_QUERY, buf_slice(&shape));
        buf_free(&shape);
    }
    if (g->rule)
        record_put_str(r, RF_RULE, g->rule->text);
    if (g->credential)
        record_put_str(r, RF_CREDENTIAL, g->credential->secret);
    record_put_str(r, RF_ENTRY, g->entry);
    record_put_str(r, RF_SANDBOX, g->sandbox);
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
    return g->head_hits + g->frames.hits + (g->scrub ? scrub_hits(g->scrub) : 0);
}

static void end_record(struct grant *g, enum record_kind kind, const char *code)
{
    struct record r;
    if (!g->admitted)
        return;
    g->admitted = false;
    tunnel_verdict(g->relay.tunnel, &kind, &code);
    if (kind == RECORD_COMPLETED && hits(g) > 0)
        code = "secret_reflected";
    relay_record(&g->relay, &r, kind, g->counter, code);
    if (hits(g) > 0)
        record_put_u64(&r, RF_COUNT, hits(g));
    if (g->origin) {
        record_put_str(&r, RF_ADDRESS, origin_facts(g->origin)->address);
        record_put_str(&r, RF_DETAIL, origin_facts(g->origin)->detail);
    }
    journal_note(g->injector->journal, &r);
}

/* ---- filling ---- */

/* The field's value in a wiped buffer: prefix + secret + suffix, or Basic base64(user:secret). */
static int render(const struct credential *c, struct slice value, struct buf *out)
{
    if (c->kind != CREDENTIAL_BASIC)
        return buf_append_str(out, c->prefix) < 0 || buf_append_slice(out, value) < 0 ||
                       buf_append_str(out, c->suffix) < 0
                   ? -1
                   : 0;
    struct buf pair;
    buf_init_wiped(&pair, SECRET_MAX + 1024);
    bool ok = buf_append_str(&pair, c->user) == 0 && buf_append(&pair, ":", 1) == 0 &&
              buf_append_slice(&pair, value) == 0 && buf_append_str(out, "Basic ") == 0;
    unsigned char *to = ok ? buf_reserve(out, (buf_len(&pair) + 2) / 3 * 4 + 1) : NULL;
    if (to) {
        int n = EVP_EncodeBlock(to, buf_data(&pair), (int)buf_len(&pair));
        buf_commit(out, (size_t)n);
    }
    buf_free(&pair);
    return to ? 0 : -1;
}

/* A reply that cannot be looked through is not asked for. */
static int prepare_scrub(struct grant *g)
{
    const struct credential *c = g->credential;
    g->filled = true;
    if (secret_slice(g->value).n < SCRUB_VALUE_MIN)
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
    struct buf v;
    if (g->credential == NULL)
        return 0;
    buf_init_wiped(&v, SECRET_MAX * 2 + 2048);
    int r = render(g->credential, secret_slice(g->value), &v);
    if (r == 0 && !http1_is_value(buf_slice(&v)))
        r = -1; /* a line ending in a secret would write fields of its own (attack C19) */
    if (r == 0)
        r = http_head_set(&g->head, g->credential->header, buf_slice(&v));
    buf_free(&v);
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
    snprintf(key, sizeof key, "%s|%s|%u|%s|%s", g->sandbox, i->name, i->generation,
             g->credential ? g->credential->secret : "",
             authority_text_port(&g->authority, text, sizeof text));
    g->origin = origin_open(&i->origin, i->dial, f, &g->authority, &g->head, key, id, g->token);
    if (g->origin == NULL) {
        end_record(g, RECORD_ABORTED, "memory");
        tell_fail(g, 503, "memory");
        return;
    }
    if (g->credential) /* the serialised head is the one copy that is left */
        http_head_free(&g->head);
    set_state(g, G_OPEN);
    relay_admitted(&g->relay, i->base, i->limits.progress_seconds, i->journal, g->counter);
    relay_open(&g->relay, origin_back(g->origin));
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

/* What the rule sets and removes is the policy's: the gate has done it, or should have. */
static void admit_edited(struct grant *g)
{
    if (guard_edit(&g->head, g->rule) < 0)
        deny(g, 431, "too_many_headers", "");
    else
        admit(g);
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
    admit_edited(g);
}

/* ---- checking: nothing the gate said is believed ---- */

static const char *check_token(struct grant *g, const struct grant_request *r)
{
    struct token t;
    if (!r->needs_token)
        return NULL;
    if (g->injector->token_public == NULL ||
        token_verify(g->injector->token_public, slice_str(r->token), (uint64_t)time(NULL), &t,
                     NULL) < 0)
        return "token_invalid";
    if (strcmp(t.policy, g->injector->name) != 0)
        return "token_policy";
    snprintf(g->sandbox, sizeof g->sandbox, "%s", t.sandbox);
    return NULL;
}

/* The host as the message has it: IPv6 without brackets. */
static int canonical_host(struct authority *a)
{
    char host[HOST_TEXT_MAX + 2];
    bool v6 = strchr(a->host, ':') != NULL;
    snprintf(host, sizeof host, v6 ? "[%s]" : "%s", a->host);
    return authority_host(a, slice_str(host));
}

static const char *check_grant(struct grant *g, const struct grant_request *r)
{
    const char *why;
    struct authority a = g->authority;
    struct decision d;
    if (canonical_host(&a) < 0 || strcmp(a.host, g->authority.host) != 0)
        return "grant_authority";
    g->authority.kind = a.kind;
    memcpy(g->authority.ip, a.ip, sizeof a.ip);
    if (guard_method(g->head.method) < 0 || path_check(g->head.path, &why) < 0)
        return "grant_request";
    struct policy_request q = {&g->authority, g->head.method, g->head.path};
    g->policy = policy_ref(g->injector->policy);
    policy_decide(g->policy, &q, &d);
    if (d.verdict != VERDICT_ALLOW || d.rule == NULL || d.rule->credential == NULL)
        return "grant_denied";
    g->rule = d.rule;
    if (g->authority.scheme != SCHEME_HTTPS && !d.rule->allow_plaintext)
        return "grant_authority";
    if (guard_conditions(d.rule, &g->head))
        return "grant_request";
    g->relay.upgrade = g->head.upgrade != UPGRADE_NONE;
    if (g->relay.upgrade && !d.rule->websocket)
        return "grant_denied";
    if (r->secret[0] == 0)
        return d.rule->client_credential == CLIENT_PASS ? NULL : "grant_denied";
    if (strcmp(d.rule->credential->secret, r->secret) != 0)
        return "grant_denied";
    g->credential = d.rule->credential;
    return NULL;
}

void grant_start(struct grant *g, struct grant_request *r)
{
    g->head = r->head;
    http_head_init(&r->head);
    g->authority = r->authority;
    memcpy(g->entry, r->entry, sizeof g->entry);
    memcpy(g->token, r->token, sizeof g->token);
    snprintf(g->sandbox, sizeof g->sandbox, "%s", r->sandbox);
    const char *bad = check_token(g, r);
    if (bad == NULL)
        bad = check_grant(g, r);
    if (bad) {
        deny(g, 403, bad, "");
        return;
    }
    guard_clean_request(&g->head);
    if (g->rule->method_scoped)
        (void)guard_strip_overrides(&g->head);
    if (g->credential == NULL) {
        admit_edited(g);
        return;
    }
    http_head_remove(&g->head, g->credential->header);
    if (guard_foreign(&g->head, g->rule)) {
        deny(g, 403, "foreign_credential", "");
        return;
    }
    if (guard_credentialed(&g->head, g->rule) < 0) {
        deny(g, 431, "too_many_headers", "");
        return;
    }
    set_state(g, G_SECRET);
    struct secret_wait *w =
        secret_client_get(g->injector->secrets, g->credential->secret, on_secret, g);
    if (w)
        g->secret_wait = w;
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

/* The reply is not to go on: the origin is given up from within its own call. */
static void abandon(struct grant *g, unsigned status, const char *code)
{
    end_record(g, RECORD_ABORTED, code);
    g->relay.back.ops->cancel(g->relay.back.self, code);
    tell_fail(g, status, code);
}

/* Each value for itself, in a copy of our own. -1: out of memory. */
static int scrub_head(struct grant *g, struct head *to, const struct head *from)
{
    if (http_head_copy(to, from) < 0)
        return -1;
    for (size_t i = 0; i < to->n; i++) {
        struct slice v = to->fields[i].value; /* lies in to->raw */
        ssize_t n = scrub_whole(scrub_set(g->scrub), to->raw + (v.p - to->raw), v.n);
        if (n < 0)
            return -1;
        g->head_hits += (uint64_t)n;
    }
    return 0;
}

static void on_tunnel_over(void *self, const char *code)
{
    struct grant *g = self;
    struct front f = g->relay.front;
    end_record(g, RECORD_ABORTED, code);
    g->relay.back.ops->cancel(g->relay.back.self, code);
    set_state(g, G_DONE);
    grant_free(g);
    f.ops->end(f.self);
}

static int open_tunnel(struct grant *g)
{
    struct tunnel_owner owner = {on_tunnel_over, g};
    g->frames.scrub = g->scrub;
    struct tunnel_filter down = scrub_frames_filter(&g->frames);
    return relay_open_tunnel(&g->relay, g->injector->base, owner, TUNNEL_STRICT_DOWN, NULL,
                             g->scrub ? &down : NULL);
}

static void pass_reply(struct grant *g, const struct head *h)
{
    g->relay.front.ops->reply(g->relay.front.self, h);
    if (g->relay.tunnel) /* frames may wait already */
        g->relay.front.ops->wanted(g->relay.front.self);
}

static void front_reply(void *self, const struct head *h)
{
    struct grant *g = self;
    struct head clean;
    if (g->filled && h->body != BODY_NONE && guard_coded(h)) {
        abandon(g, 502, "cannot_scrub");
        return;
    }
    g->relay.status = h->status;
    g->in_messages = grpc_has_messages(h);
    if (h->body == BODY_TUNNEL && open_tunnel(g) < 0) {
        abandon(g, 503, "memory");
        return;
    }
    if (g->scrub == NULL) {
        pass_reply(g, h);
        return;
    }
    int r = scrub_head(g, &clean, h);
    if (r == 0)
        pass_reply(g, &clean);
    http_head_free(&clean);
    if (r < 0)
        abandon(g, 503, "memory");
}

static void pass_body(struct grant *g, struct slice s)
{
    g->relay.down += s.n;
    if (s.n > 0)
        g->relay.front.ops->data(g->relay.front.self, s.p, s.n);
}

static void front_data(void *self, const void *p, size_t n)
{
    struct grant *g = self;
    struct slice s = {p, n};
    if (g->relay.tunnel) {
        tunnel_down(g->relay.tunnel, p, n);
        return;
    }
    bool over = g->in_messages && grpc_message_over(&g->message, s);
    if (g->scrub && scrub_feed(g->scrub, s, &s) < 0) {
        abandon(g, 503, "memory");
        return;
    }
    pass_body(g, s);
    if (over && g->scrub && scrub_early(g->scrub, &s) == 0)
        pass_body(g, s); /* a peer waits for it before it says more */
}

/* What the search still holds of the body goes on: there is no more of it. */
static int flush_scrub(struct grant *g)
{
    struct slice rest = {"", 0};
    if (g->scrub && !g->body_whole && scrub_end(g->scrub, &rest) < 0)
        return -1;
    g->body_whole = true;
    pass_body(g, rest); /* the room for it was never given away */
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
    int r = scrub_head(g, &clean, fields);
    if (r == 0)
        g->relay.front.ops->trailers(g->relay.front.self, &clean);
    http_head_free(&clean);
}

static void front_end(void *self)
{
    struct grant *g = self;
    struct front f = g->relay.front;
    if (g->relay.tunnel) {
        bool cut = !tunnel_down_closed(g->relay.tunnel);
        end_record(g, RECORD_COMPLETED, "ok");
        if (cut) {
            tell_fail(g, 502, "upstream_closed");
            return;
        }
    } else if (flush_scrub(g) < 0) {
        end_record(g, RECORD_ABORTED, "memory");
        tell_fail(g, 503, "memory");
        return;
    }
    end_record(g, RECORD_COMPLETED, "ok");
    set_state(g, G_DONE);
    grant_free(g);
    f.ops->end(f.self);
}

static void front_fail(void *self, unsigned status, const char *code, const char *id UNUSED)
{
    struct grant *g = self;
    if (g->relay.tunnel && tunnel_down_closed(g->relay.tunnel)) {
        front_end(g); /* both had said goodbye: how the connection goes then is no matter */
        return;
    }
    end_record(g, RECORD_ABORTED, code);
    tell_fail(g, status, code);
}

static size_t front_room(void *self)
{
    struct grant *g = self;
    if (g->relay.tunnel)
        return tunnel_down_room(g->relay.tunnel);
    size_t room = g->relay.front.ops->room(g->relay.front.self);
    size_t held = g->scrub ? scrub_held(g->scrub) : 0;
    return room > held ? room - held : 0;
}

static const struct front_ops front_ops = {
    .reply = front_reply,
    .data = front_data,
    .trailers = front_trailers,
    .end = front_end,
    .fail = front_fail,
    .room = front_room,
    .wanted = relay_wanted,
};

/* ---- as the back of the hop ---- */

static void back_cancel(void *self, const char *code)
{
    struct grant *g = self;
    tunnel_cancelled(g->relay.tunnel, code);
    end_record(g, RECORD_ABORTED, code);
    if (g->relay.back.ops)
        g->relay.back.ops->cancel(g->relay.back.self, code);
    set_state(g, G_DONE);
    grant_free(g);
}

static const struct back_ops back_ops = {
    .data = relay_up_bytes,
    .end = relay_up_end,
    .room = relay_up_room,
    .resume = relay_resume,
    .cancel = back_cancel,
};

struct back grant_back(struct grant *g)
{
    return (struct back){&back_ops, g};
}
