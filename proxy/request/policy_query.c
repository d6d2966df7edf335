/* Puts a URL, a method and headers to a policy, and says the answer as text and JSON, for `durward
 * test`, `durward explain` and the API. */
#include "policy_query.h"

#include "admission.h"
#include "arena.h"
#include "cloud_identity.h"
#include "kube_rule.h"
#include "new_secret.h"
#include "policy_query_broker.h"
#include "target.h"

#include <stdio.h>
#include <string.h>

enum { TARGET_MAX = 65536 }; /* beyond any limit of a gate's */

int policy_query_url(const char *url, struct policy_query *q, struct err *err)
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

int policy_query_read(const char *url, struct policy_query *q, struct err *err)
{
    int broker = policy_query_broker_url(url, q, err);
    if (broker != 0)
        return broker < 0 ? -1 : policy_query_broker_check(q, err);
    return q->text.n > 0
               ? err_set(err, ERR_PARSE, "nothing stands behind a URL of HTTP: %.*s", SL(q->text))
               : policy_query_url(url, q, err);
}

static const char *reason(const struct guard_answer *a)
{
    static const struct {
        const char *code;
        unsigned status; /* 0: any */
        const char *why;
    } reasons[] = {
        {"no_rule", 0, "no rule names this destination; what is not allowed is denied"},
        {"denied_by_rule", 0, "a deny rule matches, and deny goes before ask and allow"},
        {"method", 405, "this method is never carried"},
        {"method", 0, "rules name this destination, but not with this method"},
        {"respelled", 0,
         "written in another way this path is that of a rule that asks for more; write it "
         "as that rule does"},
        {"query", 0, "the rule allows other parameters or values in the query"},
        {"method_override", 0,
         "rules decide by the method here, and the query asks for another one"},
        {"header", 0, "the rule wants a header that is not there, or has another value"},
        {"destination", 0, "the rules do not let it write at its Destination or read its source"},
        {"secret_needs_tls", 0, "the rule's credential is not sent in clear text"},
        {"foreign_credential", 0, "it carries a credential that is not the rule's"},
        {"bad_target", 0, "a URL holds no such bytes"},
        {"signed_target", 0, "a signature covers the URL, and bytes of it have to be escaped"},
        {"kubernetes", 0, "no entry of its `kubernetes` has what the cluster is asked"},
        {"identity", 0,
         "the sandbox's gate answers it itself, as far as the policy's identity says"},
    };
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (strcmp(reasons[i].code, a->code) == 0 &&
            (reasons[i].status == 0 || reasons[i].status == a->status))
            return reasons[i].why;
    return a->code;
}

/* As the gate's parser makes it of what a client sends; names are the arena's. -1: it refuses. */
static int make_head(const struct policy_query *q, struct arena *names, struct head *h,
                     struct guard_answer *ret)
{
    struct refusal why;
    http_head_init(h);
    h->method = q->method;
    h->form = TARGET_ORIGIN;
    h->path = q->path;
    h->query = q->query;
    h->has_query = q->has_query;
    for (size_t i = 0; i < q->n_headers; i++) {
        char *name = arena_str(names, q->header[i].name);
        for (char *p = name; *p; p++)
            *p = ascii_lower(*p);
        h->fields[h->n++] = (struct field){slice_str(name), slice_str(q->header[i].value)};
    }
    if (target_spell(h, TARGET_MAX, &why) == 0)
        return 0;
    ret->status = why.status;
    ret->code = why.code;
    return -1;
}

void policy_query_decide(const struct policy *p, const struct policy_query *q, struct answer *ret)
{
    const struct admission_request ask = {
        .policy = p, .authority = &q->authority, .as_tunnel = true};
    if (!scheme_is_http(q->authority.scheme)) {
        policy_query_broker_decide(p, q, ret);
        return;
    }
    struct arena *names = arena_new();
    struct admission a = {.answer.where = ""};
    struct head h;
    if (make_head(q, names, &h, &a.answer) < 0 || admission_check(&ask, &h, &a) < 0) {
        bool served = strcmp(a.answer.code, "no_rule") == 0 &&
                      cloud_identity_at(policy_identity(p), &q->authority);
        if (served)
            a.answer.code = "identity";
        *ret = (struct answer){served ? VERDICT_ALLOW : VERDICT_DENY, a.answer.code,
                               reason(&a.answer), a.decision.rule};
        if (strcmp(ret->code, "path_ambiguous") == 0)
            (void)(path_check_asked(h.path, &ret->why) < 0 || path_check(h.path, &ret->why) < 0);
    } else {
        bool asks = a.decision.verdict == VERDICT_ASK;
        *ret = (struct answer){a.decision.verdict, a.decision.code,
                               asks ? "an ask rule matches, and ask goes before allow"
                                    : "the narrowest matching rule allows it",
                               a.decision.rule};
    }
    http_head_free(&h);
    arena_free(names);
}

const char *policy_query_verdict(enum verdict v)
{
    return v == VERDICT_ALLOW ? "allow" : v == VERDICT_ASK ? "ask" : "deny";
}

const char *policy_query_uncaptured(const struct answer *w, const struct policy_query *q)
{
    const struct rule *rule = w->verdict == VERDICT_DENY ? NULL : w->rule;
    if (rule == NULL || rule->tunnel || rule->n_captures > 0 ||
        !scheme_is_http(q->authority.scheme))
        return NULL;
    return new_secret_in(q->method, slice_str(q->authority.host), q->path);
}

const char *policy_query_kubernetes(const struct answer *w, const struct policy_query *q, char *to,
                                    size_t size)
{
    const struct kube_terms *t = w->rule ? w->rule->kubernetes : NULL;
    struct kube_facts f;
    struct buf b;
    if (t == NULL)
        return NULL;
    if (kube_read(q->method, q->path, q->query, &f) < 0)
        return "not read with certainty";
    buf_init(&b, size - 1);
    int by = kube_decide(t, &f);
    bool whole =
        kube_text(&f, &b) == 0 && (f.is_resource || buf_append_str(&b, "no resource") == 0);
    if (whole && by > 0)
        whole = buf_printf(&b, " (entry %d)", by) == 0;
    else if (whole && by == KUBE_DISCOVERY)
        whole = buf_append_str(&b, " (discovery)") == 0;
    snprintf(to, size, "%.*s", SL(buf_slice(&b)));
    buf_free(&b);
    return whole ? to : "more than can be shown";
}

static json_t *captures(const struct rule *rule)
{
    json_t *all = json_object();
    for (size_t i = 0; rule && i < rule->n_captures; i++)
        json_object_set_new(all, rule->captures[i].path, json_string(rule->captures[i].secret));
    return all;
}

/* What else has to be right: asked of the body, or counted; and what may pass beyond it. */
static void put_more(json_t *v, const struct rule *r, const struct budget *whole, const char *names,
                     bool http)
{
    char text[600];
    if (r->inspection)
        json_object_set_new(v, "body",
                            json_string(inspection_text(r->inspection, text, sizeof text)));
    if (r->outward)
        json_object_set_new(v, "patterns", json_string(rule_outward_text(r, text, sizeof text)));
    if (r->websocket)
        json_object_set_new(v, "websocket", json_true());
    if (names)
        json_object_set_new(v, "searched_for", json_string(names));
    if (http && (names || r->credential) && !r->tunnel)
        json_object_set_new(v, "ranges", json_boolean(r->ranges));
    if (r->budget)
        json_object_set_new(v, "budget", json_string(budget_text(r->budget, text, sizeof text)));
    if (whole)
        json_object_set_new(v, "policy_budget", json_string(budget_text(whole, text, sizeof text)));
}

json_t *policy_query_json(const struct policy *p, const struct policy_query *q,
                          const struct answer *w, const char *policy)
{
    char at[300], kind[300], searched[600];
    const struct credential *c = w->rule ? w->rule->credential : NULL;
    authority_text(&q->authority, at, sizeof at);
    json_t *v =
        json_pack("{s:s, s:s, s:s, s:s?, s:s?, s:s?, s:o, s:s, s:s}", "decision",
                  policy_query_verdict(w->verdict), "code", w->code, "policy", policy, "rule",
                  w->rule ? w->rule->text : NULL, "credential", c ? c->secret : NULL, "as",
                  c ? credential_text(c, kind, sizeof kind) : NULL, "captures", captures(w->rule),
                  "authority", at, "why", w->why);
    if (v && w->verdict != VERDICT_DENY && w->rule)
        put_more(v, w->rule, policy_budget(p),
                 policy_taint_text(p, &q->authority, searched, sizeof searched),
                 scheme_is_http(q->authority.scheme));
    const char *asked = policy_query_kubernetes(w, q, searched, sizeof searched);
    if (v && asked)
        json_object_set_new(v, "kubernetes", json_string(asked));
    if (v && policy_query_uncaptured(w, q))
        json_object_set_new(v, "uncaptured", json_string(policy_query_uncaptured(w, q)));
    return v;
}
