/* Slots that are no header field of their own: a query parameter, a cookie, the client's
 * placeholder where it wrote it, a signature. */
#include "guard_placeholder_internal.h"

#include "aws.h"
#include "policy.h"

#include <stdio.h>
#include <string.h>

/* What is to be done with one thing that stands in the slot. NULL: take it out. */
static const char *judge(const struct gate *g, const struct identity *who, const struct rule *rule,
                         struct slice value, bool *keep)
{
    struct hit s = {.gate = g, .who = who};
    *keep = false;
    if (guard_is_own(g, who, rule->credential->secret, value))
        return NULL;
    guard_scan(&s, value);
    if (s.found)
        return s.stranger ? "cross_sandbox" : "secret_blocked";
    *keep = rule->client_credential == CLIENT_PASS;
    return rule->client_credential == CLIENT_REFUSE ? "foreign_credential" : NULL;
}

/* All parts of a list but the slot's, into `rest`. NULL or a code. */
static const char *take_parts(const struct gate *g, const struct identity *who,
                              const struct rule *rule, struct slice all, bool cookie,
                              struct buf *rest, bool *inject)
{
    struct guard_part part;
    unsigned seen = 0;
    while (guard_next_part(&all, cookie, &part)) {
        bool is_slot = cookie ? slice_ieq_str(slice_trim(part.name), rule->credential->name)
                              : guard_parameter_is(part.name, rule->credential->name);
        bool keep = true;
        const char *bad = is_slot ? judge(g, who, rule, part.value, &keep) : NULL;
        if (bad)
            return bad;
        if (is_slot && ++seen > 1) /* the origin may read either */
            return "foreign_credential";
        if (is_slot && keep)
            *inject = false;
        if (!keep)
            continue;
        const char *between = cookie ? "; " : "&";
        if ((buf_len(rest) > 0 && buf_append_str(rest, between) < 0) ||
            buf_append_slice(rest, part.whole) < 0)
            return "too_many_headers";
    }
    return NULL;
}

static const char *place_query(const struct gate *g, const struct identity *who, struct head *h,
                               const struct rule *rule, bool *inject)
{
    struct buf rest;
    if (!h->has_query)
        return NULL;
    buf_init(&rest, h->query.n + 1);
    const char *bad = take_parts(g, who, rule, h->query, false, &rest, inject);
    if (bad == NULL && buf_len(&rest) < h->query.n &&
        http_head_set_query(h, buf_slice(&rest), buf_len(&rest) > 0) < 0)
        bad = "too_many_headers";
    buf_free(&rest);
    return bad;
}

static const char *place_cookie(const struct gate *g, const struct identity *who, struct head *h,
                                const struct rule *rule, bool *inject)
{
    struct buf all, rest;
    const char *bad = NULL;
    if (http_head_count(h, "cookie") == 0)
        return NULL;
    buf_init(&all, 64 * 1024);
    buf_init(&rest, 64 * 1024);
    for (size_t i = 0; i < h->n && bad == NULL; i++)
        if (slice_eq_str(h->fields[i].name, "cookie") &&
            ((buf_len(&all) > 0 && buf_append_str(&all, "; ") < 0) ||
             buf_append_slice(&all, h->fields[i].value) < 0))
            bad = "too_many_headers";
    if (bad == NULL)
        bad = take_parts(g, who, rule, buf_slice(&all), true, &rest, inject);
    http_head_remove(h, "cookie");
    if (bad == NULL && buf_len(&rest) > 0 && http_head_add(h, "cookie", buf_slice(&rest)) < 0)
        bad = "too_many_headers";
    buf_free(&all);
    buf_free(&rest);
    return bad;
}

/* Only the parameter of that name may hold it, and it must. */
static const char *scan_query(struct hit *all, const struct head *h, const struct credential *c)
{
    struct slice q = h->query;
    struct guard_part part;
    unsigned before = all->own;
    struct hit named = {.gate = all->gate, .who = all->who, .allowed_secret = c->secret};
    while (guard_next_part(&q, false, &part)) {
        unsigned had = named.own;
        if (!guard_parameter_is(part.name, c->name))
            continue;
        guard_scan(&named, part.value);
        if (named.own == had && !named.stranger && !named.misplaced)
            return "foreign_credential";
    }
    guard_scan(all, h->query);
    return all->own - before == named.own ? NULL : "secret_blocked";
}

/* The placeholder itself stays: the injector puts the secret in its place. */
static const char *place_mark(const struct gate *g, const struct identity *who,
                              const struct head *h, const struct credential *c,
                              struct guard_answer *ret)
{
    struct hit s = {.gate = g, .who = who, .allowed_secret = c->secret};
    const char *bad = NULL;
    if (c->places & PLACE_PATH)
        guard_scan(&s, h->path);
    if (s.stranger || s.misplaced)
        guard_where(ret, "path", SLICE(""));
    if (c->places & PLACE_QUERY)
        bad = scan_query(&s, h, c);
    if (bad || s.stranger || s.misplaced)
        guard_where(ret, "query parameter", slice_str(c->name));
    for (size_t i = 0; i < h->n && bad == NULL; i++) {
        unsigned had = s.own;
        if (!(c->places & PLACE_HEADER) || !slice_eq_str(h->fields[i].name, c->header))
            continue;
        guard_scan(&s, h->fields[i].value);
        if (s.own == had && !s.stranger && !s.misplaced)
            bad = "foreign_credential";
        if (bad || s.stranger || s.misplaced)
            guard_where(ret, "header", h->fields[i].name);
    }
    if (s.stranger)
        return "cross_sandbox";
    if (bad || s.misplaced)
        return bad ? bad : "secret_blocked";
    bool more = (c->places & PLACE_BODY) && h->body != BODY_NONE; /* the injector counts there */
    if (c->captured && s.own == 0 && !more && !c->beside[0]) {
        ret->inject = false;
        return NULL;
    }
    return s.own == c->count || (more && s.own < c->count) ? NULL : "placeholder_count";
}

/* The field stays: the injector reads from it what was signed, and writes it anew. */
static const char *place_aws(const struct gate *g, const struct identity *who, struct head *h,
                             const struct credential *c)
{
    struct aws_claim claim;
    const char *bad = aws_lift(h);
    if (bad == NULL)
        bad = aws_claim(h, c, &claim);
    if (bad)
        return strcmp(bad, "signature") == 0 ? "foreign_credential" : bad;
    if (http_head_find(h, "authorization") && !guard_is_own(g, who, c->secret, claim.key_id)) {
        struct hit s = {.gate = g, .who = who};
        guard_scan(&s, claim.key_id);
        return !s.found ? "foreign_credential" : s.stranger ? "cross_sandbox" : "secret_blocked";
    }
    const struct field *token = http_head_find(h, "x-amz-security-token");
    if (token && guard_is_own(g, who, c->secret, token->value))
        http_head_remove(h, "x-amz-security-token");
    return NULL;
}

const char *guard_place(const struct gate *g, const struct identity *who, struct head *h,
                        const struct rule *rule, struct guard_answer *ret)
{
    const struct credential *c = rule->credential;
    ret->inject = true;
    switch (c->kind) {
    case CREDENTIAL_QUERY:
        guard_where(ret, "query parameter", slice_str(c->name));
        return place_query(g, who, h, rule, &ret->inject);
    case CREDENTIAL_COOKIE:
        guard_where(ret, "cookie", slice_str(c->name));
        return place_cookie(g, who, h, rule, &ret->inject);
    case CREDENTIAL_PLACEHOLDER:
        return place_mark(g, who, h, c, ret);
    case CREDENTIAL_CERTIFICATE: /* nothing of it is in the request */
        return NULL;
    case CREDENTIAL_AWS:
        guard_where(ret, "header", SLICE("authorization"));
        return place_aws(g, who, h, c);
    default:
        return "secret_blocked";
    }
}

static void put_marks(const struct gate *g, const struct identity *who, const struct rule *rule,
                      struct injector_channel_marks *ret)
{
    ret->n = 0;
    if (rule->credential == NULL || rule->credential->kind != CREDENTIAL_PLACEHOLDER)
        return;
    const char *secret = rule->credential->secret;
    for (size_t i = 0; i < g->n_placeholders && ret->n < INJECTOR_CHANNEL_MARKS_MAX; i++)
        if (strcmp(g->placeholders[i].secret, secret) == 0)
            snprintf(ret->text[ret->n++], PLACEHOLDER_MAX, "%s", g->placeholders[i].text);
    for (size_t i = 0; who->has_seed && i < GUARD_KINDS && ret->n < INJECTOR_CHANNEL_MARKS_MAX; i++)
        if (placeholder_make(g->tag, who->seed, secret, guard_kinds[i], ret->text[ret->n]) == 0)
            ret->n++;
}

int guard_placeholder_of(const struct gate *g, const struct identity *who, const char *secret,
                         char to[PLACEHOLDER_MAX])
{
    size_t i = 0;
    while (i < g->n_placeholders && strcmp(g->placeholders[i].secret, secret) != 0)
        i++;
    if (i == g->n_placeholders)
        return who->has_seed ? placeholder_make(g->tag, who->seed, secret, guard_kinds[0], to) : -1;
    snprintf(to, PLACEHOLDER_MAX, "%s", g->placeholders[i].text);
    return 0;
}

void guard_marks(const struct gate *g, const struct identity *who, const struct rule *rule,
                 bool inject, struct injector_channel_marks *marks,
                 struct injector_channel_blanks *ret)
{
    marks->n = 0;
    if (inject)
        put_marks(g, who, rule, marks);
    for (ret->n = 0; ret->n < rule->n_captures; ret->n++) {
        const char *secret = rule->captures[ret->n].secret;
        if (guard_placeholder_of(g, who, secret, ret->text[ret->n]) < 0)
            return;
    }
}
