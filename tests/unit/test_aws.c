/* Signature Version 4 against vectors that AWS published (its test suite and the examples of the S3
 * reference); what a client may claim; presigned queries. */
#include "aws.h"
#include "aws_sign.h"
#include "http1_head.h"
#include "tap_main.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

void suite_aws(void);

static const struct limits limits = {.head_bytes = 32768, .headers = 100, .target_bytes = 8192};
static const struct credential any = {.kind = CREDENTIAL_AWS, .region = "", .service = ""};

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct vector {
    const char *method, *target, *host, *fields, *service, *time, *payload, *want;
};

/* Keys of the published vectors; they open nothing. */
static const char suite_id[] = "AKIDEXAMPLE", s3_id[] = "AKIAIOSFODNN7EXAMPLE",
                  suite_key[] = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                  s3_key[] = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

static const struct vector suite[] = {
    {"GET", "/", "example.amazonaws.com", "", "service", "20150830T123600Z", EMPTY,
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"GET", "/?Param2=value2&Param1=value1", "example.amazonaws.com", "", "service",
     "20150830T123600Z", EMPTY, "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    {"POST", "/", "example.amazonaws.com", "", "service", "20150830T123600Z", EMPTY,
     "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
};

static const struct vector s3[] = {
    {"GET", "/test.txt", "examplebucket.s3.amazonaws.com", "Range: bytes=0-9\r\n", "s3",
     "20130524T000000Z", EMPTY, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
    {"PUT", "/test$file.text", "examplebucket.s3.amazonaws.com",
     "Date: Fri, 24 May 2013 00:00:00 GMT\r\nx-amz-storage-class: REDUCED_REDUNDANCY\r\n", "s3",
     "20130524T000000Z", "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
     "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
    {"GET", "/?lifecycle", "examplebucket.s3.amazonaws.com", "", "s3", "20130524T000000Z", EMPTY,
     "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
    {"GET", "/?max-keys=2&prefix=J", "examplebucket.s3.amazonaws.com", "", "s3", "20130524T000000Z",
     EMPTY, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
};

static void parse(struct head *h, const char *method, const char *target, const char *host,
                  const char *fields)
{
    char all[8192];
    struct refusal why = {0, ""};
    int n = snprintf(all, sizeof all, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", method, target, host,
                     fields);
    CU_ASSERT_EQUAL_FATAL(http1_parse_request(h, (struct slice){all, (size_t)n}, &limits, &why), 0);
    http_head_remove(h, "host");
}

static void one(const struct vector *v, const char *id, const char *key)
{
    struct head h;
    struct buf text;
    struct authority a = {0};
    struct aws_scope s = {.region = "us-east-1"};
    struct aws_pair pair = {slice_str(id), slice_str(key), {"", 0}};
    char names[AWS_SIGNED_MAX], got[AWS_HEX + 1];
    bool is_s3 = strcmp(v->service, "s3") == 0;
    parse(&h, v->method, v->target, v->host, v->fields);
    CU_ASSERT_EQUAL(authority_parse(&a, SCHEME_HTTPS, slice_str(v->host)), 0);
    CU_ASSERT_EQUAL(http_head_set(&h, "x-amz-date", slice_str(v->time)), 0);
    if (is_s3)
        CU_ASSERT_EQUAL(http_head_set(&h, "x-amz-content-sha256", slice_str(v->payload)), 0);
    buf_init(&text, 65536);
    CU_ASSERT_EQUAL(aws_canonical(&text, &h, &a, v->service, "range;date;host", v->payload, names),
                    0);
    snprintf(s.time, sizeof s.time, "%s", v->time);
    snprintf(s.service, sizeof s.service, "%s", v->service);
    CU_ASSERT_EQUAL(aws_hash(buf_slice(&text), s.hash), 0);
    CU_ASSERT_EQUAL(aws_sign(&pair, &s, got), 0);
    if (strcmp(got, v->want) != 0)
        printf("# %s %s: %s\n%.*s\n", v->method, v->target, got, SL(buf_slice(&text)));
    CU_ASSERT_STRING_EQUAL(got, v->want);
    buf_free(&text);
    http_head_free(&h);
}

static void test_vectors(void)
{
    for (size_t i = 0; i < ARRAY_LEN(suite); i++)
        one(&suite[i], suite_id, suite_key);
    for (size_t i = 0; i < ARRAY_LEN(s3); i++)
        one(&s3[i], s3_id, s3_key);
}

/* What the vault refuses to sign. */
static void test_scopes(void)
{
    struct aws_pair pair = {SLICE("AKID"), SLICE("key"), {"", 0}};
    const struct aws_scope good = {"20260102T030405Z", "us-east-1", "s3", EMPTY};
    char out[AWS_HEX + 1];
    CU_ASSERT_EQUAL(aws_sign(&pair, &good, out), 0);
    for (int i = 0; i < 8; i++) {
        struct aws_scope s = good;
        char *at[] = {s.time, s.time + 8, s.region, s.region, s.service, s.hash, s.hash, s.time};
        at[i][0] = "xx\n/ G\0\n"[i];
        if (i == 3)
            s.region[0] = 0;
        CU_ASSERT_EQUAL(aws_sign(&pair, &s, out), -1);
    }
    CU_ASSERT_PTR_NULL(aws_pair_pack(SLICE("A\nB"), SLICE("k"), SLICE("")));
    CU_ASSERT_PTR_NULL(aws_pair_pack(SLICE("A"), SLICE(""), SLICE("")));
    CU_ASSERT_PTR_NULL(aws_pair_pack(SLICE("A"), SLICE("k"), SLICE("t t")));
    struct secret *v = aws_pair_pack(SLICE("A"), SLICE("k/+"), SLICE("t="));
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    CU_ASSERT(aws_pair_open(secret_slice(v), &pair) == 0 && slice_eq(pair.id, SLICE("A")) &&
              slice_eq(pair.key, SLICE("k/+")) && slice_eq(pair.token, SLICE("t=")));
    secret_unref(v);
    CU_ASSERT_EQUAL(aws_pair_open(SLICE("A"), &pair), -1);
    CU_ASSERT_EQUAL(aws_pair_open(SLICE("A\nk"), &pair), -1);
}

#define AUTH "Authorization: AWS4-HMAC-SHA256 Credential="
#define REST ", SignedHeaders=host;x-amz-date, Signature=0\r\n"

static void test_claims(void)
{
    static const struct {
        const char *fields, *want; /* NULL: fine */
        enum aws_payload payload;
    } rows[] = {
        {AUTH "ID/20260101/r/s3/aws4_request" REST, NULL, AWS_HASHED},
        {AUTH "ID/20260101/r/s3/aws4_request,SignedHeaders=host,Signature=0\r\n", NULL, AWS_HASHED},
        {AUTH "ID/20260101/r/s3/aws4_request" REST "X-Amz-Content-Sha256: UNSIGNED-PAYLOAD\r\n",
         NULL, AWS_AS_SAID},
        {AUTH "ID/20260101/r/ec2/aws4_request" REST "X-Amz-Content-Sha256: UNSIGNED-PAYLOAD\r\n",
         NULL, AWS_HASHED},
        {AUTH "ID/20260101/r/s3/aws4_request" REST "X-Amz-Content-Sha256: " EMPTY "\r\n", NULL,
         AWS_CLAIMED},
        {AUTH "ID/20260101/r/s3/aws4_request" REST "X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-"
              "SHA256-PAYLOAD\r\n",
         "signature_streaming", AWS_HASHED},
        {AUTH "ID/20260101/r/s3/aws4_request" REST AUTH "ID/20260101/r/s3/aws4_request" REST,
         "signature", AWS_HASHED},
        {"Authorization: Bearer x\r\n", "signature", AWS_HASHED},
        {AUTH "ID" REST, "signature", AWS_HASHED},
        {AUTH "/20260101/r/s3/aws4_request" REST, "signature", AWS_HASHED},
        {AUTH "ID/2026/r/s3/aws4_request" REST, "signature", AWS_HASHED},
        {AUTH "ID/20260101//s3/aws4_request" REST, "signature", AWS_HASHED},
        {AUTH "ID/20260101/r/s3/aws5_request" REST, "signature", AWS_HASHED},
        {AUTH "ID/20260101/r/s3/aws4_request, Signature=0\r\n", "signature", AWS_HASHED},
        {"", "signature_scope", AWS_HASHED},
    };
    static const struct credential pinned = {
        .kind = CREDENTIAL_AWS, .region = "r", .service = "s3"};
    struct aws_claim claim;
    struct head h;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        parse(&h, "GET", "/", "a.example", rows[i].fields);
        const char *got = aws_claim(&h, &any, &claim);
        if ((got == NULL) != (rows[i].want == NULL) || (got && strcmp(got, rows[i].want) != 0))
            printf("# row %zu: %s\n", i, got ? got : "fine");
        CU_ASSERT((got == NULL) == (rows[i].want == NULL) &&
                  (got == NULL || strcmp(got, rows[i].want) == 0));
        CU_ASSERT(got || (claim.payload == rows[i].payload && slice_eq(claim.key_id, SLICE("ID"))));
        http_head_free(&h);
    }
    parse(&h, "GET", "/", "a.example", "");
    CU_ASSERT_PTR_NULL(aws_claim(&h, &pinned, &claim));
    http_head_free(&h);
    parse(&h, "GET", "/", "a.example", AUTH "ID/20260101/other/s3/aws4_request" REST);
    CU_ASSERT_STRING_EQUAL(aws_claim(&h, &pinned, &claim), "signature_scope");
    http_head_free(&h);
}

/* Uploads in signed chunks: how much they hold has to be said, once, and what trails them. */
static void test_chunked_claims(void)
{
#define S3      AUTH "ID/20260101/r/s3/aws4_request" REST
#define CHUNKS  "X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
#define DECODED "X-Amz-Decoded-Content-Length: "
    static const struct {
        const char *fields;
        bool body, fine;
    } rows[] = {
        {S3 CHUNKS "\r\n" DECODED "5\r\n", true, true},
        {S3 CHUNKS "\r\n" DECODED "5\r\n", false, false},
        {S3 CHUNKS "\r\n", true, false},
        {S3 CHUNKS "\r\n" DECODED "+5\r\n", true, false},
        {S3 CHUNKS "\r\n" DECODED "9223372036854775808\r\n", true, false},
        {S3 CHUNKS "\r\n" DECODED "5\r\n" DECODED "5\r\n", true, false},
        {S3 CHUNKS "\r\n" DECODED "5\r\nX-Amz-Trailer: x-amz-checksum-crc32\r\n", true, false},
        {S3 CHUNKS "-TRAILER\r\n" DECODED "5\r\nX-Amz-Trailer: x-amz-checksum-crc32\r\n", true,
         true},
        {S3 CHUNKS "-TRAILER\r\n" DECODED "5\r\n", true, false},
        {S3 CHUNKS "-TRAILER\r\n" DECODED "5\r\nX-Amz-Trailer: a\r\nX-Amz-Trailer: b\r\n", true,
         false},
        {S3 "X-Amz-Content-Sha256: STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD\r\n" DECODED "5\r\n",
         true, false},
        {AUTH "ID/20260101/r/ec2/aws4_request" REST CHUNKS "\r\n" DECODED "5\r\n", true, false},
    };
    struct aws_claim claim;
    struct head h;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char fields[1024];
        snprintf(fields, sizeof fields, "%s%s", rows[i].fields,
                 rows[i].body ? "Content-Length: 90\r\n" : "");
        parse(&h, "PUT", "/", "a.example", fields);
        const char *got = aws_claim(&h, &any, &claim);
        if ((got == NULL) != rows[i].fine)
            printf("# row %zu: %s\n", i, got ? got : "fine");
        CU_ASSERT(rows[i].fine ? got == NULL && claim.payload == AWS_CHUNKS && claim.decoded == 5
                               : got && strcmp(got, "signature_streaming") == 0);
        http_head_free(&h);
    }
    parse(&h, "PUT", "/", "a.example",
          S3 "X-Amz-Content-Sha256: " EMPTY "\r\n"
             "X-Amz-Content-Sha256: UNSIGNED-PAYLOAD\r\n");
    CU_ASSERT_STRING_EQUAL(aws_claim(&h, &any, &claim), "signature");
    http_head_free(&h);
    char names[5000] = AUTH "ID/20260101/r/s3/aws4_request, SignedHeaders=";
    size_t n = strlen(names); /* names too many to be kept */
    memset(names + n, 'h', AWS_SIGNED_MAX);
    snprintf(names + n + AWS_SIGNED_MAX, 40, ", Signature=0\r\n");
    parse(&h, "GET", "/", "a.example", names);
    CU_ASSERT_STRING_EQUAL(aws_claim(&h, &any, &claim), "signature");
    http_head_free(&h);
}

/* What is claimed becomes a published signature in a field; what the client had there is gone. */
static void test_prepared(void)
{
    enum { THEN = 1369353600 }; /* 2013-05-24T00:00:00Z */
    struct head h;
    struct authority a = {0};
    struct aws_claim claim;
    struct aws_scope s;
    struct aws_pair pair = {slice_str(s3_id), slice_str(s3_key), {"", 0}};
    char names[AWS_SIGNED_MAX], sig[AWS_HEX + 1], want[512];
    struct slice none = {"", 0};
    CU_ASSERT_EQUAL(authority_parse(&a, SCHEME_HTTPS, SLICE("examplebucket.s3.amazonaws.com")), 0);
    parse(&h, "GET", "/test.txt", a.host,
          AUTH "ID/20260101/us-east-1/s3/aws4_request, SignedHeaders=host;range, Signature=0\r\n"
               "Range: bytes=0-9\r\nX-Amz-Date: theirs\r\nDate: theirs\r\n"
               "X-Amz-Security-Token: theirs\r\nX-Amz-Content-Sha256: not one\r\n");
    CU_ASSERT_PTR_NULL(aws_claim(&h, &any, &claim));
    CU_ASSERT_EQUAL(claim.payload, AWS_HASHED);
    aws_strip(&h);
    CU_ASSERT_EQUAL(h.n, 1);
    CU_ASSERT_EQUAL_FATAL(aws_prepare(&h, &a, &claim, none, none, THEN, &s, names), 0);
    CU_ASSERT_STRING_EQUAL(names, "host;range;x-amz-content-sha256;x-amz-date");
    CU_ASSERT_EQUAL(aws_sign(&pair, &s, sig), 0);
    CU_ASSERT_STRING_EQUAL(sig, s3[0].want);
    CU_ASSERT_EQUAL(aws_finish(&h, &s, names, slice_str(s3_id), slice_str(sig)), 0);
    snprintf(want, sizeof want,
             "AWS4-HMAC-SHA256 Credential=%s/20130524/us-east-1/s3/aws4_request, SignedHeaders="
             "host;range;x-amz-content-sha256;x-amz-date, Signature=%s",
             s3_id, s3[0].want);
    CU_ASSERT(slice_eq_str(http_head_find(&h, "authorization")->value, want));
    CU_ASSERT_EQUAL(http_head_count(&h, "authorization"), 1);
    /* of a session; another service; a hash that the client claimed */
    claim.payload = AWS_CLAIMED;
    snprintf(claim.hash, sizeof claim.hash, "%s", EMPTY);
    snprintf(claim.service, sizeof claim.service, "ec2");
    CU_ASSERT_EQUAL(aws_prepare(&h, &a, &claim, SLICE("not hashed"), SLICE("tok"), THEN, &s, names),
                    0);
    CU_ASSERT_STRING_EQUAL(names,
                           "host;range;x-amz-content-sha256;x-amz-date;x-amz-security-token");
    CU_ASSERT(slice_eq_str(http_head_find(&h, "x-amz-content-sha256")->value, EMPTY));
    CU_ASSERT(slice_eq_str(http_head_find(&h, "x-amz-security-token")->value, "tok"));
    while (h.n < HEAD_FIELDS_MAX) /* no room */
        CU_ASSERT_EQUAL(http_head_add(&h, "x-amz-more", SLICE("v")), 0);
    http_head_remove(&h, "x-amz-date");
    CU_ASSERT_EQUAL(http_head_add(&h, "x-amz-more", SLICE("v")), 0);
    CU_ASSERT_EQUAL(aws_prepare(&h, &a, &claim, none, SLICE("tok"), THEN, &s, names), -1);
    http_head_free(&h);
}

static void test_presigned(void)
{
    struct head h;
    parse(&h, "GET",
          "/b/k?a=1&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=ID%2F20260101%2Fr%2Fs3%2F"
          "aws4_request&X-Amz-Date=x&X-Amz-Expires=9&X-Amz-SignedHeaders=host&X-Amz-Signature=0&b"
          "&X-Amz-Security-Token=t%2Bk",
          "a.example", "");
    CU_ASSERT_PTR_NULL(aws_lift(&h));
    CU_ASSERT(slice_eq(http_head_find(&h, "x-amz-security-token")->value, SLICE("t+k")));
    CU_ASSERT(slice_eq(h.query, SLICE("a=1&b")));
    CU_ASSERT(slice_eq(http_head_find(&h, "authorization")->value,
                       SLICE("AWS4-HMAC-SHA256 Credential=ID/20260101/r/s3/aws4_request, "
                             "SignedHeaders=host, Signature=0")));
    CU_ASSERT(
        slice_eq(http_head_find(&h, "x-amz-content-sha256")->value, SLICE("UNSIGNED-PAYLOAD")));
    http_head_free(&h);
    static const char *const bad[] = {
        "/?X-Amz-Signature=0",
        "/?X-Amz-Credential=a&X-Amz-SignedHeaders=h&X-Amz-Signature=0&X-Amz-Signature=1",
        "/?X-Amz-Credential=a%0d&X-Amz-SignedHeaders=h&X-Amz-Signature=0",
        "/?X-Amz-Credential=a&X-Amz-SignedHeaders=h%20&X-Amz-Signature=0",
        "/?X-Amz-Credential=a&X-Amz-SignedHeaders=h&X-Amz-Signature=0&X-Amz-Security-Token=a%0ab",
        "/?x-amz-%63redential=a&X-Amz-Credential=b&X-Amz-SignedHeaders=h&X-Amz-Signature=0"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        parse(&h, "GET", bad[i], "a.example", "");
        CU_ASSERT_STRING_EQUAL(aws_lift(&h), "signature");
        http_head_free(&h);
    }
    parse(&h, "GET", "/?X-Amz-Credential=a&X-Amz-SignedHeaders=h&X-Amz-Signature=0", "a.example",
          "Authorization: x\r\n");
    CU_ASSERT_STRING_EQUAL(aws_lift(&h), "signature");
    http_head_free(&h);
    parse(&h, "GET", "/?a=1", "a.example", "");
    CU_ASSERT_PTR_NULL(aws_lift(&h));
    CU_ASSERT(slice_eq(h.query, SLICE("a=1")) && h.n == 0);
    http_head_free(&h);
}

void suite_aws(void)
{
    CU_pSuite s = CU_add_suite("aws", NULL, NULL);
    CU_add_test(s, "published vectors", test_vectors);
    CU_add_test(s, "what is not signed", test_scopes);
    CU_add_test(s, "what a client may claim", test_claims);
    CU_add_test(s, "what a client may claim of signed chunks", test_chunked_claims);
    CU_add_test(s, "a claim signed anew", test_prepared);
    CU_add_test(s, "presigned queries", test_presigned);
}

void tap_suites(void)
{
    suite_aws();
}
