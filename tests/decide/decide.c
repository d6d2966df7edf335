/* What the C decides, for the model of tests/decide: policies and requests from stdin, one a line,
 * fields between tabs; an answer a line to stdout.
 *
 *   P JSON                                       "loaded", or "refused" and why
 *   R SCHEME AUTHORITY METHOD PATH QUERY FIELDS TYPE BODY
 *
 * QUERY begins with "?" where there is one; FIELDS is "name:value" with blanks between; TYPE and
 * BODY are empty where there is none. The answer to a request: what policy_decide says (verdict,
 * code, rule), m or - (the method matters), the secret that policy_injects grants or "-", i or -
 * (an injector serves it), then what policy_query_decide and the inspection of the body make of all
 * of it (verdict, code, rule). Last come the codes of admission, which must be one another's and
 * the model's: a gate's, an injector's that is sent what this gate has made, an injector's that is
 * sent the request as it was, by a gate that lets everything pass, and `explain`'s. */
#include "admission.h"
#include "guard_placeholder.h"
#include "injection.h"
#include "inspect.h"
#include "path.h"
#include "placeholder.h"
#include "policy_query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 9, FIELDS_MAX = 8 };

struct line {
    char *column[COLUMNS];
};

static bool cut(char *text, struct line *l)
{
    size_t n = 0;
    for (char *rest = text; rest && n < COLUMNS; n++)
        l->column[n] = strsep(&rest, "\t");
    return n == COLUMNS;
}

static int number(const struct rule *r)
{
    return r ? (int)r->index : -1;
}

/* "name:value name:value" */
static void cut_fields(char *text, struct policy_query *q)
{
    char *one;
    while ((one = strsep(&text, " ")) != NULL && q->n_headers < FIELDS_MAX) {
        char *value = strchr(one, ':');
        if (value == NULL)
            continue;
        *value = 0;
        q->header[q->n_headers].name = one;
        q->header[q->n_headers++].value = value + 1;
    }
}

/* What the rule that decided asks of the body, whole as it is. */
static const char *inspected(const struct rule *r, const struct policy_query *q,
                             const struct line *l)
{
    struct inspect_result why;
    struct slice body = slice_str(l->column[8]), type = slice_str(l->column[7]);
    struct inspect_request head = {.method = q->method,
                                   .path = q->path,
                                   .query = q->query,
                                   .has_query = q->has_query,
                                   .n_types = type.n > 0,
                                   .type = type,
                                   .has_body = body.n > 0,
                                   .length = body.n};
    if (r->inspection == NULL)
        return NULL;
    enum inspect_answer a = inspect_head(r->inspection, &head, &why);
    if (a == INSPECT_MORE)
        a = inspect_body(r->inspection, &head, body, true, &why);
    return a == INSPECT_PASS ? NULL : a == INSPECT_REFUSED ? why.code : "more";
}

static const char *granted(const struct policy *p, const struct policy_request *r)
{
    static const char *const names[] = {"one", "two"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (policy_injects(p, r, names[i]))
            return names[i];
    return "-";
}

/* ---- admission ---- */

/* As the parser has it. */
static void make_head(const struct policy_query *q, struct head *h)
{
    http_head_init(h);
    h->method = q->method;
    h->form = TARGET_ORIGIN;
    h->path = q->path;
    h->query = q->query;
    h->has_query = q->has_query;
    for (size_t i = 0; i < q->n_headers; i++)
        h->fields[h->n++] =
            (struct field){slice_str(q->header[i].name), slice_str(q->header[i].value)};
}

/* The gate's own part, of a sandbox that has no placeholder and sends none. */
static int check_placeholders(void *self, struct head *h, struct admission *a)
{
    struct identity who = {.route = NULL};
    return guard_credentials(self, &who, h, a->decision.rule, &a->answer);
}

/* The name of the secret that is asked for is the rule's own; it is the injector's to compare. */
static const char *by_injector(const struct policy *p, const struct policy_query *q, struct head *h,
                               const struct rule *rule)
{
    static struct injection_request r;
    static struct injection_decided d;
    struct injector i = {.policy = policy_ref((struct policy *)(uintptr_t)p)};
    struct placement placement = {.credential = NULL};
    struct authority at = q->authority;
    r.authority = q->authority;
    r.sandbox = "box";
    snprintf(r.secret, sizeof r.secret, "%s",
             rule && rule->credential ? rule->credential->secret : "");
    int ok = injection_check(&i, &r, h, &at, &placement, &d);
    placement_free(&placement);
    policy_free(d.policy);
    policy_free(i.policy);
    d.policy = NULL;
    return ok < 0 ? d.answer.code : "ok";
}

static void admitted(const struct policy *p, const struct policy_query *q, const char *explained)
{
    static struct gate gate;
    struct admission found;
    struct head h, raw;
    if (gate.tag == NULL)
        gate.tag = placeholder_key_new((const unsigned char[PLACEHOLDER_TAG_KEY]){1});
    make_head(q, &h);
    make_head(q, &raw);
    const struct admission_request ask = {
        .policy = p, .authority = &q->authority, .own = check_placeholders, .role = &gate};
    bool passes = admission_check(&ask, &h, &found) == 0;
    bool injector = found.by_injector;
    const char *gates = passes ? "ok" : found.answer.code;
    printf(" %s %s", gates, passes && injector ? by_injector(p, q, &h, found.decision.rule) : "-");
    printf(" %s %s\n", by_injector(p, q, &raw, found.decision.rule), explained);
    http_head_free(&h);
    http_head_free(&raw);
}

static void request(const struct policy *p, struct line *l)
{
    struct policy_query q = {.method = slice_str(l->column[3]), .path = slice_str(l->column[4])};
    struct answer said;
    struct decision d;
    enum scheme scheme = strcmp(l->column[1], "http") == 0 ? SCHEME_HTTP : SCHEME_HTTPS;
    if (authority_parse(&q.authority, scheme, slice_str(l->column[2])) < 0) {
        printf("no authority\n");
        return;
    }
    q.has_query = l->column[5][0] == '?';
    q.query = slice_str(l->column[5] + q.has_query);
    cut_fields(l->column[6], &q);
    struct policy_request r = {&q.authority, q.method, q.path};
    policy_decide(p, &r, &d);
    policy_query_decide(p, &q, &said);
    const char *explained = said.code;
    const char *code = said.verdict == VERDICT_DENY ? NULL : inspected(said.rule, &q, l);
    if (code) {
        said.verdict = VERDICT_DENY;
        said.code = code;
    }
    bool injector = d.verdict != VERDICT_DENY && policy_by_injector(p, d.rule, &q.authority);
    printf("%s %s %d %s %s %s %s %s %d", policy_query_verdict(d.verdict), d.code, number(d.rule),
           d.methods_matter ? "m" : "-", granted(p, &r), injector ? "i" : "-",
           policy_query_verdict(said.verdict), said.code, number(said.rule));
    admitted(p, &q, explained);
}

static void release(void *bytes, size_t n)
{
    (void)n;
    free(bytes);
}

/* As roles have it: of its image, which they map. */
static struct policy *opened(struct policy *compiled, struct err *err)
{
    struct slice image = compiled ? policy_image_bytes(compiled) : (struct slice){NULL, 0};
    void *bytes = compiled ? malloc(image.n) : NULL;
    if (bytes == NULL)
        return NULL;
    memcpy(bytes, image.p, image.n);
    policy_free(compiled);
    return policy_open(bytes, image.n, release, err);
}

int main(void)
{
    struct policy *p = NULL;
    struct err err;
    char *text = NULL;
    size_t room = 0;
    ssize_t n;
    while ((n = getline(&text, &room, stdin)) > 0) {
        struct line l;
        text[n - 1] = 0; /* its line ending */
        if (text[0] == 'P') {
            policy_free(p);
            err = (struct err){0};
            p = opened(policy_parse(text + 2, strlen(text + 2), &err), &err);
            printf(p ? "loaded\n" : "refused %s\n", err.text);
        } else if (p && cut(text, &l)) {
            request(p, &l);
        } else {
            printf("no request\n");
        }
    }
    policy_free(p);
    free(text);
    return 0;
}
