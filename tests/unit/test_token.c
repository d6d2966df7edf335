/* Signed sandbox tokens: one spelling, one hour, nothing else. */
#include "token.h"
#include "address.h"
#include "tap_main.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

void suite_token(void);

static const unsigned char secret_half[TOKEN_KEY] = {7, 7, 7};
static const uint64_t now = 1700000000;

static EVP_PKEY *signing_key(void)
{
    return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret_half, sizeof secret_half);
}

static EVP_PKEY *verifying_key(void)
{
    unsigned char raw[TOKEN_KEY];
    size_t n = sizeof raw;
    EVP_PKEY *k = signing_key();
    CU_ASSERT_FATAL(k && EVP_PKEY_get_raw_public_key(k, raw, &n) == 1);
    EVP_PKEY_free(k);
    return token_public_key(raw, NULL);
}

static struct token sample(void)
{
    struct token t = {.sandbox = "box-1", .policy = "coder", .expiry = now + 3600};
    memset(t.seed, 0x5a, sizeof t.seed);
    return t;
}

static int sign(const struct token *t, char *text)
{
    struct err err;
    EVP_PKEY *k = signing_key();
    int r = token_sign(k, t, text, TOKEN_TEXT_MAX, &err);
    EVP_PKEY_free(k);
    return r;
}

static int verify(const char *text, size_t n, uint64_t when, struct token *t)
{
    struct err err;
    EVP_PKEY *k = verifying_key();
    CU_ASSERT_PTR_NOT_NULL_FATAL(k);
    int r = token_verify(k, (struct slice){text, n}, when, t, &err);
    EVP_PKEY_free(k);
    return r;
}

static void test_round(void)
{
    struct token t = sample(), back;
    char text[TOKEN_TEXT_MAX];
    CU_ASSERT_FATAL(sign(&t, text) == 0);
    CU_ASSERT(strncmp(text, "dwt1.", 5) == 0);
    CU_ASSERT_FATAL(verify(text, strlen(text), now, &back) == 0);
    CU_ASSERT_STRING_EQUAL(back.sandbox, "box-1");
    CU_ASSERT_STRING_EQUAL(back.policy, "coder");
    CU_ASSERT_EQUAL(back.expiry, now + 3600);
    CU_ASSERT(memcmp(back.seed, t.seed, sizeof t.seed) == 0);
    CU_ASSERT_EQUAL(back.source_family, 0);
}

static void test_largest(void)
{
    struct token t = sample(), back;
    char text[TOKEN_TEXT_MAX];
    memset(t.sandbox, 'a', TOKEN_NAME_MAX);
    memset(t.policy, 'P', TOKEN_NAME_MAX);
    t.source_family = AF_INET6;
    t.source_bits = 128;
    memset(t.source, 0xff, 16);
    CU_ASSERT_FATAL(sign(&t, text) == 0);
    CU_ASSERT(strlen(text) < TOKEN_TEXT_MAX);
    CU_ASSERT_FATAL(verify(text, strlen(text), now, &back) == 0);
    CU_ASSERT_EQUAL(strlen(back.sandbox), TOKEN_NAME_MAX);
    CU_ASSERT_EQUAL(strlen(back.policy), TOKEN_NAME_MAX);
    CU_ASSERT_EQUAL(back.source_bits, 128);
}

static void test_times(void)
{
    struct token t = sample(), back;
    char text[TOKEN_TEXT_MAX];
    CU_ASSERT_FATAL(sign(&t, text) == 0);
    CU_ASSERT(verify(text, strlen(text), now + 3599, &back) == 0);
    CU_ASSERT(verify(text, strlen(text), now + 3600, &back) == -1);
    CU_ASSERT(verify(text, strlen(text), now + 99999, &back) == -1);
    CU_ASSERT(verify(text, strlen(text), now - TOKEN_SKEW_SECONDS, &back) == 0);
    CU_ASSERT(verify(text, strlen(text), now - TOKEN_SKEW_SECONDS - 1, &back) == -1);
    t.expiry = UINT64_MAX;
    CU_ASSERT_FATAL(sign(&t, text) == 0);
    CU_ASSERT(verify(text, strlen(text), now, &back) == -1);
}

/* No other byte anywhere gives a token, nor does any shorter or longer text. */
static void test_every_byte(void)
{
    static const char others[] = {'A', 'B', '.', '=', '-', '_', ' ', '\0', '\n', '\x80'};
    struct token t = sample(), back;
    char text[TOKEN_TEXT_MAX], bad[TOKEN_TEXT_MAX + 2];
    EVP_PKEY *k = verifying_key();
    CU_ASSERT_FATAL(k && sign(&t, text) == 0);
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < sizeof others; j++) {
            memcpy(bad, text, n);
            bad[i] = others[j];
            if (bad[i] != text[i])
                CU_ASSERT(token_verify(k, (struct slice){bad, n}, now, &back, NULL) == -1);
        }
    for (size_t i = 0; i < n; i++)
        CU_ASSERT(token_verify(k, (struct slice){text, i}, now, &back, NULL) == -1);
    memcpy(bad, text, n);
    memcpy(bad + n, "A=", 2);
    CU_ASSERT(token_verify(k, (struct slice){bad, n + 1}, now, &back, NULL) == -1);
    CU_ASSERT(token_verify(k, (struct slice){bad + n, 1}, now, &back, NULL) == -1);
    EVP_PKEY_free(k);
}

static void test_other_key(void)
{
    static const unsigned char other[TOKEN_KEY] = {9};
    struct token t = sample(), back;
    char text[TOKEN_TEXT_MAX];
    EVP_PKEY *k = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, other, sizeof other);
    CU_ASSERT_FATAL(k && token_sign(k, &t, text, sizeof text, NULL) == 0);
    EVP_PKEY_free(k);
    CU_ASSERT(verify(text, strlen(text), now, &back) == -1);
}

/* Against a key of zeros a signature of zeros is good for a quarter of all texts. */
static void test_no_key(void)
{
    static const unsigned char none[TOKEN_KEY];
    CU_ASSERT_PTR_NULL(token_public_key(none, NULL));
}

static void test_not_signed(void)
{
    char text[TOKEN_TEXT_MAX];
    struct token t = sample();
    t.sandbox[0] = 0;
    CU_ASSERT(sign(&t, text) == -1);
    t = sample();
    snprintf(t.sandbox, sizeof t.sandbox, "Box");
    CU_ASSERT(sign(&t, text) == -1);
    t = sample();
    snprintf(t.policy, sizeof t.policy, "a b");
    CU_ASSERT(sign(&t, text) == -1);
    t = sample();
    t.source_family = AF_INET;
    t.source_bits = 33;
    CU_ASSERT(sign(&t, text) == -1);
    t.source_bits = 8;
    memcpy(t.source, "\x0a\x01\x00\x00", 4);
    CU_ASSERT(sign(&t, text) == -1); /* bits beyond the prefix */
    t.source[1] = 0;
    CU_ASSERT(sign(&t, text) == 0);
    CU_ASSERT(token_sign(NULL, &t, text, 100, NULL) == -1);
}

/* A payload that is well signed but of another form is refused too: the signer is ours, the readers
 * are many. */
static void sign_raw(const unsigned char *p, size_t n, char *out)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char signature[64];
    size_t at = 5, signature_n = sizeof signature;
    EVP_PKEY *k = signing_key();
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    memcpy(out, "dwt1.", 5);
    for (int part = 0; part < 2; part++) {
        const unsigned char *from = part ? signature : p;
        size_t len = part ? sizeof signature : n;
        for (size_t bit = 0; bit < len * 8; bit += 6) {
            unsigned v = (unsigned)from[bit / 8] << 8;
            v |= bit / 8 + 1 < len ? from[bit / 8 + 1] : 0;
            out[at++] = alphabet[v >> (10 - bit % 8) & 63];
        }
        if (part == 0) {
            CU_ASSERT_FATAL(EVP_DigestSignInit(md, NULL, NULL, NULL, k) == 1 &&
                            EVP_DigestSign(md, signature, &signature_n, (unsigned char *)out, at) ==
                                1);
            out[at++] = '.';
        }
    }
    out[at] = 0;
    EVP_MD_CTX_free(md);
    EVP_PKEY_free(k);
}

/* Fields that are there twice, or of another length, with all that follows in its place. */
static void test_lengths(const unsigned char *good, size_t n)
{
    enum { EXPIRY = 6, SEED = 16 };
    unsigned char p[128];
    char text[TOKEN_TEXT_MAX];
    struct token back;
    memcpy(p, good, n);
    memcpy(p + n, good + SEED, n - SEED); /* another seed */
    sign_raw(p, 2 * n - SEED, text);
    CU_ASSERT(verify(text, strlen(text), now, &back) == -1);
    memcpy(p + n, "\x05\x05\x08\x0a\0\0\0\x05\x05\x08\x0a\0\0\0", 14); /* two sources */
    sign_raw(p, n + 14, text);
    CU_ASSERT(verify(text, strlen(text), now, &back) == -1);
    memcpy(p, good, n);
    p[SEED + 1] = 15;
    sign_raw(p, n - 1, text);
    CU_ASSERT(verify(text, strlen(text), now, &back) == -1);
    memcpy(p, good, EXPIRY); /* seven bytes: the same number */
    memcpy(p + EXPIRY, "\x03\x07", 2);
    memcpy(p + EXPIRY + 2, good + EXPIRY + 3, n - EXPIRY - 3);
    sign_raw(p, n - 1, text);
    CU_ASSERT(verify(text, strlen(text), now, &back) == -1);
}

static void test_forms(void)
{
    /* box, pol, expiry now+100, seed */
    static const unsigned char good[] = {1,    1,    'b',  2,    1, 'p', 3, 8, 0, 0, 0, 0,
                                         0x65, 0x53, 0xf1, 0x64, 4, 16,  0, 0, 0, 0, 0, 0,
                                         0,    0,    0,    0,    0, 0,   0, 0, 0, 0};
    unsigned char p[128];
    char text[TOKEN_TEXT_MAX];
    struct token back;
    sign_raw(good, sizeof good, text);
    CU_ASSERT_FATAL(verify(text, strlen(text), now, &back) == 0); /* the control */
    for (size_t n = 0; n < sizeof good; n++) {                    /* cut short */
        sign_raw(good, n, text);
        CU_ASSERT(verify(text, strlen(text), now, &back) == -1);
    }
    memcpy(p, good, sizeof good);
    static const unsigned char tails[][6] = {
        {5, 1, 0},           /* a source of no address */
        {6, 1, 0},           /* an unknown field */
        {4, 1, 0},           /* one twice */
        {5, 4, 8, 10, 0, 0}, /* an address of three bytes */
        {0, 0},              /* type zero */
    };
    static const size_t tails_n[] = {3, 3, 3, 6, 2};
    for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
        memcpy(p + sizeof good, tails[i], tails_n[i]);
        sign_raw(p, sizeof good + tails_n[i], text);
        CU_ASSERT(verify(text, strlen(text), now, &back) == -1);
    }
    memcpy(p + sizeof good, "\x05\x05\x08\x0a\x00\x00\x00", 7);
    sign_raw(p, sizeof good + 7, text);
    CU_ASSERT(verify(text, strlen(text), now, &back) == 0 && back.source_bits == 8);
    p[sizeof good + 6] = 1; /* 10.0.0.1/8 */
    sign_raw(p, sizeof good + 7, text);
    CU_ASSERT(verify(text, strlen(text), now, &back) == -1);
    memcpy(p, good, sizeof good);
    p[2] = 'B';
    sign_raw(p, sizeof good, text);
    CU_ASSERT(verify(text, strlen(text), now, &back) == -1);
    memcpy(p, good, sizeof good);
    p[5] = ' ';
    sign_raw(p, sizeof good, text);
    CU_ASSERT(verify(text, strlen(text), now, &back) == -1);
    memcpy(p,
           "\x02\x01p\x01\x01"
           "b",
           6); /* each is well, and in another's place */
    sign_raw(p, sizeof good, text);
    CU_ASSERT(verify(text, strlen(text), now, &back) == -1);
    test_lengths(good, sizeof good);
}

static bool from(const struct token *t, const char *ip)
{
    struct address a;
    unsigned char raw[16];
    int family = strchr(ip, ':') ? AF_INET6 : AF_INET;
    CU_ASSERT_FATAL(inet_pton(family, ip, raw) == 1);
    address_set(&a, family, raw, 1);
    return token_from(t, &a.sa);
}

static void test_source(void)
{
    struct token t = sample();
    CU_ASSERT(from(&t, "1.2.3.4") && from(&t, "::1"));
    t.source_family = AF_INET;
    t.source_bits = 12;
    memcpy(t.source, "\xac\x10\0\0", 4);
    CU_ASSERT(from(&t, "172.31.0.1") && from(&t, "::ffff:172.16.0.1"));
    CU_ASSERT(!from(&t, "172.32.0.1") && !from(&t, "ac10::"));
    t.source_family = AF_INET6;
    t.source_bits = 0;
    memset(t.source, 0, 16);
    CU_ASSERT(from(&t, "2001::1") && !from(&t, "172.16.0.1"));
}

void suite_token(void)
{
    CU_pSuite s = CU_add_suite("token", NULL, NULL);
    CU_add_test(s, "sign and verify", test_round);
    CU_add_test(s, "the largest fits", test_largest);
    CU_add_test(s, "expiry and longest life", test_times);
    CU_add_test(s, "any other byte is refused", test_every_byte);
    CU_add_test(s, "another key", test_other_key);
    CU_add_test(s, "a key that was never filled in", test_no_key);
    CU_add_test(s, "what is never signed", test_not_signed);
    CU_add_test(s, "well signed, badly formed", test_forms);
    CU_add_test(s, "source prefix", test_source);
}

void tap_suites(void)
{
    suite_token();
}
