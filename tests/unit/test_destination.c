/* What COPY and MOVE write at is a place that the policy lets be written, with the same credential,
 * and what an object store copies from is one that it lets be read. */
#include "config_fixture.h"
#include "guard.h"
#include "http1_head.h"
#include "policy.h"

#include <stdlib.h>

static const char text[] =
    V "secrets: { k: { env: K }, other: { env: O } }\n"
      "policies:\n"
      "  p:\n"
      "    rules:\n"
      "      - { allow: dav.example/pub/**, with: { bearer: k } }\n"
      "      - { deny: dav.example/pub/private/** }\n"
      "      - { deny: dav.example/pub/a/private/** }\n"
      "      - { allow: dav.example/read/**, with: { bearer: k }, access: read-only }\n"
      "      - { allow: dav.example/theirs/**, with: { bearer: other } }\n"
      "      - { allow: dav.example/plain/** }\n"
      "      - { ask: dav.example/asked/**, with: { bearer: k } }\n"
      "      - { allow: dav.example/tenant/**, with: { bearer: k }, headers: { x-tenant: a } }\n"
      "      - { allow: dav.example/slow/**, with: { bearer: k }, query: { depth: [one, two] } }\n"
      "      - { allow: dav.example/read-json/**, with: { bearer: k }, graphql: { operations: "
      "[query] } }\n"
      "      - { allow: dav.example/copied/**, with: { bearer: k }, methods: [COPY] }\n"
      "      - { allow: dav.example/few/**, with: { bearer: k }, budget: { requests: 1/h } }\n"
      "      - { allow: other.example/pub/**, with: { bearer: k } }\n"
      "      - { allow: mine.s3.example/**, with: { bearer: k } }\n"
      "      - { allow: half.s3.example/open/**, with: { bearer: k } }\n"
      "      - { allow: 'mine.s3.example:9000/**', with: { bearer: k } }\n"
      "      - { allow: s3.s3-x.example/**, with: { bearer: k } }\n";

static const struct limits limits = {.head_bytes = 32768, .headers = 100, .target_bytes = 8192};

static struct policy *made(void)
{
    struct err err = {0};
    struct config *c = good(text);
    char *json = config_policy_json(c, "p");
    CU_ASSERT_PTR_NOT_NULL_FATAL(json);
    struct policy *p = policy_parse(json, strlen(json), &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    config_unref(c);
    free(json);
    return p;
}

static bool may_at(const struct policy *p, const char *host, const char *method, const char *path,
                   const char *fields)
{
    char all[1024];
    struct head h;
    struct refusal why;
    struct authority a;
    struct decision d;
    int n = snprintf(all, sizeof all, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", method, path, host,
                     fields);
    CU_ASSERT_EQUAL_FATAL(authority_parse(&a, SCHEME_HTTPS, slice_str(host)), 0);
    CU_ASSERT_EQUAL_FATAL(http1_parse_request(&h, (struct slice){all, (size_t)n}, &limits, &why),
                          0);
    struct policy_request q = {&a, h.method, h.path};
    policy_decide(p, &q, &d);
    CU_ASSERT_FATAL(d.verdict != VERDICT_DENY);
    struct guard_answer answer = {.where = ""};
    bool ok = guard_fields(&h, d.rule, false) == 0 &&
              guard_conditions(&h, d.rule, h.query, h.has_query, &answer) == NULL &&
              guard_destination(p, &a, &h, d.rule);
    http_head_free(&h);
    return ok;
}

static bool may(const struct policy *p, const char *method, const char *path, const char *fields)
{
    return may_at(p, "dav.example", method, path, fields);
}

static void test_places(void)
{
    static const struct {
        const char *to;
        bool ok;
    } rows[] = {{"https://dav.example/pub/b", true},
                {"https://DAV.example:443/pub/b", true},
                {"/pub/b", true},
                {"/pub/b%20c", true},
                {"/pub/b?x=/pub/private/y", true},
                {"https://dav.example/pub/private/b", false},
                {"/pub/private/b", false},
                {"/pub/PRIVATE/b", false},
                {"/pub/%70rivate/b", false},
                {"/pub/x/../private/b", false},
                {"/read/b", false},
                {"/theirs/b", false},
                {"/plain/b", false},
                {"/asked/b", false},
                {"/nowhere/b", false},
                {"https://other.example/pub/b", false},
                {"http://dav.example/pub/b", false},
                {"https://dav.example:444/pub/b", false},
                {"https://u@dav.example/pub/b", false},
                {"//dav.example/pub/b", false},
                {"ftp://dav.example/pub/b", false},
                {"pub/b", false},
                {"?x", false},
                {"https://dav.example", false}};
    struct policy *p = made();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (unsigned move = 0; move < 2; move++) {
            char field[256];
            snprintf(field, sizeof field, "Destination: %s\r\n", rows[i].to);
            bool got = may(p, move ? "MOVE" : "COPY", "/pub/a", field);
            if (got != rows[i].ok)
                printf("# %s: %d\n", rows[i].to, got);
            CU_ASSERT_EQUAL(got, rows[i].ok);
        }
    policy_free(p);
}

static void test_others(void)
{
    struct policy *p = made();
    CU_ASSERT_TRUE(may(p, "COPY", "/pub/a", ""));
    CU_ASSERT_TRUE(may(p, "PUT", "/pub/a", "Destination: /pub/private/b\r\n")); /* names nothing */
    CU_ASSERT_FALSE(
        may(p, "COPY", "/pub/a", "Destination: /pub/b\r\nDestination: /pub/private/b\r\n"));
    CU_ASSERT_TRUE(may(p, "COPY", "/asked/a", "Destination: /asked/b\r\n")); /* the same is asked */
    CU_ASSERT_TRUE(may(p, "COPY", "/plain/a", "Destination: /plain/b\r\n"));
    CU_ASSERT_FALSE(may(p, "COPY", "/plain/a", "Destination: /pub/b\r\n"));
    policy_free(p);
}

/* What a PUT there would have to have, the COPY has. */
static void test_conditions(void)
{
    static const struct {
        const char *from, *fields;
        bool ok;
    } rows[] = {
        {"/pub/a", "Destination: /tenant/b\r\nX-Tenant: a\r\n", true},
        {"/tenant/a", "Destination: /tenant/b\r\nX-Tenant: a\r\n", true},
        {"/tenant/a", "Destination: /pub/b\r\nX-Tenant: a\r\n", true},
        {"/pub/a", "Destination: /tenant/b\r\n", false},
        {"/pub/a", "Destination: /tenant/b\r\nX-Tenant: b\r\n", false},
        {"/pub/a", "Destination: /tenant/b\r\nX-Tenant: a\r\nX-Tenant: a\r\n", false},
        {"/pub/a", "Destination: /tenant/b\r\nX_Tenant: a\r\n", false},
        {"/pub/a", "Destination: /tenant/b\r\nX-Tenant: a\r\nX_Tenant: b\r\n", false},
        {"/pub/a", "Destination: /tenant/b\r\nX-Tenant: a\r\nConnection: x-tenant\r\n", false},
        {"/copied/a", "Destination: /pub/b\r\n", true},
        {"/copied/a", "Destination: /copied/b\r\n", false}, /* no PUT there, by this very rule */
        {"/pub/a", "Destination: /slow/b\r\n", true},
        {"/pub/a", "Destination: /slow/b?depth=one\r\n", true},
        {"/slow/a?depth=one", "Destination: /slow/b?depth=two\r\n", true},
        {"/pub/a", "Destination: /slow/b?depth=all\r\n", false},
        {"/pub/a?depth=one", "Destination: /slow/b?depth=all\r\n", false},
        {"/slow/a?depth=one", "Destination: /slow/b?depth=all\r\n", false},
        {"/pub/a", "Destination: /slow/b?depth=one&depth=two\r\n", false},
        {"/pub/a", "Destination: https://dav.example/slow/b?other=1\r\n", false},
        {"/pub/a", "Destination: /read-json/b\r\n", false},
        {"/pub/a", "Destination: /few/b\r\n", false}, /* it would be counted nowhere */
        {"/few/a", "Destination: /few/b\r\n", true},
        {"/few/a", "Destination: /few/b//c\r\n", true},
        {"/read-json/a", "Destination: /read-json/b\r\n", true},
        {"/read-json/a", "Destination: /read-json/b//c\r\n", false}, /* as of its own path */
    };
    struct policy *p = made();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool got = may(p, "COPY", rows[i].from, rows[i].fields);
        if (got != rows[i].ok)
            printf("# %s %s: %d\n", rows[i].from, rows[i].fields, got);
        CU_ASSERT_EQUAL(got, rows[i].ok);
    }
    policy_free(p);
}

/* An object store reads it with the request's credential, whatever the request's own path is. */
static const struct {
    const char *host, *name, *source;
    bool ok;
} sources[] = {
    {"dav.example", "x-amz-copy-source", "pub/b", true},
    {"dav.example", "X-Amz-Copy-Source", "/pub/b", true},
    {"dav.example", "x-amz-copy-source", "pub/b?versionId=1", true},
    {"dav.example", "x-amz-copy-source", "read/b", true}, /* what may be read alone */
    {"dav.example", "x-amz-copy-source", "pub/private/b", false},
    {"dav.example", "x-amz-copy-source", "pub/%70rivate/b", false},
    {"dav.example", "x-amz-copy-source", "pub%2Fprivate/b", false},
    {"dav.example", "x-amz-copy-source", "pub/PRIVATE/b", false},
    {"dav.example", "x-amz-copy-source", "pub/x/../private/b", false},
    {"dav.example", "x-amz-copy-source", "//pub/b", false},
    {"dav.example", "x-amz-copy-source", "pub/a//b", true}, /* a key that may be read */
    {"dav.example", "x-amz-copy-source", "pub//private/b", false},
    {"dav.example", "x-amz-copy-source", "", false},
    {"dav.example", "x-amz-copy-source", "theirs/b", false},
    {"dav.example", "x-amz-copy-source", "plain/b", false},
    {"dav.example", "x-amz-copy-source", "asked/b", false},
    {"dav.example", "x-amz-copy-source", "tenant/b", false},
    {"dav.example", "x-amz-copy-source", "few/b", false},
    {"dav.example", "x-amz-copy-source", "nowhere/b", false},
    {"dav.example", "x-amz-copy-source", "pub/b\r\nX-Amz-Copy-Source: pub/c", false},
    {"dav.example", "x-amz-copy-source", "pub/b\r\nX-Goog-Copy-Source: pub/b", false},
    {"dav.example", "x-goog-copy-source", "pub/private/b", false},
    {"dav.example", "x-ms-rename-source", "/pub/private/b", false},
    /* of Swift's it is below the request's own account, here "/pub/a" */
    {"dav.example", "x-copy-from", "b/c", true},
    {"dav.example", "x-copy-from", "/b/c", true},
    {"dav.example", "x-copy-from", "private/b", false},
    {"dav.example", "x-copy-from", "%70rivate/b", false},
    {"dav.example", "x-copy-from", "https://dav.example/pub/b", false},
    {"dav.example", "x-object-manifest", "private/b", false},
    {"dav.example", "x-symlink-target", "private/b", false},
    {"dav.example", "x-symlink-target", "b/c", true},
    {"dav.example", "x-copy-from-account", "b", false},
    {"dav.example", "x-symlink-target-account", "b", false},
    {"dav.example", "x-ms-copy-source", "https://dav.example/pub/b", true},
    {"dav.example", "x-ms-copy-source", "https://dav.example/pub/private/b", false},
    {"dav.example", "x-ms-copy-source", "https://other.example/pub/b", true},
    {"dav.example", "x-ms-copy-source", "https://third.example/pub/b", false},
    {"dav.example", "x-ms-copy-source", "https://dav.example", false},
    {"dav.example", "x-amz-copy-source-range", "pub/private/b", true}, /* names none */
    /* a bucket's own host: another bucket is another host */
    {"mine.s3.example", "x-amz-copy-source", "mine/b", true},
    {"mine.s3.example", "x-amz-copy-source", "/mine/b", true},
    {"mine.s3.example", "x-amz-copy-source", "other/b", false},
    {"mine.s3.example", "x-amz-copy-source", "half/open/b", true},
    {"mine.s3.example", "x-amz-copy-source", "half/b", false},
    {"mine.s3.example", "x-amz-copy-source", "mine", false},
    {"mine.s3.example", "x-amz-copy-source", "m%69ne/b", false},
    {"mine.s3.example", "x-amz-copy-source", "arn:aws:s3:::mine/b", false},
    {"mine.s3.example", "x-amz-copy-source", "mine:444/b", false},
    {"mine.s3.example:9000", "x-amz-copy-source", "mine/b", true},
    {"mine.s3.example:9000", "x-amz-copy-source", "half/open/b", false},
    {"s3.s3-x.example", "x-amz-copy-source", "s3/b", true},
};

static void test_sources(void)
{
    struct policy *p = made();
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        char field[256];
        snprintf(field, sizeof field, "%s: %s\r\n", sources[i].name, sources[i].source);
        bool got = may_at(p, sources[i].host, "PUT", "/pub/a/c/d", field);
        if (got != sources[i].ok)
            printf("# %s %s: %s: %d\n", sources[i].host, sources[i].name, sources[i].source, got);
        CU_ASSERT_EQUAL(got, sources[i].ok);
    }
    CU_ASSERT_FALSE(
        may_at(p, "dav.example", "PUT", "/pub/a", "X-Copy-From: b/c\r\n")); /* no account */
    policy_free(p);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("destination", NULL, NULL);
    CU_add_test(s, "where COPY and MOVE may write", test_places);
    CU_add_test(s, "conditions of the place", test_conditions);
    CU_add_test(s, "what a copy may read", test_sources);
    CU_add_test(s, "other methods, none, two, asked", test_others);
}
