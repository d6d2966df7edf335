/* The list of admission: each of its checks with a request that only this one refuses, their order,
 * and that the role's own part is asked at its place. */
#include "admission.h"
#include "http1_head.h"
#include "policy_query.h"
#include "tap_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char rules[] =
    "{'policy':'p','rules':["
    "{'allow':'a.example/**','headers':{'x-tenant':'a'}},"
    "{'deny':'a.example/secret/**'},"
    "{'allow':'read.example/**','access':'read-only'},"
    "{'allow':'tunnel.example','tunnel':true},"
    "{'allow':'keyed.example/**','with':{'bearer':'k'}},"
    "{'allow':'signed.example/**','with':{'hmac':{'key':'k','text':'{method}',"
    "'headers':{'X-Sign':'{signature}'}}}},"
    "{'allow':'http://clear.example/**','with':{'bearer':'k'},'allow_plaintext':true},"
    "{'allow':'edited.example/**','with':{'bearer':'k'},"
    "'set_headers':{'X-Session-Mark':'ghp_0123456789abcdefghijABCDEFGHIJ012345','X-More':'1'}},"
    "{'allow':'ws.example','websocket':true},"
    "{'allow':'graphql.example','graphql':'read-only'},"
    "{'ask':'asked.example'}]}";

enum { R_CLEAR = 6, FIELDS_FULL = HEAD_FIELDS_MAX };

static struct policy *policy;

static int setup(void)
{
    struct err err = {0};
    char *json = strdup(rules);
    for (char *c = json; c && *c; c++)
        if (*c == '\'')
            *c = '"';
    policy = json ? policy_parse(json, strlen(json), &err) : NULL;
    if (policy == NULL)
        printf("# %s\n", err.text);
    free(json);
    return policy ? 0 : -1;
}

static int teardown(void)
{
    policy_free(policy);
    return 0;
}

/* A request that is admitted, but for what a row says. */
struct asked {
    enum scheme scheme;
    const char *host, *method, *target, *fields;
    int (*own)(void *role, struct head *h, struct admission *ret);
    size_t filled; /* so many fields at least */
    bool as_tunnel;
};

static const struct asked usual = {.scheme = SCHEME_HTTPS,
                                   .host = "a.example",
                                   .method = "GET",
                                   .target = "/x",
                                   .fields = "X-Tenant: a\r\n"};

static int check(const struct asked *s, struct head *h, struct admission *ret)
{
    static const struct limits limits = {
        .head_bytes = 65536, .headers = HEAD_FIELDS_MAX, .target_bytes = 8192};
    static unsigned calls;
    char text[4096];
    struct authority at;
    struct refusal why = {0, ""};
    int n = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: x\r\n%s\r\n",
                     *s->target == '*' ? "OPTIONS" : "GET", s->target, s->fields);
    CU_ASSERT_EQUAL_FATAL(authority_parse(&at, s->scheme, slice_str(s->host)), 0);
    int parsed = http1_parse_request(h, (struct slice){text, (size_t)n}, &limits, &why);
    if (parsed < 0)
        printf("# %s %s: %s\n", s->method, s->target, why.code);
    CU_ASSERT_EQUAL_FATAL(parsed, 0);
    h->method = slice_str(s->method); /* the parser knows some itself */
    http_head_remove(h, "host");
    while (h->n < s->filled)
        h->fields[h->n++] = (struct field){SLICE("x-fill"), SLICE("1")};
    const struct admission_request q = {.policy = policy,
                                        .authority = &at,
                                        .as_tunnel = s->as_tunnel,
                                        .own = s->own,
                                        .role = &calls};
    return admission_check(&q, h, ret);
}

static void is(const struct asked *s, unsigned status, const char *code)
{
    struct admission found;
    struct head h;
    int ok = check(s, &h, &found);
    unsigned got = ok < 0 ? found.answer.status : 200;
    const char *word = ok < 0 ? found.answer.code : "ok";
    if (got != status || strcmp(word, code) != 0)
        printf("# %s %s%s: %u %s, not %u %s\n", s->method, s->host, s->target, got, word, status,
               code);
    CU_ASSERT_EQUAL(got, status);
    CU_ASSERT_STRING_EQUAL(word, code);
    http_head_free(&h);
}

/* The usual request but for what is written in the braces. */
#define SAYS(status, code, ...)      \
    do {                             \
        struct asked asked_ = usual; \
        struct asked *s = &asked_;   \
        __VA_ARGS__;                 \
        is(s, status, code);         \
    } while (0)

static int own_refuses(void *role UNUSED, struct head *h UNUSED, struct admission *ret)
{
    ret->answer.code = "own";
    return -1;
}

static int own_says(void *role UNUSED, struct head *h UNUSED, struct admission *ret)
{
    ret->answer.code = "own";
    ret->answer.status = 431;
    return -1;
}

/* The rule's place is the role's to empty. */
static int own_empties(void *role, struct head *h, struct admission *ret)
{
    ++*(unsigned *)role;
    CU_ASSERT_PTR_NOT_NULL(ret->decision.rule);
    http_head_remove(h, "authorization");
    return 0;
}

static void test_each(void)
{
    is(&usual, 200, "ok");
    SAYS(405, "method", s->method = "FOO");
    SAYS(400, "path_ambiguous", s->target = "/x/../y");
    SAYS(400, "path_ambiguous", s->method = "OPTIONS", s->target = "*");
    SAYS(403, "no_rule", s->host = "b.example");
    SAYS(403, "denied_by_rule", s->target = "/secret/x");
    SAYS(200, "ok", s->target = "/x//y");
    SAYS(403, "denied_by_rule", s->target = "/secret//x");
    SAYS(200, "ok", s->host = "graphql.example");
    SAYS(400, "path_ambiguous", s->host = "graphql.example", s->target = "/x//y");
    SAYS(403, "tunnel", s->host = "tunnel.example");
    SAYS(200, "ok", s->host = "tunnel.example", s->as_tunnel = true);
    SAYS(431, "too_many_headers", s->host = "keyed.example", s->filled = FIELDS_FULL);
    SAYS(403, "header", s->fields = "");
    SAYS(403, "destination", s->host = "keyed.example", s->method = "COPY",
         s->fields = "Destination: https://a.example/y\r\n");
    SAYS(403, "method_override", s->host = "read.example", s->target = "/x?_method=PUT");
    SAYS(200, "ok", s->target = "/x?_method=MOVE");
    SAYS(403, "method_override", s->target = "/x?_method=MOVE",
         s->fields = "X-Tenant: a\r\nDestination: /secret/x\r\n");
    SAYS(403, "websocket",
         s->fields = "X-Tenant: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                     "Sec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
    SAYS(403, "own", s->own = own_refuses);
    SAYS(431, "own", s->own = own_says);
    SAYS(403, "foreign_credential", s->host = "keyed.example", s->target = "/x?access_token=1");
    SAYS(431, "too_many_headers", s->host = "edited.example", s->filled = FIELDS_FULL - 1);
    SAYS(200, "ok", s->host = "edited.example", s->filled = FIELDS_FULL - 3);
}

static void test_signed(void)
{
    SAYS(400, "signed_target", s->host = "signed.example", s->target = "/x\"y");
    SAYS(200, "ok", s->host = "signed.example", s->target = "/x");
    SAYS(200, "ok", s->target = "/x\"y");
}

/* No configuration loads that comes to this: what a rule says is changed here. */
static void test_plaintext(void)
{
    struct rule *clear = (struct rule *)(uintptr_t)policy_rule(policy, R_CLEAR);
    SAYS(200, "ok", s->host = "clear.example", s->scheme = SCHEME_HTTP);
    clear->allow_plaintext = false;
    SAYS(403, "secret_needs_tls", s->host = "clear.example", s->scheme = SCHEME_HTTP);
    clear->allow_plaintext = true;
}

/* What is refused for two reasons has the code of the first. */
static void test_order(void)
{
    static const char ws[] = "Connection: Upgrade\r\nUpgrade: websocket\r\n"
                             "Sec-WebSocket-Version: 13\r\n"
                             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    SAYS(405, "method", s->method = "FOO", s->target = "//");
    SAYS(400, "path_ambiguous", s->target = "//", s->host = "b.example");
    SAYS(403, "denied_by_rule", s->target = "/secret/x", s->fields = "");
    SAYS(431, "too_many_headers", s->host = "keyed.example", s->filled = FIELDS_FULL,
         s->target = "/x?access_token=1");
    SAYS(403, "header", s->fields = ws);
    SAYS(403, "method_override", s->host = "read.example", s->target = "/?_method=PUT",
         s->fields = ws);
    SAYS(403, "websocket",
         s->fields = "X-Tenant: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                     "Sec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
         s->own = own_refuses);
    SAYS(403, "own", s->host = "keyed.example", s->target = "/x?access_token=1",
         s->own = own_refuses);
    SAYS(403, "foreign_credential", s->host = "edited.example", s->target = "/x?access_token=1",
         s->filled = FIELDS_FULL - 1);
}

/* Of what is admitted the fields are left that will be written, and what the roles go on with. */
static void test_made(void)
{
    struct admission found;
    struct asked s = usual;
    struct head h;
    s.host = "edited.example";
    s.fields =
        "Authorization: Bearer x\r\nCookie: a=b\r\nX-Forwarded-For: 1.2.3.4\r\nX-More: 2\r\n";
    s.own = own_empties;
    CU_ASSERT_EQUAL(check(&s, &h, &found), 0);
    CU_ASSERT_PTR_NULL(http_head_find(&h, "authorization"));
    CU_ASSERT_PTR_NULL(http_head_find(&h, "cookie"));
    CU_ASSERT_PTR_NULL(http_head_find(&h, "x-forwarded-for"));
    CU_ASSERT_EQUAL(http_head_count(&h, "x-more"), 1);
    CU_ASSERT(slice_eq_str(http_head_find(&h, "x-more")->value, "1"));
    CU_ASSERT(found.by_injector);
    CU_ASSERT_EQUAL(found.decision.verdict, VERDICT_ALLOW);
    http_head_free(&h);
    s = usual;
    s.host = "read.example";
    s.fields = "X-HTTP-Method-Override: PUT\r\n";
    CU_ASSERT_EQUAL(check(&s, &h, &found), 0);
    CU_ASSERT_EQUAL(found.stripped, 1);
    CU_ASSERT_EQUAL(h.n, 0);
    CU_ASSERT(found.decision.methods_matter && !found.by_injector);
    http_head_free(&h);
    s.host = "asked.example";
    CU_ASSERT_EQUAL(check(&s, &h, &found), 0);
    CU_ASSERT(found.by_injector);
    CU_ASSERT_EQUAL(found.decision.verdict, VERDICT_ASK);
    http_head_free(&h);
}

/* An injector reads what a gate has made: the list lets its own work pass, the rule's words that
 * look like a credential among it. */
static void test_twice(void)
{
    struct admission found;
    struct asked first = usual;
    struct authority at;
    struct head h;
    first.host = "edited.example";
    first.fields = "";
    CU_ASSERT_EQUAL(check(&first, &h, &found), 0);
    size_t n = h.n;
    CU_ASSERT_EQUAL_FATAL(authority_parse(&at, SCHEME_HTTPS, SLICE("edited.example")), 0);
    const struct admission_request q = {.policy = policy, .authority = &at};
    CU_ASSERT_EQUAL(admission_check(&q, &h, &found), 0);
    CU_ASSERT_EQUAL(h.n, n);
    http_head_free(&h);
    SAYS(403, "foreign_credential", s->host = "edited.example",
         s->fields = "X-Session-Mark: ghp_abcdefghijABCDEFGHIJ0123456789012345\r\n");
}

/* `explain` reads a URL as a gate reads a target. */
static void test_explained(void)
{
    static const struct {
        const char *method, *url, *name, *value, *code;
    } rows[] = {
        {"GET", "https://a.example/x", "X-Tenant", "a", "ok"},
        {"GET", "https://a.example/x", "X-Tenant", "b", "header"},
        {"GET", "https://a.example/\xc3\xa4", "x-tenant", "a", "ok"},
        {"GET", "https://a.example/\xc3", "x-tenant", "a", "bad_target"},
        {"GET", "https://a.example/x\\y", "x-tenant", "a", "bad_target"},
        {"GET", "https://a.example/x/../y", "x-tenant", "a", "path_ambiguous"},
        {"FOO", "https://a.example/x", "x-tenant", "a", "method"},
        {"GET", "https://signed.example/x\"", NULL, NULL, "signed_target"},
        {"GET", "https://tunnel.example/x", NULL, NULL, "ok"},
        {"GET", "https://keyed.example/x?api_key=1", NULL, NULL, "foreign_credential"},
        {"GET", "https://keyed.example/x", "X-API-Key", "sk-abc", "foreign_credential"},
        {"GET", "https://keyed.example/x", "Authorization", "Bearer x", "ok"},
        {"MOVE", "https://keyed.example/x", "Destination", "https://a.example/y", "destination"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct policy_query q = {.method = slice_str(rows[i].method)};
        struct answer said;
        struct err err;
        CU_ASSERT_EQUAL_FATAL(policy_query_url(rows[i].url, &q, &err), 0);
        if (rows[i].name) {
            q.header[0].name = rows[i].name;
            q.header[q.n_headers++].value = rows[i].value;
        }
        policy_query_decide(policy, &q, &said);
        if (strcmp(said.code, rows[i].code) != 0)
            printf("# %s %s: %s, not %s\n", rows[i].method, rows[i].url, said.code, rows[i].code);
        CU_ASSERT_STRING_EQUAL(said.code, rows[i].code);
        CU_ASSERT_EQUAL(said.verdict == VERDICT_DENY, strcmp(said.code, "ok") != 0);
        CU_ASSERT(strlen(said.why) > strlen(said.code));
    }
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("admission", setup, teardown);
    CU_add_test(s, "each check", test_each);
    CU_add_test(s, "a target that is signed", test_signed);
    CU_add_test(s, "a credential in clear text", test_plaintext);
    CU_add_test(s, "their order", test_order);
    CU_add_test(s, "what is left of a head", test_made);
    CU_add_test(s, "a head that was made already", test_twice);
    CU_add_test(s, "explain", test_explained);
}
