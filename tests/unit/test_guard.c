/* What a request may carry: hop-by-hop fields, placeholders, credentials of others, cookies. */
#include "field_name.h"
#include "guard_bed.h"
#include "method.h"

void suite_guard(void);

/* So many are nobody's mistake: the rest is not looked up, and refused like a stranger's. */
static void test_many_placeholders(void)
{
    char many[2000];
    for (unsigned n = 1; n <= 40; n++) {
        size_t at = 0;
        for (unsigned i = 0; i < n; i++)
            at += (size_t)snprintf(many + at, sizeof many - at, " %s", mine);
        expect(R_BEARER, "/", line("X-Other", "a", many),
               n <= 16 ? "secret_blocked" : "cross_sandbox");
    }
}

static void test_methods(void)
{
    static const char *const not [] = {"TRACE", "TRACK", "CONNECT", "get",    "",        "PRI",
                                       "GETX",  "GE",    "BIND",    "NOTIFY", "M-SEARCH"};
    for (unsigned i = 0; i < METHOD_COUNT; i++) { /* what a rule can name passes, by both parsers */
        char said[80];
        struct refusal why;
        struct head h;
        int n = snprintf(said, sizeof said, "%s /x HTTP/1.1\r\nHost: x\r\n\r\n", method_name(i));
        CU_ASSERT_EQUAL(http1_parse_request(&h, (struct slice){said, (size_t)n}, &limits, &why), 0);
        CU_ASSERT(slice_eq_str(h.method, method_name(i)) && slice_eq(h.path, SLICE("/x")));
        http_head_free(&h);
        CU_ASSERT_EQUAL(guard_method(slice_str(method_name(i))), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(not ); i++)
        CU_ASSERT_EQUAL(guard_method(slice_str(not [i])), -1);
    CU_ASSERT_EQUAL(guard_method(SLICE("GET\0")), -1);
}

static void test_clean(void)
{
    static const char *const gone[] = {"host",
                                       "connection",
                                       "keep-alive",
                                       "te",
                                       "trailer",
                                       "proxy-authorization",
                                       "via",
                                       "forwarded",
                                       "x-forwarded-for",
                                       "x-forwarded-host",
                                       "x-original-url",
                                       "x-rewrite-url",
                                       "x-real-ip",
                                       "max-forwards",
                                       "proxy-connection",
                                       "http2-settings",
                                       "x-listed",
                                       "expect",
                                       "content-length"};
    struct head h;
    parse(&h, "/",
          "Connection: close, X-Listed , keep-alive,, authorization,Cookie\r\nKeep-Alive: 1\r\n"
          "TE: trailers\r\nTrailer: x\r\nProxy-Authorization: Basic eDp5\r\nVia: 1.1 x\r\n"
          "Forwarded: for=x\r\nX-Forwarded-For: 1\r\nX-Forwarded-Host: e\r\nX-Original-URL: /a\r\n"
          "X-Rewrite-URL: /a\r\nX-Real-IP: 1\r\nMax-Forwards: 1\r\nProxy-Connection: close\r\n"
          "HTTP2-Settings: x\r\nX-Listed: 1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n"
          "X-Kept: 1\r\nAuthorization: y\r\nCookie: c\r\n");
    guard_clean_request(&h);
    for (size_t i = 0; i < ARRAY_LEN(gone); i++)
        CU_ASSERT_PTR_NULL(http_head_find(&h, gone[i]));
    CU_ASSERT_EQUAL(h.n, 3); /* credentials and cookies have checks of their own (B20) */
    CU_ASSERT(h.body == BODY_LENGTH && h.length == 1);
    http_head_free(&h);
    parse(&h, "/",
          "X-HTTP-Method-Override: DELETE\r\nX-HTTP-Method: PUT\r\nX-Method-Override: a\r\n"
          "X-Method: stays\r\n");
    CU_ASSERT_EQUAL(guard_strip_overrides(&h), 3);
    CU_ASSERT_EQUAL(guard_strip_overrides(&h), 0);
    http_head_free(&h);
}

/* A parameter that some frameworks take for the method, in each of its spellings (attack A25). */
static void test_query_override(void)
{
    static const char *const bad[] = {"_method=PUT",      "_method",     "a=b&_method=x",
                                      "a;_method=DELETE", "_METHOD=x",   "%5fm%65thod=x",
                                      "_method[]=x",      "_method%5B0", ".method=x",
                                      "+method=x",        "[method=x",   "&&_method"};
    static const char *const good[] = {"",           "method=PUT", "a=_method", "x_method=1",
                                       "_methods=1", "_metho=1",   "_method.x", "%_method",
                                       "__method=1", "_meth%6=1"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT(guard_query_override(slice_str(bad[i])));
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CU_ASSERT_FALSE(guard_query_override(slice_str(good[i])));
}

static void test_reply(void)
{
    struct head h;
    for (int k = 0; k < 3; k++) {
        parse(&h, "/",
              "Connection: x-a\r\nX-A: 1\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n"
              "Alt-Svc: h3\r\nDurward-Denied: forged\r\nX-Proxy-Error: forged\r\nContent-Length: "
              "5\r\n"
              "Proxy-Authenticate: x\r\n");
        guard_clean_reply(&h, k > 0, k == 2);
        CU_ASSERT_EQUAL(http_head_count(&h, "set-cookie"), k == 1 ? 0 : 2);
        CU_ASSERT_PTR_NULL(http_head_find(&h, "content-length"));
        CU_ASSERT_PTR_NULL(http_head_find(&h, "x-a"));
        CU_ASSERT_PTR_NULL(http_head_find(&h, "alt-svc"));
        CU_ASSERT_PTR_NULL(http_head_find(&h, "durward-denied"));
        CU_ASSERT_PTR_NULL(http_head_find(&h, "x-proxy-error"));
        CU_ASSERT_PTR_NULL(http_head_find(&h, "proxy-authenticate"));
        http_head_free(&h);
    }
    parse(&h, "/", "Content-Length: 5\r\n");
    h.body = BODY_NONE; /* HEAD, 304: the length is told */
    guard_clean_reply(&h, true, false);
    CU_ASSERT_PTR_NOT_NULL(http_head_find(&h, "content-length"));
    http_head_free(&h);
}

/* Clients write what they always write around their key: the rule's prefix and suffix (Key X, Bot
 * X, Token token=X). The whole of both, or neither. */
static void test_affixes(void)
{
    static const char *const good[][2] = {
        {"", ""}, {"Token token=", "="}, {"tOKEN Token=", "="}, {"Bearer ", ""}, {"token ", ""}};
    static const char *const bad[][2] = {{"Token token=", ""},   {"", "="},
                                         {"Token token=", "=="}, {"Token token=x", "="},
                                         {"Token token=", ","},  {"Taken token=", "="},
                                         {"Key ", ""},           {"Token token=", "= a"}};
    char value[PLACEHOLDER_MAX + 64];
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        (void)snprintf(value, sizeof value, "%s%s%s", good[i][0], mine, good[i][1]);
        expect(R_AFFIXES, "/", line("Authorization", "", value), "ok");
        (void)snprintf(value, sizeof value, "%s%s%s", good[i][0], stranger, good[i][1]);
        expect(R_AFFIXES, "/", line("Authorization", "", value), "cross_sandbox");
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        (void)snprintf(value, sizeof value, "%s%s%s", bad[i][0], mine, bad[i][1]);
        expect(R_AFFIXES, "/", line("Authorization", "", value), "secret_blocked");
    }
    expect(R_AFFIXES, "/", "Authorization: Token token==\r\n", "foreign_credential");
    expect(R_AFFIXES, "/", "Authorization: Token token=\r\n",
           "foreign_credential"); /* one = is both */
    expect(R_AFFIXES, "/", "Authorization: =\r\n", "foreign_credential");
    expect(R_BEARER, "/", line("Authorization", "Key ", mine), "secret_blocked");
}

static void test_own(void)
{
    expect(R_BEARER, "/", "", "ok");
    expect(R_BEARER, "/", line("Authorization", "", mine), "ok");
    expect(R_BEARER, "/", line("Authorization", "Bearer ", mine), "ok");
    expect(R_BEARER, "/", line("authorization", "bEARER   ", mine), "ok");
    expect(R_BEARER, "/", line("Authorization", "token ", mine), "ok");
    expect(R_BEARER, "/", basic("x-access-token", mine), "ok");
    expect(R_BEARER, "/", basic(mine, "x-oauth-basic"), "ok");
    expect(R_BEARER, "/", basic(mine, ""), "ok");
    expect(R_KEY, "/", line("X-My-Key", "", mine), "ok");
    expect(R_BASIC, "/", basic("u", mine), "ok");
    expect(R_PASS, "/", line("Authorization", "Bearer ", mine), "ok");
    expect(R_PASS, "/", "", "ok");
}

/* A placeholder where it has no place (C7, C9), in each carrier. */
static void test_misplaced(void)
{
    char target[300];
    static const size_t rules[] = {R_BEARER, R_PLAIN, R_REPLACE, R_PASS};
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        size_t r = rules[i];
        snprintf(target, sizeof target, "/%s", mine);
        expect(r, target, "", "secret_blocked");
        snprintf(target, sizeof target, "/?q=x%sy", mine);
        expect(r, target, "", "secret_blocked");
        expect(r, "/", line("X-Other", "a ", mine), "secret_blocked");
        expect(r, "/", line("X-Other", "", other_slot), "secret_blocked");
        expect(r, "/", line("Authorization", "Bearer ", other_slot), "secret_blocked");
        expect(r, "/", basic("x", other_slot), "secret_blocked");
        expect(r, "/", line("X-Other", "", stranger), "cross_sandbox");
        expect(r, "/", line("Authorization", "Bearer ", stranger), "cross_sandbox");
        expect(r, "/", basic("x", stranger), "cross_sandbox");
        expect(r, "/", basic(stranger, "x"), "cross_sandbox");
        snprintf(target, sizeof target, "/%s?%s", mine, stranger);
        expect(r, target, "", "cross_sandbox");
    }
    expect(R_PLAIN, "/", line("Authorization", "Bearer ", mine), "secret_blocked");
    expect(R_PLAIN, "/", basic("x", mine), "secret_blocked");
    expect(R_PLAIN, "/", line("Cookie", "a=", mine), "secret_blocked");
    expect(R_KEY, "/", line("Authorization", "", mine), "secret_blocked");
    expect(R_BEARER, "/", line("Authorization", "Bearer x", mine), "secret_blocked");
    expect(R_BEARER, "/", line("Authorization", "Digest ", mine), "secret_blocked");
    /* two fields, both ours: an origin might take either */
    char twice[600];
    snprintf(twice, sizeof twice, "Authorization: %s\r\nAuthorization: %s\r\n", mine, mine);
    expect(R_BEARER, "/", twice, "secret_blocked");
}

/* Credentials that are not ours, in each carrier (B21, C5). */
static void test_foreign(void)
{
    static const char *const fields[] = {
        "Authorization: Bearer sk-attacker\r\n",
        "Authorization: x\r\n",
        "Authorization:\r\n",
        "Authorization: Basic eDp5\r\n",
        "Authorization: Basic ====\r\n",
        "Authorization: Basic ========\r\n",
        "Authorization: Basic\r\n",
        "Authorization: Bearer\r\n",
        "X-Api-Key: x\r\n",
        "Api-Key: x\r\n",
        "apikey: x\r\n",
        "X-Goog-Api-Key: x\r\n",
        "Private-Token: x\r\n",
        "Job-Token: x\r\n",
        "X-Auth-Token: x\r\n",
        "X-Amz-Security-Token: x\r\n",
        "X-Vault-Token: x\r\n",
        "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n",
        "Connection: authorization\r\nAuthorization: Bearer sk-attacker\r\n"};
    static const char *const targets[] = {"/?access_token=x",
                                          "/?a=b&ACCESS_TOKEN=x",
                                          "/?api_key=x",
                                          "/?key=x",
                                          "/?token=x",
                                          "/?sig=x",
                                          "/?X-Amz-Signature=x",
                                          "/?X-Amz-Credential=x",
                                          "/?x-goog-signature=x",
                                          "/?token",
                                          "/?access%5ftoken=x",
                                          "/?%61ccess_token=x",
                                          "/?a;access_token=x",
                                          "/?a=b&%4bEY=x",
                                          "/?&&key=x"};
    static const char *const harmless[] = {
        "/?tokens=x", "/?keys=1&q=key", "/?monkey=1", "/?a=token", "/?%6", "/?key%", "/?%00key=1"};
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        expect(R_BEARER, "/", fields[i], "foreign_credential");
        expect(R_PLAIN, "/", fields[i], "ok"); /* nothing is injected: theirs may go */
    }
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        expect(R_BEARER, targets[i], "", "foreign_credential");
        expect(R_REPLACE, targets[i], "", "foreign_credential");
        expect(R_PASS, targets[i], "", "ok");
        expect(R_PLAIN, targets[i], "", "ok");
    }
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
        expect(R_BEARER, harmless[i], "", "ok");
    expect(R_KEY, "/", "Authorization: Bearer x\r\n", "foreign_credential");
    expect(R_KEY, "/", "X-My-Key: x\r\n", "foreign_credential");
    expect(R_KEY, "/", "X_My_Key: x\r\n", "foreign_credential");
    expect(R_KEY, "/", "x-my_key: x\r\n", "foreign_credential");
    /* Basic whose length an overlong padding once made wrap, on any rule and field */
    expect(R_PLAIN, "/", "X-Any: Basic ====\r\n", "ok");
    expect(R_PLAIN, "/", "X-Any: basic Og======\r\n", "ok");
}

static void test_modes(void)
{
    struct head h;
    CU_ASSERT_STRING_EQUAL(judge(R_REPLACE, "/",
                                 "Authorization: a\r\nX-Api-Key: b\r\n"
                                 "X-Kept: c\r\n",
                                 &h),
                           "ok");
    CU_ASSERT_PTR_NULL(http_head_find(&h, "authorization"));
    CU_ASSERT_PTR_NULL(http_head_find(&h, "x-api-key"));
    CU_ASSERT_PTR_NOT_NULL(http_head_find(&h, "x-kept"));
    http_head_free(&h);
    CU_ASSERT_STRING_EQUAL(judge(R_REPLACE, "/", "Authorization: a\r\nAuthorization: b\r\n", &h),
                           "foreign_credential");
    http_head_free(&h);
    CU_ASSERT_STRING_EQUAL(judge(R_PASS, "/", "Authorization: a\r\nX-Api-Key: b\r\n", &h), "pass");
    CU_ASSERT(slice_eq(http_head_find(&h, "authorization")->value, SLICE("a")));
    CU_ASSERT_PTR_NOT_NULL(http_head_find(&h, "x-api-key"));
    http_head_free(&h);
}

static void test_stripped(void)
{
    struct head h;
    const char *fields = "Cookie: a\r\nRange: bytes=0-0\r\nIf-Range: x\r\nAccept-Encoding: br\r\n"
                         "Accept-Encoding: gzip\r\n";
    for (size_t r = 0; r <= R_PLAIN; r++) {
        CU_ASSERT_STRING_EQUAL(judge(r, "/", fields, &h), "ok");
        bool plain = r == R_PLAIN, cookie = plain || r == R_COOKIES;
        CU_ASSERT_EQUAL(http_head_count(&h, "cookie"), cookie);
        CU_ASSERT_EQUAL(http_head_count(&h, "range"), 1); /* the injector asks for more of it */
        CU_ASSERT_EQUAL(http_head_count(&h, "if-range"), 1);
        CU_ASSERT_EQUAL(http_head_count(&h, "accept-encoding"), plain ? 2 : 1);
        if (!plain)
            CU_ASSERT(slice_eq(http_head_find(&h, "accept-encoding")->value, SLICE("identity")));
        http_head_free(&h);
    }
}

/* ranges: true, where the rule says so: the rest of what is stripped stays so. Elsewhere what is
 * not one plain part goes, and all of it where the whole is read. */
static void test_ranges(void)
{
    struct head h;
    static const struct capture capture;
    struct rule captures = *rule(R_BEARER);
    captures.captures = &capture;
    captures.n_captures = 1;
    const struct {
        const char *fields;
        const struct rule *rule;
        size_t stays;
    } rows[] = {
        {"Range: bytes=0-0\r\nIf-Range: x\r\n", rule(R_BEARER), 1},
        {"Range: bytes=0-0,5-6\r\nIf-Range: x\r\n", rule(R_BEARER), 0},
        {"Range: bytes=0-0\r\nIf-Range: x\r\nRequest-Range: bytes=5-6\r\n", rule(R_BEARER), 1},
        {"Range: bytes=0-0\r\nIf-Range: x\r\n", &captures, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        parse(&h, "/", rows[i].fields);
        CU_ASSERT_EQUAL(guard_fields(&h, rows[i].rule, false), 0);
        CU_ASSERT_EQUAL(http_head_count(&h, "range"), rows[i].stays);
        CU_ASSERT_EQUAL(http_head_count(&h, "request-range"), 0);
        CU_ASSERT_EQUAL(http_head_count(&h, "if-range"), rows[i].stays);
        http_head_free(&h);
    }
    struct rule with = *rule(R_BEARER);
    with.ranges = true;
    parse(&h, "/", "Range: bytes=0-0\r\nIf-Range: x\r\nCookie: a\r\n");
    CU_ASSERT_EQUAL(guard_fields(&h, &with, false), 0);
    CU_ASSERT(http_head_count(&h, "range") == 1 && http_head_count(&h, "if-range") == 1);
    CU_ASSERT_EQUAL(http_head_count(&h, "cookie"), 0);
    http_head_free(&h);
}

/* Sub-protocols that are a credential in disguise (C5). */
static void test_protocols(void)
{
    static const struct {
        const char *value, *code;
    } v[] = {{"chat, graphql-transport-ws", "ok"},
             {"realtime, openai-insecure-api-key.sk-abc", "foreign_credential"},
             {"base64url.bearer.authorization.k8s.io.YWJj", "foreign_credential"},
             {"TOKEN.abc", "foreign_credential"}};
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        char fields[256];
        struct head h;
        snprintf(fields, sizeof fields, "Sec-WebSocket-Protocol: %s\r\n", v[i].value);
        CU_ASSERT_STRING_EQUAL(judge(R_BEARER, "/", fields, &h), v[i].code);
        http_head_free(&h);
        CU_ASSERT_STRING_EQUAL(judge(R_PLAIN, "/", fields, &h), "ok");
        http_head_free(&h);
    }
}

static void test_edits(void)
{
    struct head h;
    parse(&h, "/", "X-Both: client\r\nX-Both: twice\r\nX-Gone: 1\r\n");
    CU_ASSERT_EQUAL(guard_edit(&h, rule(R_PLAIN)), 0);
    CU_ASSERT_EQUAL(http_head_count(&h, "x-both"), 1);
    CU_ASSERT(slice_eq(http_head_find(&h, "x-both")->value, SLICE("two")));
    CU_ASSERT(slice_eq(http_head_find(&h, "x-set")->value, SLICE("one")));
    CU_ASSERT_PTR_NULL(http_head_find(&h, "x-gone"));
    http_head_free(&h);
}

static void test_shape(void)
{
    static const struct {
        struct slice query;
        const char *shape;
    } v[] = {
        {SLICE(""), ""},
        {SLICE("a=b"), "a=<1>"},
        {SLICE("a=b&cd=efg"), "a=<1>&cd=<3>"},
        {SLICE("secretword"), "<10>"},
        {SLICE("a=&b"), "a=<0>&<1>"},
        {SLICE("&&"), "<0>&<0>&"},
        {SLICE("a=b=c"), "a=<3>"},
        {SLICE("=x"), "=<1>"},
#define EIGHT "abcdefgh"
#define LONG  EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT
        {SLICE(LONG "=x"), LONG "=<1>"},
        {SLICE(LONG "1=x&b=c"), LONG "[...]=<1>&b=<1>"}, /* it could be another one */
#undef LONG
#undef EIGHT
    };
    struct buf b;
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        buf_init(&b, 1024);
        guard_query_shape(v[i].query, &b);
        CU_ASSERT(slice_eq_str(buf_slice(&b), v[i].shape));
        buf_free(&b);
    }
    char big[8192];
    memset(big, 'a', sizeof big);
    for (size_t i = 1; i < sizeof big; i += 2)
        big[i] = '&';
    buf_init(&b, 1024);
    guard_query_shape((struct slice){big, sizeof big}, &b);
    CU_ASSERT(buf_len(&b) <= 1024 && buf_len(&b) > 1000);
    buf_free(&b);
    CU_ASSERT(guard_has_placeholder(&gate, slice_str(mine)));
    CU_ASSERT(guard_has_placeholder(&gate, slice_str(stranger)));
    CU_ASSERT(!guard_has_placeholder(&gate, SLICE("dwd_none")));
}

/* A remote sandbox has no list: its placeholders come of its token's seed. */
static void test_seed(void)
{
    struct identity remote = who;
    char theirs[PLACEHOLDER_MAX];
    struct guard_answer a = {.code = "none"};
    struct head h;
    memset(remote.seed, 9, sizeof remote.seed);
    remote.has_seed = true;
    CU_ASSERT_EQUAL(placeholder_make(gate.tag, remote.seed, "k", "github-pat", theirs), 0);
    parse(&h, "/", line("Authorization", "Bearer ", theirs));
    CU_ASSERT_EQUAL(guard_credentials(&gate, &remote, &h, rule(R_BEARER), &a), 0);
    CU_ASSERT(a.inject);
    http_head_free(&h);
    parse(&h, "/", line("Authorization", "Bearer ", theirs));
    CU_ASSERT_EQUAL(guard_credentials(&gate, &who, &h, rule(R_BEARER), &a), -1);
    CU_ASSERT_STRING_EQUAL(a.code, "cross_sandbox");
    http_head_free(&h);
}

/* They are searched by halves: one out of order would not be found. */
static void test_known(void)
{
    struct slice last = SLICE(""), name;
    size_t n = 0;
    for (; (name = field_known(n)).n > 0; n++) {
        CU_ASSERT_NOT_EQUAL(field_kinds(name), 0);
        CU_ASSERT(strcmp(last.p, name.p) < 0);
        last = name;
    }
    CU_ASSERT(n > 60);
    CU_ASSERT_EQUAL(field_kinds(SLICE("host")), FIELD_ROUTE);
    CU_ASSERT_EQUAL(field_kinds(SLICE("hos")), 0);
    CU_ASSERT_EQUAL(field_kinds(SLICE("hosts")), 0);
    CU_ASSERT_EQUAL(field_kinds(SLICE("")), 0);
}

void suite_guard(void)
{
    CU_pSuite s = CU_add_suite("guard", setup, teardown);
    CU_add_test(s, "a parameter that names a method", test_query_override);
    CU_add_test(s, "methods (A24, C2)", test_methods);
    CU_add_test(s, "a head full of placeholders", test_many_placeholders);
    CU_add_test(s, "hop-by-hop and forwarding fields (A25, A26, B20)", test_clean);
    CU_add_test(s, "replies", test_reply);
    CU_add_test(s, "known fields", test_known);
    CU_add_test(s, "the sandbox's own placeholder", test_own);
    CU_add_test(s, "a placeholder between the rule's prefix and suffix", test_affixes);
    CU_add_test(s, "misplaced and foreign placeholders (C7 to C9)", test_misplaced);
    CU_add_test(s, "foreign credentials (B21, C5)", test_foreign);
    CU_add_test(s, "client_credential", test_modes);
    CU_add_test(s, "cookies, ranges, codings (C13, C14)", test_stripped);
    CU_add_test(s, "ranges: true (C14)", test_ranges);
    CU_add_test(s, "credentials as sub-protocols (C5)", test_protocols);
    CU_add_test(s, "set_headers and remove_headers", test_edits);
    CU_add_test(s, "what is logged of a query (C12)", test_shape);
    CU_add_test(s, "placeholders out of a token's seed (C8)", test_seed);
}

void tap_suites(void)
{
    suite_guard();
}
