/* Tokens of providers that send their sandboxes' requests on: theirs, for us, in time, of our team.
 */
#include "base64.h"
#include "buf.h"
#include "oidc.h"
#include "tap_main.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <string.h>

void suite_oidc(void);

#define URL    "https://gate.example.net/in"
#define ISSUER "https://oidc.vercel.com/acme"
#define HEAD   "{\"alg\":\"RS256\",\"kid\":\"k1\",\"typ\":\"JWT\"}"
static const int64_t now = 1700000000;
static EVP_PKEY *key, *other;

static void put_number(struct buf *out, EVP_PKEY *k, const char *param)
{
    unsigned char raw[1024];
    BIGNUM *n = NULL;
    CU_ASSERT_FATAL(EVP_PKEY_get_bn_param(k, param, &n) == 1);
    size_t len = (size_t)BN_bn2bin(n, raw);
    BN_free(n);
    CU_ASSERT_FATAL(base64url_append(out, (struct slice){(char *)raw, len}) == 0);
}

/* Settings with one key of that id and what else is said of it. */
static struct oidc *settings(EVP_PKEY *k, const char *id, const char *more, struct err *err)
{
    struct buf b;
    buf_init(&b, OIDC_SETTINGS_MAX);
    CU_ASSERT_FATAL(buf_printf(&b,
                               "{\"url\":\"" URL "\",\"issuer\":\"" ISSUER
                               "\",\"team\":\"team_a\",\"keys\":{\"keys\":[{\"kty\":\"EC\"},"
                               "{\"kty\":\"RSA\",\"kid\":\"%s\"%s,\"n\":\"",
                               id, more) == 0);
    put_number(&b, k, OSSL_PKEY_PARAM_RSA_N);
    CU_ASSERT_FATAL(buf_append_str(&b, "\",\"e\":\"") == 0);
    put_number(&b, k, OSSL_PKEY_PARAM_RSA_E);
    CU_ASSERT_FATAL(buf_append_str(&b, "\"}]}}") == 0);
    struct oidc *o = oidc_new(buf_slice(&b), err);
    buf_free(&b);
    return o;
}

static struct oidc *usual(void)
{
    struct err err = {0};
    struct oidc *o = settings(key, "k1", "", &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    return o;
}

/* Signed text, in `text` (its size 4096). */
static struct slice token(EVP_PKEY *by, const char *head, const char *claims, struct buf *text)
{
    unsigned char sig[512];
    size_t n = sizeof sig;
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    buf_clear(text);
    CU_ASSERT_FATAL(base64url_append(text, slice_str(head)) == 0 &&
                    buf_append_str(text, ".") == 0 &&
                    base64url_append(text, slice_str(claims)) == 0);
    CU_ASSERT_FATAL(md && EVP_DigestSignInit(md, NULL, EVP_sha256(), NULL, by) == 1 &&
                    EVP_DigestSign(md, sig, &n, buf_data(text), buf_len(text)) == 1);
    EVP_MD_CTX_free(md);
    CU_ASSERT_FATAL(buf_append_str(text, ".") == 0 &&
                    base64url_append(text, (struct slice){(char *)sig, n}) == 0);
    return buf_slice(text);
}

static void claims_of(char *to, size_t size, const char *iss, const char *aud, long long exp,
                      const char *team, const char *more)
{
    snprintf(
        to, size,
        "{\"iss\":\"%s\",\"aud\":%s,\"exp\":%lld,\"team_id\":\"%s\",\"project_id\":\"prj_b\"%s}",
        iss, aud, exp, team, more);
}

static const char *verdict(const char *head, const char *claims)
{
    struct oidc *o = usual();
    struct buf text;
    char name[OIDC_NAME_MAX + 1] = "";
    buf_init(&text, 4096);
    const char *code = oidc_verify(o, token(key, head, claims, &text), now, name, sizeof name);
    if (code == NULL)
        CU_ASSERT_STRING_EQUAL(name, "sbx_1");
    buf_free(&text);
    oidc_free(o);
    return code ? code : "good";
}

#define BOX ",\"sandbox_id\":\"sbx_1\""

static void test_good(void)
{
    char c[1024];
    claims_of(c, sizeof c, ISSUER, "\"" URL "\"", now + 60, "team_a", BOX);
    CU_ASSERT_STRING_EQUAL(verdict(HEAD, c), "good");
    claims_of(c, sizeof c, ISSUER, "[\"x\",\"" URL "\"]", now - OIDC_SKEW + 1, "team_a", BOX);
    CU_ASSERT_STRING_EQUAL(verdict(HEAD, c), "good");
    claims_of(c, sizeof c, ISSUER, "\"" URL "\"", now + 60, "team_a",
              BOX ",\"nbf\":1700000060,\"sandbox_name\":\"x\"");
    CU_ASSERT_STRING_EQUAL(verdict(HEAD, c), "good");
}

static void test_claims(void)
{
    static const struct {
        const char *iss, *aud;
        long long more;
        const char *team, *rest, *want;
    } cases[] = {
        {"https://oidc.vercel.com/evil", "\"" URL "\"", 60, "team_a", BOX, "token_invalid"},
        {ISSUER "/", "\"" URL "\"", 60, "team_a", BOX, "token_invalid"},
        {ISSUER, "\"" URL "/\"", 60, "team_a", BOX, "token_invalid"},
        {ISSUER, "\"https://other.example\"", 60, "team_a", BOX, "token_invalid"},
        {ISSUER, "[]", 60, "team_a", BOX, "token_invalid"},
        {ISSUER, "{\"a\":\"" URL "\"}", 60, "team_a", BOX, "token_invalid"},
        {ISSUER, "[[\"" URL "\"]]", 60, "team_a", BOX, "token_invalid"},
        {ISSUER, "\"" URL "\"", -OIDC_SKEW, "team_a", BOX, "token_expired"},
        {ISSUER, "\"" URL "\"", 60, "team_b", BOX, "token_source"},
        {ISSUER, "\"" URL "\"", 60, "team_a", "", "token_invalid"},
        {ISSUER, "\"" URL "\"", 60, "team_a", ",\"sandbox_id\":\"a b\"", "token_invalid"},
        {ISSUER, "\"" URL "\"", 60, "team_a", ",\"sandbox_id\":\"a\\u0000b\"", "token_invalid"},
        {ISSUER, "\"" URL "\"", 60, "team_a", ",\"sandbox_id\":7", "token_invalid"},
        {ISSUER, "\"" URL "\"", 60, "team_a", BOX BOX, "token_invalid"},
        {ISSUER, "\"" URL "\"", 60, "team_a", BOX ",\"nbf\":1700000061", "token_invalid"},
        {ISSUER, "\"" URL "\"", 60, "team_a", BOX ",\"nbf\":\"0\"", "token_invalid"},
    };
    char c[1024];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        claims_of(c, sizeof c, cases[i].iss, cases[i].aud, now + cases[i].more, cases[i].team,
                  cases[i].rest);
        CU_ASSERT_STRING_EQUAL(verdict(HEAD, c), cases[i].want);
    }
    CU_ASSERT_STRING_EQUAL(verdict(HEAD, "{\"iss\":\"" ISSUER "\",\"aud\":\"" URL
                                         "\",\"team_id\":\"team_a\",\"project_id\":\"p\"" BOX "}"),
                           "token_invalid"); /* for ever */
    CU_ASSERT_STRING_EQUAL(verdict(HEAD, "[]"), "token_invalid");
}

static void test_heads(void)
{
    static const char *const bad[] = {"{\"alg\":\"none\",\"kid\":\"k1\"}",
                                      "{\"alg\":\"HS256\",\"kid\":\"k1\"}",
                                      "{\"alg\":\"PS256\",\"kid\":\"k1\"}",
                                      "{\"alg\":\"RS256\",\"kid\":\"k2\"}",
                                      "{\"alg\":\"RS256\"}",
                                      "{\"alg\":\"RS256\",\"kid\":\"k1\",\"crit\":[]}",
                                      "{\"alg\":\"RS256\",\"alg\":\"RS256\",\"kid\":\"k1\"}",
                                      "x"};
    char c[1024];
    claims_of(c, sizeof c, ISSUER, "\"" URL "\"", now + 60, "team_a", BOX);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_STRING_EQUAL(verdict(bad[i], c), "token_invalid");
}

/* Signed by somebody else, changed anywhere, cut anywhere, with more behind it. */
static void test_signature(void)
{
    struct oidc *o = usual();
    struct buf text;
    char c[1024], name[OIDC_NAME_MAX + 1];
    buf_init(&text, 4096);
    claims_of(c, sizeof c, ISSUER, "\"" URL "\"", now + 60, "team_a", BOX);
    struct slice t = token(other, HEAD, c, &text);
    CU_ASSERT_STRING_EQUAL(oidc_verify(o, t, now, name, sizeof name), "token_invalid");
    t = token(key, HEAD, c, &text);
    for (size_t i = 0; i < t.n; i++) {
        char was = t.p[i], *at = (char *)(uintptr_t)t.p + i;
        if (i + 1 == t.n) /* its low bits are beyond the last byte */
            break;
        *at = was == 'A' ? 'B' : 'A';
        CU_ASSERT_PTR_NOT_NULL(oidc_verify(o, t, now, name, sizeof name));
        *at = was;
        CU_ASSERT_PTR_NOT_NULL(oidc_verify(o, (struct slice){t.p, i}, now, name, sizeof name));
    }
    CU_ASSERT_PTR_NULL(oidc_verify(o, t, now, name, sizeof name));
    CU_ASSERT_FATAL(buf_append_str(&text, ".") == 0);
    CU_ASSERT_PTR_NOT_NULL(oidc_verify(o, buf_slice(&text), now, name, sizeof name));
    CU_ASSERT_PTR_NOT_NULL(oidc_verify(o, SLICE(""), now, name, sizeof name));
    buf_free(&text);
    oidc_free(o);
}

static void test_settings(void)
{
    struct err err = {0};
    EVP_PKEY *small = EVP_RSA_gen(1024);
    struct oidc *o = settings(key, "k1", ",\"alg\":\"RS256\",\"use\":\"sig\"", &err);
    CU_ASSERT_PTR_NOT_NULL(o);
    oidc_free(o);
    CU_ASSERT_PTR_NULL(settings(key, "k1", ",\"use\":\"enc\"", &err));
    CU_ASSERT_PTR_NULL(settings(key, "k1", ",\"alg\":\"RS512\"", &err));
    CU_ASSERT_PTR_NULL(settings(key, "", "", &err));
    CU_ASSERT_PTR_NULL(settings(small, "k1", "", &err));
    CU_ASSERT_PTR_NULL(oidc_new(SLICE("{}"), &err));
    CU_ASSERT_PTR_NULL(oidc_new(SLICE("{\"url\":\"u\",\"issuer\":\"i\",\"team\":\"t\"}"), &err));
    EVP_PKEY_free(small);
}

static void test_project(void)
{
    struct err err = {0};
    struct oidc *o = NULL;
    char c[1024], name[OIDC_NAME_MAX + 1];
    struct buf b;
    buf_init(&b, OIDC_SETTINGS_MAX);
    CU_ASSERT_FATAL(buf_append_str(&b, "{\"url\":\"" URL "\",\"issuer\":\"" ISSUER
                                       "\",\"team\":\"team_a\",\"project\":\"prj_c\",\"keys\":"
                                       "{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"k1\",\"n\":\"") == 0);
    put_number(&b, key, OSSL_PKEY_PARAM_RSA_N);
    CU_ASSERT_FATAL(buf_append_str(&b, "\",\"e\":\"AQAB\"}]}}") == 0);
    o = oidc_new(buf_slice(&b), &err);
    buf_free(&b);
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    claims_of(c, sizeof c, ISSUER, "\"" URL "\"", now + 60, "team_a", BOX);
    CU_ASSERT_STRING_EQUAL(oidc_claims(o, slice_str(c), now, name, sizeof name), "token_source");
    oidc_free(o);
}

static int start(void)
{
    key = EVP_RSA_gen(2048);
    other = EVP_RSA_gen(2048);
    return key && other ? 0 : -1;
}

static int end(void)
{
    EVP_PKEY_free(key);
    EVP_PKEY_free(other);
    return 0;
}

void suite_oidc(void)
{
    CU_pSuite s = CU_add_suite("oidc", start, end);
    CU_add_test(s, "what is good", test_good);
    CU_add_test(s, "claims", test_claims);
    CU_add_test(s, "heads", test_heads);
    CU_add_test(s, "signatures", test_signature);
    CU_add_test(s, "settings", test_settings);
    CU_add_test(s, "a project", test_project);
}

void tap_suites(void)
{
    suite_oidc();
}
