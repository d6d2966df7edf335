/* A request from outside to a service of the sandbox: who may see it is shown by a token in a
 * field, or by a cookie that was given for a link's token. The cookie is no use to a page of
 * anywhere else: what a browser says was not asked for by this preview itself is refused, but for
 * somebody who goes there. What lets in never reaches the service. */
#include "exchange_internal.h"

#include "guard.h"
#include "inbound.h"
#include "metadata.h"
#include "policy.h"
#include "preview_sessions.h"
#include "refusal_counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COOKIE_BYTES = 16 * 1024, LOCATION_BYTES = 16 * 1024 };

static const struct rule by_service = {.text = "service"};

const char *inbound_cookie(const struct inbound *in)
{
    return in->at.scheme == SCHEME_HTTPS ? "__Host-durward-preview" : "durward-preview";
}

struct dial_client *exchange_inbound_dial(struct exchange *x, struct authority *a)
{
    bool usual = a->port == scheme_port(a->scheme);
    a->scheme = SCHEME_HTTP; /* the connection inside */
    if (usual)
        a->port = scheme_port(SCHEME_HTTP);
    return x->gate->inside;
}

void exchange_inbound_count(struct gate *g, const struct inbound *in, const char *code)
{
    char at[HOST_TEXT_MAX + 16], target[sizeof at + 1];
    const char *sandbox = strstr(authority_text(&in->at, at, sizeof at), "--");
    snprintf(target, sizeof target, "*%s", sandbox ? sandbox : "");
    refusal_counters_add(g->outside, RECORD_DENIED, code, target, 1);
}

void exchange_inbound_refuse(struct exchange *x, const struct inbound *in, unsigned status,
                             const char *code)
{
    x->inbound = in;
    x->entry = "inbound";
    x->authority = in->at;
    exchange_deny(x, status, code);
}

/* ---- what lets in ---- */

/* The next of what `mark` separates. */
static bool next_part(struct slice *all, char mark, struct slice *part)
{
    if (all->n == 0)
        return false;
    ssize_t end = slice_find(*all, mark);
    size_t n = end < 0 ? all->n : (size_t)end;
    *part = (struct slice){all->p, n};
    n += end >= 0;
    *all = (struct slice){all->p + n, all->n - n};
    return true;
}

static bool named(struct slice part, const char *name, struct slice *value)
{
    ssize_t eq = slice_find(part, '=');
    if (eq < 0 || !slice_eq_str((struct slice){part.p, (size_t)eq}, name))
        return false;
    *value = (struct slice){part.p + eq + 1, part.n - (size_t)eq - 1};
    return true;
}

/* Our own go, the others stay. Another preview can set one of our name for all of the domain, so
 * that there are two: one that is good is enough. -1: there is no room. */
static int take_cookies(struct exchange *x, bool *good)
{
    const char *own = inbound_cookie(x->inbound);
    struct slice all, part, value;
    struct buf others;
    int r = 0;
    *good = false;
    buf_init(&others, COOKIE_BYTES);
    for (size_t i = 0; i < x->head.n && r == 0; i++) {
        if (!slice_eq_str(x->head.fields[i].name, "cookie"))
            continue;
        all = x->head.fields[i].value;
        while (r == 0 && next_part(&all, ';', &part)) {
            part = slice_trim(part);
            if (named(part, own, &value))
                *good |= preview_sessions_know(x->gate->previews, x->inbound->service, true, value);
            else if (part.n)
                r = (buf_len(&others) && buf_append_str(&others, "; ") < 0) ||
                            buf_append_slice(&others, part) < 0
                        ? -1
                        : 0;
        }
    }
    http_head_remove(&x->head, "cookie");
    if (r == 0 && buf_len(&others))
        r = http_head_add(&x->head, "cookie", buf_slice(&others));
    buf_free(&others);
    return r;
}

/* The link's parameter goes; the rest of the query stays. 1: there was one; -1: there were more, or
 * there is no room. */
static int take_parameter(struct exchange *x, char token[PREVIEW_TEXT_MAX])
{
    struct slice all = x->head.query, part, value;
    struct buf rest;
    int n = 0, bad = 0;
    buf_init(&rest, LOCATION_BYTES);
    while (x->head.has_query && !bad && next_part(&all, '&', &part)) {
        if (!named(part, INBOUND_PARAMETER, &value)) {
            bad = (buf_len(&rest) && buf_append_str(&rest, "&") < 0) ||
                  buf_append_slice(&rest, part) < 0;
            continue;
        }
        bad = ++n > 1 || value.n >= PREVIEW_TEXT_MAX;
        if (!bad)
            snprintf(token, PREVIEW_TEXT_MAX, "%.*s", SL(value));
    }
    if (!bad && n)
        bad = http_head_set_query(&x->head, buf_slice(&rest), buf_len(&rest) > 0) < 0;
    buf_free(&rest);
    return bad ? -1 : n;
}

static bool says(const struct exchange *x, const char *name, const char *value)
{
    const struct field *f = http_head_find(&x->head, name);
    return f && slice_eq_str(f->value, value);
}

static bool is_own_origin(const struct inbound *in, struct slice origin)
{
    char at[HOST_TEXT_MAX + 16], own[HOST_TEXT_MAX + 32];
    snprintf(own, sizeof own, "%s://%s", scheme_name(in->at.scheme),
             authority_text(&in->at, at, sizeof at));
    return slice_eq_str(origin, own);
}

/* Browsers send the cookie along with what pages of other sites ask for, and previews of one domain
 * are one site to them. They also say who had them ask. */
static bool is_asked_elsewhere(const struct exchange *x)
{
    const struct field *origin = http_head_find(&x->head, "origin");
    bool reads = slice_eq_str(x->head.method, "GET") || slice_eq_str(x->head.method, "HEAD");
    if (http_head_count(&x->head, "origin") > 1 || http_head_count(&x->head, "sec-fetch-site") > 1)
        return true;
    if (origin && !is_own_origin(x->inbound, origin->value))
        return true;
    if (http_head_find(&x->head, "sec-fetch-site") == NULL ||
        says(x, "sec-fetch-site", "same-origin") || says(x, "sec-fetch-site", "none"))
        return false;
    return !reads || !says(x, "sec-fetch-mode", "navigate") ||
           !says(x, "sec-fetch-dest", "document");
}

/* ---- answers of its own ---- */

static int write_cookie(const struct exchange *x, unsigned seconds, struct prepared *p)
{
    char cookie[PREVIEW_TEXT_MAX], text[256];
    const struct inbound *in = x->inbound;
    if (preview_sessions_begin(x->gate->previews, in->service, seconds, cookie) < 0)
        return -1;
    snprintf(text, sizeof text, "%s=%s; Path=/; HttpOnly; SameSite=Lax%s", inbound_cookie(in),
             cookie, in->at.scheme == SCHEME_HTTPS ? "; Secure" : "");
    p->cookie = strdup(text);
    return p->cookie ? 0 : -1;
}

/* To the same address without the token, with a cookie for so many seconds, if any. */
static int write_redirect(struct exchange *x, unsigned seconds, struct prepared *p)
{
    const struct inbound *in = x->inbound;
    char at[HOST_TEXT_MAX + 16];
    struct buf to;
    if (seconds && write_cookie(x, seconds, p) < 0)
        return -1;
    buf_init(&to, LOCATION_BYTES + HOST_TEXT_MAX);
    int r = buf_printf(&to, "%s://%s%.*s%s%.*s", scheme_name(in->at.scheme),
                       authority_text(&in->at, at, sizeof at), SL(x->head.path),
                       x->head.has_query ? "?" : "", SL(x->head.query));
    if (r >= 0)
        p->location = slice_dup(buf_slice(&to));
    buf_free(&to);
    p->status = 303;
    p->type = "text/plain";
    p->fields[p->n_fields++] = (struct prepared_field){"referrer-policy", "no-referrer"};
    return p->location ? 0 : -1;
}

static void answer_link(struct exchange *x, unsigned seconds)
{
    x->answer = malloc(sizeof *x->answer);
    if (x->answer == NULL) {
        exchange_deny(x, 503, "memory");
        return;
    }
    prepared_init(x->answer, METADATA_BODY_MAX);
    if (write_redirect(x, seconds, x->answer) < 0)
        exchange_deny(x, 503, "memory");
    else
        exchange_open_plain(x);
}

/* ---- on its way ---- */

static void go(struct exchange *x)
{
    char at[HOST_TEXT_MAX + 16];
    struct head *h = &x->head;
    const struct authority *a = &x->inbound->at;
    if (guard_fields(h, &by_service, false) < 0 ||
        http_head_set(h, "x-forwarded-host", slice_str(authority_text(a, at, sizeof at))) < 0 ||
        http_head_set(h, "x-forwarded-proto", slice_str(scheme_name(a->scheme))) < 0) {
        exchange_deny(x, 431, "too_many_headers");
        return;
    }
    x->relay.upgrade = h->upgrade != UPGRADE_NONE;
    preview_sessions_used(x->gate->previews);
    exchange_open_plain(x);
}

static void on_asked(void *arg, unsigned seconds)
{
    struct exchange *x = arg;
    x->asked = NULL;
    if (seconds == 0)
        exchange_deny(x, 401, "preview_login");
    else if (x->is_link)
        answer_link(x, seconds);
    else
        go(x);
}

static void ask(struct exchange *x, struct slice token)
{
    if (token.n == 0 || token.n >= PREVIEW_TEXT_MAX) {
        exchange_deny(x, 401, "preview_login");
        return;
    }
    x->asked =
        preview_ask_new(x->gate->previews, x->inbound->service, x->is_link, token, on_asked, x);
    if (x->asked == NULL)
        exchange_deny(x, 503, "preview_busy");
    else
        exchange_set_state(x, EXCHANGE_INBOUND);
}

static void by_field(struct exchange *x)
{
    struct slice token = http_head_find(&x->head, INBOUND_FIELD)->value;
    bool one = http_head_count(&x->head, INBOUND_FIELD) == 1;
    char copy[PREVIEW_TEXT_MAX] = "";
    if (one && token.n < sizeof copy)
        snprintf(copy, sizeof copy, "%.*s", SL(token));
    http_head_remove(&x->head, INBOUND_FIELD);
    token = slice_str(copy);
    if (token.n && preview_sessions_know(x->gate->previews, x->inbound->service, false, token))
        go(x);
    else
        ask(x, token);
}

/* A browser that only fetches ahead does not use it up: see the caller. */
static void by_link(struct exchange *x, const char *token)
{
    x->is_link = true;
    ask(x, slice_str(token));
}

static void by_cookie(struct exchange *x, bool good)
{
    if (!good)
        exchange_deny(x, 401, "preview_login");
    else if (is_asked_elsewhere(x))
        exchange_deny(x, 403, "preview_cross_site");
    else
        go(x);
}

void exchange_inbound(struct exchange *x, struct head *h, const struct inbound *in)
{
    char token[PREVIEW_TEXT_MAX];
    bool good, plain = slice_eq_str(h->method, "GET") && h->upgrade == UPGRADE_NONE;
    x->inbound = in;
    x->entry = "inbound";
    x->authority = in->at;
    x->policy = policy_ref(x->who.route->policy);
    x->rule = &by_service;
    snprintf(x->rule_text, sizeof x->rule_text, "service %s", in->service);
    http_head_move(&x->head, h);
    int linked = take_parameter(x, token);
    if (guard_method(x->head.method) < 0)
        exchange_deny(x, 405, "method");
    else if (linked < 0)
        exchange_deny(x, 401, "preview_login");
    else if (take_cookies(x, &good) < 0)
        exchange_deny(x, 431, "too_many_headers");
    else if (http_head_find(&x->head, INBOUND_FIELD))
        by_field(x);
    else if (linked && plain && good)
        answer_link(x, 0);
    else if (linked && plain && http_head_find(&x->head, "sec-purpose") == NULL)
        by_link(x, token);
    else
        by_cookie(x, good);
}

/* ---- the reply ---- */

/* For this very name and not one of ours; a name above it would have every preview see it. */
static bool is_own_cookie(const struct inbound *in, struct slice cookie)
{
    struct slice part, value;
    if (!next_part(&cookie, ';', &part) || named(slice_trim(part), inbound_cookie(in), &value))
        return false;
    while (next_part(&cookie, ';', &part)) {
        ssize_t eq = slice_find(part, '=');
        struct slice name = slice_trim((struct slice){part.p, eq < 0 ? part.n : (size_t)eq});
        if (!slice_ieq_str(name, "domain"))
            continue;
        value = eq < 0 ? (struct slice){"", 0}
                       : slice_trim((struct slice){part.p + eq + 1, part.n - (size_t)eq - 1});
        if (value.n && value.p[0] == '.')
            value = (struct slice){value.p + 1, value.n - 1};
        if (value.n && !slice_ieq_str(value, in->at.host))
            return false;
    }
    return true;
}

void exchange_inbound_reply(const struct exchange *x, struct head *reply)
{
    size_t kept = 0;
    http_head_remove(reply, "clear-site-data"); /* of cookies it means the whole domain's */
    for (size_t i = 0; i < reply->n; i++)
        if (!slice_eq_str(reply->fields[i].name, "set-cookie") ||
            is_own_cookie(x->inbound, reply->fields[i].value))
            reply->fields[kept++] = reply->fields[i];
    reply->n = kept;
}
