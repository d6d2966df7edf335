/* The second resource that a request names: COPY and MOVE write where their Destination says (RFC
 * 4918, 10.3), so that place is judged as a PUT there would be, conditions and all, and by a rule
 * with the same credential. Who asks for neither names no second place. */
#include "guard_internal.h"

#include <stdio.h>
#include <string.h>

struct place {
    struct authority at; /* the request's own, or the URI's */
    struct slice path, query;
    bool has_query;
};

/* An absolute path, or a URI with an authority. */
static int read_place(struct slice v, const struct authority *own, struct place *ret)
{
    static const struct slice any = {"/", 1};
    static const enum scheme schemes[] = {SCHEME_HTTP, SCHEME_HTTPS};
    *ret = (struct place){.at = *own, .path = v};
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        char prefix[16];
        size_t n = (size_t)snprintf(prefix, sizeof prefix, "%s://", scheme_name(schemes[i]));
        if (!slice_istarts(v, slice_str(prefix)))
            continue;
        struct slice rest = {v.p + n, v.n - n};
        ssize_t slash = slice_find(rest, '/');
        struct slice name = {rest.p, slash < 0 ? rest.n : (size_t)slash};
        ret->path = slash < 0 ? any : (struct slice){rest.p + slash, rest.n - (size_t)slash};
        if (authority_parse(&ret->at, schemes[i], name) < 0)
            return -1;
    }
    ssize_t mark = slice_find(ret->path, '?');
    ret->has_query = mark >= 0;
    if (mark >= 0) {
        ret->query = (struct slice){ret->path.p + mark + 1, ret->path.n - (size_t)mark - 1};
        ret->path.n = (size_t)mark;
    }
    return ret->path.n > 0 && ret->path.p[0] == '/' ? 0 : -1;
}

static bool same_credential(const struct rule *a, const struct rule *b)
{
    if (a->credential == NULL || b->credential == NULL)
        return a->credential == b->credential;
    return strcmp(a->credential->secret, b->credential->secret) == 0;
}

bool guard_destination(const struct policy *p, const struct authority *a, const struct head *h,
                       const struct rule *rule)
{
    static const struct slice put = {"PUT", 3};
    size_t n = http_head_count(h, "destination");
    struct place to;
    struct guard_answer unused = {.where = ""};
    const char *why;
    struct decision d;
    if (n == 0 || (!slice_eq_str(h->method, "COPY") && !slice_eq_str(h->method, "MOVE")))
        return true;
    if (n > 1 || read_place(http_head_find(h, "destination")->value, a, &to) < 0 ||
        !authority_eq(&to.at, a) || path_check(to.path, &why) < 0)
        return false;
    struct policy_request q = {&to.at, put, to.path};
    policy_decide(p, &q, &d);
    if (d.verdict == VERDICT_DENY || !same_credential(d.rule, rule) || d.rule->tunnel)
        return false;
    bool plain = d.verdict == VERDICT_ALLOW && d.rule->inspection == NULL;
    return (plain || d.rule == rule) &&
           guard_conditions(h, d.rule, to.query, to.has_query, &unused) == NULL;
}
