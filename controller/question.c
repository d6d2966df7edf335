#include "question.h"

#include "condition.h"
#include "guard.h"

#include <string.h>

int question_url(const char *url, struct question *q, struct err *err)
{
    struct slice s = slice_str(url);
    enum scheme scheme = SCHEME_HTTPS;
    if (slice_istarts(s, SLICE("http://")))
        scheme = SCHEME_HTTP;
    ssize_t at = slice_find_slice(s, SLICE("://"));
    if (at >= 0) {
        if (scheme == SCHEME_HTTPS && !slice_istarts(s, SLICE("https://")))
            return err_set(err, ERR_PARSE, "the URL's scheme must be https or http: %s", url);
        s = (struct slice){s.p + at + 3, s.n - (size_t)at - 3};
    }
    size_t host = strcspn(s.p, "/?#");
    if (authority_parse(&q->authority, scheme, (struct slice){s.p, host}) < 0)
        return err_set(err, ERR_PARSE, "not a canonical host[:port]: %.*s", (int)host, s.p);
    size_t path = strcspn(s.p + host, "?#");
    q->path = path ? (struct slice){s.p + host, path} : SLICE("/");
    const char *rest = s.p + host + path;
    q->has_query = *rest == '?';
    q->query = q->has_query ? (struct slice){rest + 1, strcspn(rest + 1, "#")} : SLICE("");
    return 0;
}

static const char *reason(const char *code)
{
    static const struct {
        const char *code, *why;
    } reasons[] = {
        {"ok", "the narrowest matching rule allows it"},
        {"ask", "an ask rule matches, and ask goes before allow"},
        {"no_rule", "no rule names this destination; what is not allowed is denied"},
        {"denied_by_rule", "a deny rule matches, and deny goes before ask and allow"},
        {"method", "rules name this destination, but not with this method"},
        {"query", "the rule allows other parameters or values in the query"},
        {"method_override", "the rule names methods, and the query asks for another one"},
        {"header", "the rule wants a header that is not there, or has another value"},
    };
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (strcmp(reasons[i].code, code) == 0)
            return reasons[i].why;
    return code;
}

static size_t find_header(const void *arg, const char *name, struct slice *value)
{
    const struct question *q = arg;
    size_t n = 0;
    for (size_t i = 0; i < q->n_headers; i++)
        if (slice_ieq_str(slice_str(q->header[i].name), name)) {
            *value = slice_str(q->header[i].value);
            n++;
        }
    return n;
}

void question_decide(const struct policy *p, const struct question *q, struct answer *ret)
{
    const char *why = NULL;
    if (path_check(q->path, &why) < 0) {
        *ret = (struct answer){VERDICT_DENY, "path_ambiguous", why, NULL};
        return;
    }
    struct policy_request r = {&q->authority, q->method, q->path};
    struct decision d;
    policy_decide(p, &r, &d);
    bool passes = d.verdict != VERDICT_DENY;
    const char *code = passes ? condition_query(d.rule, q->query, q->has_query) : NULL;
    if (passes && code == NULL)
        code = condition_headers(d.rule, find_header, q);
    if (passes && code == NULL && d.rule->method_scoped && guard_query_override(q->query))
        code = "method_override";
    if (code)
        d = (struct decision){VERDICT_DENY, d.rule, code};
    *ret = (struct answer){d.verdict, d.code, reason(d.verdict == VERDICT_ASK ? "ask" : d.code),
                           d.rule};
}

const char *question_verdict(enum verdict v)
{
    return v == VERDICT_ALLOW ? "allow" : v == VERDICT_ASK ? "ask" : "deny";
}
