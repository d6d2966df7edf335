/* Leaves as clients see them: OpenSSL's own verification of chain, purpose and host. */
#include "mint.h"
#include "mint_policy.h"
#include "tap_main.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

void suite_mint(void);

static struct mint_issuer issuer;
static EVP_PKEY *leaf_key;
static unsigned char *spki;
static size_t spki_len;
static time_t now;

static int setup(void)
{
    now = time(NULL);
    leaf_key = EVP_EC_gen("P-256");
    int n = i2d_PUBKEY(leaf_key, &spki);
    spki_len = (size_t)n;
    return n > 0 && mint_issuer_make(&issuer, now, NULL) == 0 ? 0 : -1;
}

static int teardown(void)
{
    mint_issuer_clear(&issuer);
    EVP_PKEY_free(leaf_key);
    OPENSSL_free(spki);
    return 0;
}

static struct slice key_slice(void)
{
    return (struct slice){(char *)spki, spki_len};
}

/* From text to leaf, as the signer does it. */
static X509 *leaf_for(const char *host, unsigned hours)
{
    struct authority a;
    EVP_PKEY *key = NULL;
    if (mint_policy_check(slice_str(host), key_slice(), &a, &key, NULL) < 0)
        return NULL;
    X509 *x = mint_leaf(&issuer, &a, key, hours, now, NULL);
    EVP_PKEY_free(key);
    return x;
}

static int verifies_at(X509 *leaf, const char *host, bool ip, time_t at)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    X509_STORE_add_cert(store, issuer.cert);
    X509_STORE_CTX_init(ctx, store, leaf, NULL);
    X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
    X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER);
    X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
    X509_VERIFY_PARAM_set_time(param, at);
    if (ip)
        X509_VERIFY_PARAM_set1_ip_asc(param, host);
    else
        X509_VERIFY_PARAM_set1_host(param, host, 0);
    int ok = X509_verify_cert(ctx) == 1;
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    return ok;
}

static const char *long_name(void)
{
    static char name[HOST_MAX + 1];
    memset(name, 'a', HOST_MAX);
    for (int i = 63; i < HOST_MAX; i += 64)
        name[i] = '.';
    name[HOST_MAX] = 0;
    return name;
}

static void test_hosts(void)
{
    static const struct {
        const char *host;
        bool ip;
    } hosts[] = {
        {"api.github.com", false},
        {"localhost", false},
        {"xn--bcher-kva.example", false},
        {"_dmarc.under_score.example", false},
        {"192.0.2.1", true},
        {"2001:db8::1", true},
        {"::1", true},
        {NULL, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        const char *host = hosts[i].host ? hosts[i].host : long_name();
        X509 *x = leaf_for(host, 7);
        CU_ASSERT_PTR_NOT_NULL_FATAL(x);
        CU_ASSERT(verifies_at(x, host, hosts[i].ip, now));
        CU_ASSERT(!verifies_at(x, hosts[i].ip ? "192.0.2.2" : "other.example", hosts[i].ip, now));
        CU_ASSERT(!verifies_at(x, "a.api.github.com", false, now));
        X509_free(x);
    }
}

static void test_subject(void)
{
    char cn[300];
    int critical;
    X509 *x = leaf_for("api.github.com", 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(x);
    X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, cn, sizeof cn);
    CU_ASSERT_STRING_EQUAL(cn, "api.github.com");
    GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, &critical, NULL);
    CU_ASSERT_EQUAL(sk_GENERAL_NAME_num(names), 1);
    CU_ASSERT_EQUAL(critical, 0);
    GENERAL_NAMES_free(names);
    X509_free(x);

    char host[80]; /* 64 bytes are in the subject, 65 are not */
    for (size_t n = 64; n <= 65; n++) {
        memset(host, 'b', n);
        host[32] = '.';
        host[n] = 0;
        x = leaf_for(host, 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(x);
        CU_ASSERT_EQUAL(X509_NAME_entry_count(X509_get_subject_name(x)), n == 64);
        names = X509_get_ext_d2i(x, NID_subject_alt_name, &critical, NULL);
        CU_ASSERT_EQUAL(critical, n == 65);
        CU_ASSERT(verifies_at(x, host, false, now));
        GENERAL_NAMES_free(names);
        X509_free(x);
    }
}

static void test_shape(void)
{
    X509 *x = leaf_for("a.example", 7), *y = leaf_for("a.example", 7);
    CU_ASSERT_PTR_NOT_NULL_FATAL(x);
    CU_ASSERT_PTR_NOT_NULL_FATAL(y);
    CU_ASSERT_EQUAL(X509_get_version(x), X509_VERSION_3);
    CU_ASSERT_EQUAL(X509_check_ca(x), 0);
    CU_ASSERT_EQUAL(X509_get_key_usage(x), KU_DIGITAL_SIGNATURE);
    CU_ASSERT_EQUAL(X509_get_extended_key_usage(x), XKU_SSL_SERVER);
    CU_ASSERT_PTR_NOT_NULL(X509_get0_subject_key_id(x));
    CU_ASSERT(ASN1_OCTET_STRING_cmp(X509_get0_authority_key_id(x),
                                    X509_get0_subject_key_id(issuer.cert)) == 0);
    CU_ASSERT_EQUAL(EVP_PKEY_eq(X509_get0_pubkey(x), leaf_key), 1);
    const ASN1_INTEGER *a = X509_get0_serialNumber(x), *b = X509_get0_serialNumber(y);
    BIGNUM *n = ASN1_INTEGER_to_BN(a, NULL);
    CU_ASSERT(!BN_is_negative(n) && BN_num_bits(n) <= 127 && BN_num_bits(n) > 64);
    CU_ASSERT(ASN1_INTEGER_cmp(a, b) != 0);
    BN_free(n);
    X509_free(x);
    X509_free(y);
}

static void test_life(void)
{
    X509 *x = leaf_for("a.example", 2);
    CU_ASSERT_PTR_NOT_NULL_FATAL(x);
    CU_ASSERT(verifies_at(x, "a.example", false, now - MINT_SKEW_SECONDS + 5));
    CU_ASSERT(!verifies_at(x, "a.example", false, now - MINT_SKEW_SECONDS - 5));
    CU_ASSERT(verifies_at(x, "a.example", false, now + 2 * 3600 - 5));
    CU_ASSERT(!verifies_at(x, "a.example", false, now + 2 * 3600 + 5));
    X509_free(x);
    CU_ASSERT_PTR_NULL(leaf_for("a.example", 0));
    CU_ASSERT_PTR_NULL(leaf_for("a.example", MINT_HOURS_MAX + 1));

    /* never beyond the CA's own end */
    struct authority a = {.kind = HOST_NAME, .host = "a.example"};
    time_t late = now + (time_t)MINT_CA_DAYS * 86400 - 3600;
    x = mint_leaf(&issuer, &a, leaf_key, 7, late, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(x);
    CU_ASSERT(ASN1_TIME_compare(X509_get0_notAfter(x), X509_get0_notAfter(issuer.cert)) <= 0);
    X509_free(x);
    struct err err = {0};
    CU_ASSERT_PTR_NULL(mint_leaf(&issuer, &a, leaf_key, 7, late + 7200, &err));
    CU_ASSERT_EQUAL(err.code, ERR_DENIED);
}

static void test_bad_hosts(void)
{
    static const char *const bad[] = {
        "",
        "*.example.com",
        "*",
        "A.example",
        "a.example.",
        "a..b",
        "a b",
        "a,DNS:b.com",
        "a.example/x",
        "a.example:443",
        "[::1]",
        "2001:db8:0::1",
        "2001:DB8::1",
        "::ffff:1.2.3.4 ",
        "1.2.3",
        "01.2.3.4",
        "0x7f.1",
        "fe80::1%lo",
        "user@a.example",
        "a.example\n",
        "-a.example",
        "b\xc3\xbc.example",
        ".example",
        ".",
    };
    struct authority a;
    EVP_PKEY *key = NULL;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = {0};
        int r = mint_policy_check(slice_str(bad[i]), key_slice(), &a, &key, &err);
        CU_ASSERT_EQUAL(r, -1);
        CU_ASSERT_EQUAL(err.code, ERR_DENIED);
        CU_ASSERT_PTR_NULL(key);
    }
    struct slice nul = {"a.example\0.evil.example", 23};
    static char longest[1024]; /* with a colon in it: what is copied into brackets */
    memset(longest, ':', sizeof longest - 1);
    struct err long_err = {0};
    CU_ASSERT_EQUAL(mint_policy_check(slice_str(longest), key_slice(), &a, &key, &long_err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(long_err.text, "1023 bytes"));
    CU_ASSERT_EQUAL(mint_policy_check(nul, key_slice(), &a, &key, NULL), -1);
    char over[HOST_MAX + 2];
    snprintf(over, sizeof over, "%sa", long_name());
    CU_ASSERT_EQUAL(mint_policy_check(slice_str(over), key_slice(), &a, &key, NULL), -1);
}

static int key_refused(EVP_PKEY *k)
{
    struct authority a;
    EVP_PKEY *key = NULL;
    unsigned char *der = NULL;
    int n = i2d_PUBKEY(k, &der);
    int r = mint_policy_check(SLICE("a.example"), (struct slice){(char *)der, (size_t)n}, &a, &key,
                              NULL);
    EVP_PKEY_free(key);
    OPENSSL_free(der);
    EVP_PKEY_free(k);
    return n > 0 && r < 0;
}

static void test_bad_keys(void)
{
    CU_ASSERT(key_refused(EVP_EC_gen("P-384")));
    CU_ASSERT(key_refused(EVP_EC_gen("secp256k1")));
    CU_ASSERT(key_refused(EVP_RSA_gen(2048)));
    CU_ASSERT(key_refused(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")));
    unsigned char raw[MINT_SPKI_LEN + 1] = {0};
    struct authority a;
    EVP_PKEY *key = NULL;
    memcpy(raw, spki, spki_len);
    struct slice longer = {(char *)raw, spki_len + 1}, shorter = {(char *)raw, spki_len - 1},
                 same = {(char *)raw, spki_len}, none = {"", 0};
    struct err kind_err = {0};
    static char zeros[MINT_SPKI_LEN]; /* no parser sees what does not begin as P-256 does */
    CU_ASSERT_EQUAL(mint_policy_check(SLICE("a.example"), (struct slice){zeros, sizeof zeros}, &a,
                                      &key, &kind_err),
                    -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(kind_err.text, "is not EC P-256"));
    CU_ASSERT_EQUAL(mint_policy_check(SLICE("a.example"), longer, &a, &key, NULL), -1);
    CU_ASSERT_EQUAL(mint_policy_check(SLICE("a.example"), shorter, &a, &key, NULL), -1);
    CU_ASSERT_EQUAL(mint_policy_check(SLICE("a.example"), none, &a, &key, NULL), -1);
    raw[60] ^= 1; /* off the curve */
    CU_ASSERT_EQUAL(mint_policy_check(SLICE("a.example"), same, &a, &key, NULL), -1);
    CU_ASSERT_PTR_NULL(key);
    raw[60] ^= 1;
    CU_ASSERT_EQUAL(mint_policy_check(SLICE("a.example"), same, &a, &key, NULL), 0);
    EVP_PKEY_free(key);
}

static void test_issuer(void)
{
    struct mint_issuer other, mixed;
    CU_ASSERT_EQUAL(mint_issuer_check(&issuer, now, NULL), 0);
    CU_ASSERT_EQUAL(X509_check_ca(issuer.cert), 1);
    CU_ASSERT_EQUAL(X509_get_pathlen(issuer.cert), 0);
    CU_ASSERT_EQUAL(X509_get_key_usage(issuer.cert), KU_KEY_CERT_SIGN);
    CU_ASSERT_EQUAL(mint_issuer_check(&issuer, now + (time_t)MINT_CA_DAYS * 86400 + 5, NULL), -1);
    CU_ASSERT_EQUAL(mint_issuer_check(&issuer, now - 3 * 86400, NULL), -1);
    CU_ASSERT_EQUAL_FATAL(mint_issuer_make(&other, now, NULL), 0);
    CU_ASSERT(
        X509_NAME_cmp(X509_get_subject_name(issuer.cert), X509_get_subject_name(other.cert)) != 0);
    mixed = (struct mint_issuer){.cert = issuer.cert, .key = other.key};
    CU_ASSERT_EQUAL(mint_issuer_check(&mixed, now, NULL), -1);
    X509 *leaf = leaf_for("a.example", 1); /* a leaf is no CA, whatever key it has */
    mixed = (struct mint_issuer){.cert = leaf, .key = leaf_key};
    CU_ASSERT_EQUAL(mint_issuer_check(&mixed, now, NULL), -1);
    X509_free(leaf);
    mint_issuer_clear(&other);
}

/* A form serves many leaves of one key: of the last host nothing stays, whatever it was. */
static void test_form(void)
{
    static const char *const hosts[] = {"a.example", "192.0.2.7", "b.example"};
    struct err err = {0};
    X509 *x = mint_form(leaf_key, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(x);
    int extensions = 0;
    for (size_t i = 0; i < 2 * ARRAY_LEN(hosts); i++) {
        struct authority a = {0};
        const char *host = i == 2 ? long_name() : hosts[i % ARRAY_LEN(hosts)];
        CU_ASSERT_EQUAL(mint_policy_host(slice_str(host), &a, &err), 0);
        CU_ASSERT_EQUAL_FATAL(mint_into(x, &issuer, &a, 1, now, &err), 0);
        CU_ASSERT_EQUAL(X509_verify(x, X509_get0_pubkey(issuer.cert)), 1);
        CU_ASSERT(extensions == 0 || X509_get_ext_count(x) == extensions);
        extensions = X509_get_ext_count(x);
        bool ip = a.kind != HOST_NAME;
        CU_ASSERT(ip || X509_check_host(x, host, 0, 0, NULL) == 1);
        CU_ASSERT_EQUAL(X509_check_ip_asc(x, host, 0) == 1, ip);
        for (size_t k = 0; k < ARRAY_LEN(hosts); k++)
            CU_ASSERT(strcmp(hosts[k], host) == 0 ||
                      (X509_check_host(x, hosts[k], 0, 0, NULL) != 1 &&
                       X509_check_ip_asc(x, hosts[k], 0) != 1));
        CU_ASSERT_EQUAL(X509_NAME_entry_count(X509_get_subject_name(x)), strlen(host) <= 64);
    }
    struct authority a = {0};
    CU_ASSERT_EQUAL(mint_policy_host(SLICE("a.example"), &a, &err), 0);
    CU_ASSERT_EQUAL(mint_into(x, &issuer, &a, 0, now, &err), -1);
    CU_ASSERT_EQUAL(mint_into(x, &issuer, &a, MINT_HOURS_MAX + 1, now, &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "out of bounds"));
    struct mint_issuer keyless = {.cert = issuer.cert,
                                  .key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")};
    CU_ASSERT_EQUAL(mint_into(x, &keyless, &a, 1, now, &err), -1); /* it cannot sign */
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot mint a leaf"));
    EVP_PKEY_free(keyless.key);
    X509_free(x);
}

/* A CA of the user's own, with this key and usage. */
static void own_ca(EVP_PKEY *key, const char *usage, const char *says)
{
    struct err err = {0};
    X509 *x = X509_new();
    X509V3_CTX ctx;
    const char *const wants[][2] = {{"basicConstraints", "critical,CA:TRUE"}, {"keyUsage", usage}};
    CU_ASSERT_FATAL(key != NULL && x != NULL);
    CU_ASSERT_EQUAL(X509_set_version(x, X509_VERSION_3), 1);
    CU_ASSERT_EQUAL(X509_set_pubkey(x, key), 1);
    ASN1_TIME_set(X509_getm_notBefore(x), now - 10);
    ASN1_TIME_set(X509_getm_notAfter(x), now + 1000);
    X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
    for (size_t i = 0; i < ARRAY_LEN(wants) && wants[i][1]; i++) {
        X509_EXTENSION *e = X509V3_EXT_conf(NULL, &ctx, wants[i][0], wants[i][1]);
        CU_ASSERT_EQUAL(X509_add_ext(x, e, -1), 1);
        X509_EXTENSION_free(e);
    }
    CU_ASSERT(X509_sign(x, key, EVP_sha256()) > 0);
    struct mint_issuer own = {x, key};
    int r = mint_issuer_check(&own, now, &err);
    CU_ASSERT_EQUAL(r, *says ? -1 : 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, says));
    mint_issuer_clear(&own);
}

static void test_own_ca(void)
{
    own_ca(EVP_EC_gen("P-256"), "keyCertSign", "");
    own_ca(EVP_EC_gen("P-384"), NULL, ""); /* where it does not say, anything goes */
    own_ca(EVP_RSA_gen(2048), "keyCertSign,cRLSign", "");
    own_ca(EVP_EC_gen("P-256"), "digitalSignature", "not one of a CA");
    own_ca(EVP_RSA_gen(1024), "keyCertSign", "neither EC of 256 bits");
    own_ca(EVP_EC_gen("P-224"), "keyCertSign", "neither EC of 256 bits");
}

void suite_mint(void)
{
    CU_pSuite s = CU_add_suite("mint", setup, teardown);
    CU_add_test(s, "leaves verify for their host and no other", test_hosts);
    CU_add_test(s, "common name up to 64 bytes, critical SAN beyond", test_subject);
    CU_add_test(s, "usage, key ids, serial numbers", test_shape);
    CU_add_test(s, "life is bounded by hours and by the CA's", test_life);
    CU_add_test(s, "hosts that are not canonical are refused", test_bad_hosts);
    CU_add_test(s, "keys other than EC P-256 are refused", test_bad_keys);
    CU_add_test(s, "what may sign", test_issuer);
    CU_add_test(s, "one form for many leaves", test_form);
    CU_add_test(s, "CAs of the user's own", test_own_ca);
}

void tap_suites(void)
{
    suite_mint();
}
