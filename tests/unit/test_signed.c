/* Texts that are signed, and their signatures: RFC 9421's published examples, RFC 4231's, the
 * example of Azure's documentation for the text. */
#include "base64.h"
#include "signed.h"
#include "tap_main.h"
#include "text_sign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_signed(void);

/* RFC 9421 B.1.4 and B.1.5. */
static const char ed25519[] = "-----BEGIN PRIVATE KEY-----\n"
                              "MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n"
                              "-----END PRIVATE KEY-----\n";
static const char shared[] =
    "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==";

static void base64_of(struct slice raw, char to[200])
{
    struct buf b;
    buf_init(&b, 199);
    CU_ASSERT_EQUAL(base64_append(&b, raw), 0);
    snprintf(to, 200, "%.*s", SL(buf_slice(&b)));
    buf_free(&b);
}

static int http(const char *key, const char *algorithm, const char *text, char to[200])
{
    struct buf out;
    struct err err = {0};
    buf_init(&out, 1024);
    int r = text_sign_http(slice_str(key), algorithm, slice_str(text), &out, &err);
    base64_of(buf_slice(&out), to);
    buf_free(&out);
    return r;
}

static void test_http(void)
{
    char got[200];
    /* B.2.6 */
    CU_ASSERT_EQUAL(
        http(ed25519, "ed25519",
             "\"date\": Tue, 20 Apr 2021 02:07:55 GMT\n"
             "\"@method\": POST\n\"@path\": /foo\n\"@authority\": example.com\n"
             "\"content-type\": application/json\n\"content-length\": 18\n"
             "\"@signature-params\": (\"date\" \"@method\" \"@path\" \"@authority\" "
             "\"content-type\" \"content-length\");created=1618884473;keyid=\"test-key-ed25519\"",
             got),
        0);
    CU_ASSERT_STRING_EQUAL(got,
                           "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0"
                           "w6vuQv5lIp5WPpBKRCw==");
    /* B.2.5 */
    CU_ASSERT_EQUAL(http(shared, "hmac-sha256",
                         "\"date\": Tue, 20 Apr 2021 02:07:55 GMT\n\"@authority\": example.com\n"
                         "\"content-type\": application/json\n"
                         "\"@signature-params\": (\"date\" \"@authority\" \"content-type\");"
                         "created=1618884473;keyid=\"test-shared-secret\"",
                         got),
                    0);
    CU_ASSERT_STRING_EQUAL(got, "pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=");
    static const char *const none[] = {"", "hello", "\"@signature-params\": (",
                                       "\"@signature-params\": (\n", "x\"@signature-params\": ("};
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        CU_ASSERT_EQUAL(http(ed25519, "ed25519", none[i], got), i == 2 ? 0 : -1);
    CU_ASSERT_EQUAL(http(ed25519, "rsa-pss-sha512", none[2], got), -1);
    CU_ASSERT_EQUAL(http(ed25519, "ecdsa-p256-sha256", none[2], got), -1);
    CU_ASSERT_EQUAL(http(ed25519, "none", none[2], got), -1);
    CU_ASSERT_EQUAL(http("x", "ed25519", none[2], got), -1);
    CU_ASSERT_EQUAL(http("not base64!", "hmac-sha256", none[2], got), -1);
}

static int hmac(const char *key, const char *encoding, const char *algorithm, char to[200])
{
    struct buf out;
    struct err err = {0};
    buf_init(&out, 1024);
    int r = text_sign_hmac(slice_str(key), encoding, algorithm,
                           SLICE("what do ya want for nothing?"), &out, &err);
    base64_of(buf_slice(&out), to);
    buf_free(&out);
    return r;
}

/* RFC 4231 4.3, RFC 2202 3; the same key in each writing. */
static void test_hmac(void)
{
    char got[200];
    static const char *const keys[][2] = {
        {"Jefe", "text"}, {"4a656665", "hex"}, {"4A656665", "hex"}, {"SmVmZQ==", "base64"}};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        CU_ASSERT_EQUAL(hmac(keys[i][0], keys[i][1], "sha256", got), 0);
        CU_ASSERT_STRING_EQUAL(got, "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=");
        CU_ASSERT_EQUAL(hmac(keys[i][0], keys[i][1], "sha1", got), 0);
        CU_ASSERT_STRING_EQUAL(got, "7/zfauXrL6LSdBbV8YTfnCWafHk=");
    }
    static const char *const bad[][2] = {{"4a65666", "hex"},    {"4g", "hex"},
                                         {"SmVmZQ=", "base64"}, {"SmVm_Q==", "base64"},
                                         {"====", "base64"},    {"", "text"}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(hmac(bad[i][0], bad[i][1], "sha256", got), -1);
}

static struct head head(const char *method, const char *path, const char *query)
{
    struct head h;
    http_head_init(&h);
    h.method = slice_str(method);
    CU_ASSERT_EQUAL(http_head_set_path(&h, slice_str(path)), 0);
    CU_ASSERT_EQUAL(http_head_set_query(&h, slice_str(query ? query : ""), query != NULL), 0);
    return h;
}

/* "Authorize with Shared Key": Get Container Metadata, with our x-ms-date. */
static void test_azure(void)
{
    static const struct credential c = {.kind = CREDENTIAL_AZURE};
    struct authority a = {.scheme = SCHEME_HTTPS, .kind = HOST_NAME, .port = 443, .host = "h"};
    struct head h = head("GET", "/mycontainer", "restype=container&comp=metadata&b=2&B=%31");
    struct signed_text s = {.timestamp = ""};
    CU_ASSERT_EQUAL(http_head_add(&h, "x-ms-version", SLICE("2014-02-14")), 0);
    CU_ASSERT_EQUAL(http_head_add(&h, "x-ms-date", SLICE("the client's")), 0);
    CU_ASSERT_PTR_NULL(signed_prepare(&s, &c, &h, &a, (struct slice){"", 0}, SLICE(" myaccount"),
                                      INT64_C(1435350607000)));
    const char want[] = "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 20:30:07 GMT\n"
                        "x-ms-version:2014-02-14\n/myaccount/mycontainer\nb:1,2\ncomp:metadata\n"
                        "restype:container";
    CU_ASSERT(slice_eq_str(buf_slice(&s.text), want));
    CU_ASSERT_EQUAL(signed_finish(&s, &c, &h, SLICE("abc")), 0);
    CU_ASSERT(
        slice_eq(http_head_find(&h, "authorization")->value, SLICE("SharedKey myaccount:YWJj")));
    signed_free(&s);
    http_head_free(&h);
}

/* RFC 9421 2.5's derived components, and what a client put in the way. */
static void test_base(void)
{
    static const struct header_edit parts[] = {{"@method", NULL},
                                               {"@target-uri", NULL},
                                               {"@query", NULL},
                                               {"content-digest", NULL},
                                               {"x-a", NULL}};
    struct credential c = {.kind = CREDENTIAL_SIGNATURE,
                           .signs = parts,
                           .n_signs = 5,
                           .text = "sig1",
                           .prefix = "app",
                           .count = 60};
    struct authority a = {
        .scheme = SCHEME_HTTPS, .kind = HOST_NAME, .port = 443, .host = "h.example"};
    struct head h = head("PUT", "/p%20q", NULL);
    struct signed_text s = {.timestamp = ""};
    CU_ASSERT_STRING_EQUAL(signed_prepare(&s, &c, &h, &a, SLICE("b"), SLICE("ed25519 k:1"), 5000),
                           "signature_component");
    signed_free(&s);
    CU_ASSERT_EQUAL(http_head_add(&h, "x-a", SLICE(" one ")), 0);
    CU_ASSERT_EQUAL(http_head_add(&h, "x-a", SLICE("two")), 0);
    CU_ASSERT_EQUAL(http_head_add(&h, "signature-input", SLICE("theirs")), 0);
    CU_ASSERT_EQUAL(http_head_add(&h, "content-digest", SLICE("theirs")), 0);
    CU_ASSERT_PTR_NULL(signed_prepare(&s, &c, &h, &a, SLICE("{\"hello\": \"world\"}"),
                                      SLICE("ed25519 k:1"), 1618884473000));
    const char want[] =
        "\"@method\": PUT\n\"@target-uri\": https://h.example/p%20q\n\"@query\": ?\n"
        "\"content-digest\": sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:\n"
        "\"x-a\": one, two\n\"@signature-params\": (\"@method\" \"@target-uri\" \"@query\" "
        "\"content-digest\" \"x-a\");created=1618884473;keyid=\"k:1\";alg=\"ed25519\";"
        "expires=1618884533;tag=\"app\"";
    CU_ASSERT(slice_eq_str(buf_slice(&s.text), want));
    CU_ASSERT_EQUAL(signed_finish(&s, &c, &h, SLICE("abc")), 0);
    CU_ASSERT(slice_eq(http_head_find(&h, "signature")->value, SLICE("sig1=:YWJj:")));
    CU_ASSERT(
        slice_starts(http_head_find(&h, "signature-input")->value, SLICE("sig1=(\"@method\"")));
    CU_ASSERT_EQUAL(http_head_count(&h, "signature-input"), 1);
    signed_free(&s);
    http_head_free(&h);
}

/* ---- HMAC of a text made of the request ---- */

static struct credential of_hmac(const char *text, const struct header_edit *to, size_t n)
{
    return (struct credential){.kind = CREDENTIAL_HMAC, .text = text, .signs = to, .n_signs = n};
}

static const char *value(const struct head *h, const char *name)
{
    static char text[2048];
    const struct field *f = http_head_find(h, name);
    CU_ASSERT_EQUAL(http_head_count(h, name), 1);
    snprintf(text, sizeof text, "%.*s", f ? (int)f->value.n : 4, f ? f->value.p : "none");
    return text;
}

static void test_templates(void)
{
    static const struct header_edit to[] = {
        {"x-sig", "v1={signature}"},
        {"x-when", "{timestamp}.{timestamp_ms}; {date}; {body_sha256}"},
        {"x-nonce", "{nonce}"}};
    static const char text[] = "{method}|{path}|{query}|{target}|{host}|{body}|{body_sha256}|"
                               "{timestamp}|{timestamp_ms}|{date}|{header:x-a}|{nonce}|}";
    static const char sha[] = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    struct authority a = {
        .scheme = SCHEME_HTTPS, .kind = HOST_NAME, .port = 8443, .host = "h.example"};
    struct credential c = of_hmac(text, to, ARRAY_LEN(to));
    struct signed_text s = {.timestamp = ""};
    struct head h = head("POST", "/a%20b", "q={path}&r");
    char want[1024], when[256];
    CU_ASSERT_EQUAL(http_head_add(&h, "x-a", SLICE(" {body} ")),
                    0); /* what a client wrote is text */
    CU_ASSERT_EQUAL(http_head_add(&h, "x-a", SLICE("two")), 0);
    CU_ASSERT_EQUAL(http_head_add(&h, "x-sig", SLICE("theirs")), 0);
    CU_ASSERT_EQUAL(http_head_add(&h, "x-nonce", SLICE("theirs")), 0);
    CU_ASSERT_PTR_NULL(signed_prepare(&s, &c, &h, &a, SLICE("hello"), SLICE(""), 1618884473042));
    snprintf(want, sizeof want,
             "POST|/a%%20b|q={path}&r|/a%%20b?q={path}&r|h.example:8443|hello|%s|1618884473|"
             "1618884473042|Tue, 20 Apr 2021 02:07:53 GMT|{body}, two|%s|}",
             sha, s.nonce);
    CU_ASSERT(slice_eq_str(buf_slice(&s.text), want));
    CU_ASSERT_EQUAL(http_head_count(&h, "x-sig"), 0);
    CU_ASSERT_EQUAL(signed_finish(&s, &c, &h, SLICE("\xff\x01z")), 0);
    CU_ASSERT_STRING_EQUAL(value(&h, "x-sig"), "v1=ff017a");
    CU_ASSERT_STRING_EQUAL(value(&h, "x-nonce"), s.nonce);
    snprintf(when, sizeof when, "1618884473.1618884473042; Tue, 20 Apr 2021 02:07:53 GMT; %s", sha);
    CU_ASSERT_STRING_EQUAL(value(&h, "x-when"), when);
    c.base64 = true;
    CU_ASSERT_EQUAL(signed_finish(&s, &c, &h, SLICE("\xff\x01z")), 0);
    CU_ASSERT_STRING_EQUAL(value(&h, "x-sig"), "v1=/wF6");
    char large[100];
    memset(large, 'x', sizeof large);
    CU_ASSERT_EQUAL(signed_finish(&s, &c, &h, (struct slice){large, sizeof large}), -1);
    signed_free(&s);
    c = of_hmac("{header:x-b}", to, 1); /* a field that is not there is not an empty one */
    CU_ASSERT_STRING_EQUAL(signed_prepare(&s, &c, &h, &a, SLICE(""), SLICE(""), 5000),
                           "signature_component");
    signed_free(&s);
    c = of_hmac("a{path", to, 1); /* no rule has such a text */
    CU_ASSERT_STRING_EQUAL(signed_prepare(&s, &c, &h, &a, SLICE(""), SLICE(""), 5000),
                           "signature_component");
    signed_free(&s);
    c = of_hmac("{signature}", to, 1);
    CU_ASSERT_STRING_EQUAL(signed_prepare(&s, &c, &h, &a, SLICE(""), SLICE(""), 5000),
                           "signature_component");
    signed_free(&s);
    char *big = calloc(1, SIGNED_TEXT_MAX + 5000);
    CU_ASSERT_PTR_NOT_NULL_FATAL(big);
    c = of_hmac("{body}", to, 1);
    struct slice body = {big, SIGNED_TEXT_MAX + 5000};
    CU_ASSERT_STRING_EQUAL(signed_prepare(&s, &c, &h, &a, body, SLICE(""), 5000),
                           "signature_component");
    signed_free(&s);
    free(big);
    http_head_free(&h);
}

static void test_buffers(void)
{
    static const struct header_edit hash = {"x-h", "{body_sha256}"}, sig = {"x-s", "{signature}"},
                                    digest = {"content-digest", NULL}, method = {"@method", NULL};
    struct credential c = of_hmac("{path}{body}", &sig, 1);
    CU_ASSERT_EQUAL(signed_body_limit(&c), SIGNED_TEXT_MAX);
    c = of_hmac("{path}", &sig, 1);
    CU_ASSERT(signed_kind(&c) && signed_body_limit(&c) == 0);
    c = of_hmac("{body_sha256}", &sig, 1);
    CU_ASSERT_EQUAL(signed_body_limit(&c), SIGNED_BODY_MAX);
    c = of_hmac("{path}", &hash, 1);
    CU_ASSERT_EQUAL(signed_body_limit(&c), SIGNED_BODY_MAX);
    c = (struct credential){.kind = CREDENTIAL_SIGNATURE, .signs = &digest, .n_signs = 1};
    CU_ASSERT_EQUAL(signed_body_limit(&c), SIGNED_BODY_MAX);
    c.signs = &method;
    CU_ASSERT(signed_kind(&c) && signed_body_limit(&c) == 0);
    c = (struct credential){.kind = CREDENTIAL_AZURE};
    CU_ASSERT(signed_kind(&c) && signed_body_limit(&c) == 0);
    c = (struct credential){.kind = CREDENTIAL_AWS};
    CU_ASSERT_FALSE(signed_kind(&c));
}

/* Every component, and heads that have no room for what is added. */
static void test_components(void)
{
    static const struct header_edit parts[] = {{"@authority", NULL},      {"host", NULL},
                                               {"@scheme", NULL},         {"@path", NULL},
                                               {"@request-target", NULL}, {"date", NULL}};
    static const struct header_edit digest = {"content-digest", NULL}, date = {"date", NULL};
    struct credential c = {.kind = CREDENTIAL_SIGNATURE,
                           .signs = parts,
                           .n_signs = 6,
                           .text = "s",
                           .prefix = "",
                           .nonce = true};
    struct authority a = {.scheme = SCHEME_HTTP, .kind = HOST_NAME, .port = 80, .host = "h"};
    struct head h = head("GET", "/p", "q");
    struct signed_text s = {.timestamp = ""};
    char want[600];
    CU_ASSERT_EQUAL(http_head_add(&h, "date", SLICE("theirs")), 0);
    CU_ASSERT_PTR_NULL(signed_prepare(&s, &c, &h, &a, SLICE(""), SLICE("alg key"), 1618884473000));
    snprintf(want, sizeof want,
             "\"@authority\": h\n\"host\": h\n\"@scheme\": http\n\"@path\": /p\n"
             "\"@request-target\": /p?q\n\"date\": Tue, 20 Apr 2021 02:07:53 GMT\n"
             "\"@signature-params\": (\"@authority\" \"host\" \"@scheme\" \"@path\" "
             "\"@request-target\" \"date\");created=1618884473;keyid=\"key\";alg=\"alg\";"
             "nonce=\"%s\"",
             s.nonce);
    CU_ASSERT(slice_eq_str(buf_slice(&s.text), want));
    signed_free(&s);
    CU_ASSERT_STRING_EQUAL(signed_prepare(&s, &c, &h, &a, SLICE(""), SLICE("nonsense"), 5000),
                           "signature_component"); /* the vault says algorithm and key */
    signed_free(&s);
    http_head_remove(&h, "date");
    while (h.n < HEAD_FIELDS_MAX)
        CU_ASSERT_EQUAL(http_head_add(&h, "x", SLICE("v")), 0);
    static const struct header_edit *const full[] = {&digest, &date};
    for (size_t i = 0; i < ARRAY_LEN(full); i++) {
        c.signs = full[i];
        c.n_signs = 1;
        CU_ASSERT_STRING_EQUAL(signed_prepare(&s, &c, &h, &a, SLICE(""), SLICE("alg key"), 5000),
                               "too_many_headers");
        signed_free(&s);
    }
    c.kind = CREDENTIAL_AZURE;
    CU_ASSERT_STRING_EQUAL(signed_prepare(&s, &c, &h, &a, SLICE(""), SLICE(" acc"), 5000),
                           "too_many_headers");
    signed_free(&s);
    http_head_free(&h);
}

void suite_signed(void)
{
    CU_pSuite s = CU_add_suite("signed", NULL, NULL);
    CU_add_test(s, "HTTP message signatures", test_http);
    CU_add_test(s, "HMAC", test_hmac);
    CU_add_test(s, "Azure's text", test_azure);
    CU_add_test(s, "a signature base", test_base);
    CU_add_test(s, "a signature base of every component", test_components);
    CU_add_test(s, "texts of HMAC", test_templates);
    CU_add_test(s, "what needs the body", test_buffers);
}

void tap_suites(void)
{
    suite_signed();
}
