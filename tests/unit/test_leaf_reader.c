/* Leaves as a signer sends them, of the reader's key and of others: what is read is what was sent,
 * and serves a handshake. */
#include "leaf_reader.h"
#include "mint.h"
#include "tap_main.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <time.h>

void suite_leaf_reader(void);

static struct mint_issuer issuer;
static EVP_PKEY *own, *other, *rsa, *compressed;
static struct leaf_reader *reader;

/* The same key, written as one coordinate and a sign. */
static EVP_PKEY *in_short(EVP_PKEY *key)
{
    EVP_PKEY *made = EVP_PKEY_dup(key);
    return made && EVP_PKEY_set_utf8_string_param(made, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT,
                                                  "compressed") == 1
               ? made
               : NULL;
}

static int setup(void)
{
    own = EVP_EC_gen("P-256");
    other = EVP_EC_gen("P-256");
    rsa = EVP_RSA_gen(2048);
    compressed = own ? in_short(own) : NULL;
    reader = own ? leaf_reader_new(own) : NULL;
    return other && rsa && compressed && reader ? mint_issuer_make(&issuer, time(NULL), NULL) : -1;
}

static int teardown(void)
{
    leaf_reader_free(reader);
    leaf_reader_free(NULL);
    EVP_PKEY_free(own);
    EVP_PKEY_free(other);
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(compressed);
    mint_issuer_clear(&issuer);
    return 0;
}

static struct slice leaf_for(EVP_PKEY *key, const char *name, unsigned char **der)
{
    struct authority a;
    CU_ASSERT_EQUAL_FATAL(authority_parse(&a, SCHEME_HTTPS, slice_str(name)), 0);
    X509 *x = mint_leaf(&issuer, &a, key, 24, time(NULL), NULL);
    *der = NULL;
    int n = x ? i2d_X509(x, der) : -1;
    CU_ASSERT_FATAL(n > 0);
    X509_free(x);
    return (struct slice){(char *)*der, (size_t)n};
}

static bool is_encoded_as(X509 *x, struct slice der)
{
    unsigned char *made = NULL;
    int n = i2d_X509(x, &made);
    bool same = n >= 0 && (size_t)n == der.n && memcmp(made, der.p, der.n) == 0;
    OPENSSL_free(made);
    return same;
}

/* With a client that verifies it up to the issuer. */
static bool serves(X509 *leaf, const char *host, int version)
{
    SSL_CTX *theirs = SSL_CTX_new(TLS_client_method()), *ours = SSL_CTX_new(TLS_server_method());
    BIO *left, *right;
    int c = 0, s = 0;
    SSL_CTX_set_min_proto_version(ours, version);
    SSL_CTX_set_max_proto_version(ours, version);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(theirs), issuer.cert);
    SSL_CTX_set_verify(theirs, SSL_VERIFY_PEER, NULL);
    SSL *client = SSL_new(theirs), *server = SSL_new(ours);
    SSL_set1_host(client, host);
    STACK_OF(X509) *chain = sk_X509_new_null();
    sk_X509_push(chain, issuer.cert);
    CU_ASSERT_EQUAL(SSL_use_cert_and_key(server, leaf, own, chain, 1), 1);
    CU_ASSERT_EQUAL(ERR_peek_error(), 0); /* SSL_get_error would take it for the handshake's */
    sk_X509_free(chain);
    CU_ASSERT_EQUAL_FATAL(BIO_new_bio_pair(&left, 0, &right, 0), 1);
    SSL_set_bio(client, left, left);
    SSL_set_bio(server, right, right);
    SSL_set_connect_state(client);
    SSL_set_accept_state(server);
    for (int i = 0; i < 20 && !(c == 1 && s == 1); i++) {
        c = SSL_do_handshake(client);
        s = SSL_do_handshake(server);
    }
    bool good = c == 1 && s == 1 && ERR_peek_error() == 0;
    SSL_free(client);
    SSL_free(server);
    SSL_CTX_free(theirs);
    SSL_CTX_free(ours);
    ERR_clear_error();
    return good;
}

static void test_own(void)
{
    static const char *const names[] = {
        "a.example", "10.0.0.1",
        "a-name-of-more-than-sixty-four-bytes-has-no-common-name.in-its-subject.example"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        unsigned char *der;
        struct slice s = leaf_for(own, names[i], &der);
        X509 *x = leaf_reader_read(reader, s);
        CU_ASSERT_FATAL(x && ERR_peek_error() == 0);
        CU_ASSERT(is_encoded_as(x, s));
        CU_ASSERT_EQUAL(EVP_PKEY_eq(X509_get0_pubkey(x), own), 1);
        CU_ASSERT_PTR_NULL(EVP_PKEY_get0_provider(X509_get0_pubkey(x))); /* no decoder was asked */
        if (i != 1) {
            CU_ASSERT(serves(x, names[i], TLS1_2_VERSION));
            CU_ASSERT(serves(x, names[i], TLS1_3_VERSION));
        }
        X509_free(x);
        OPENSSL_free(der);
    }
}

static void test_others(void)
{
    EVP_PKEY *const keys[] = {other, rsa};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        unsigned char *der;
        struct slice s = leaf_for(keys[i], "a.example", &der);
        CU_ASSERT_PTR_NULL(leaf_reader_read(reader, s));
        CU_ASSERT_EQUAL(ERR_peek_error(), 0);
        OPENSSL_free(der);
    }
}

/* The reader's key in another form is taken as it was sent. */
static void test_form(void)
{
    unsigned char *der;
    struct slice s = leaf_for(compressed, "a.example", &der);
    X509 *x = leaf_reader_read(reader, s);
    CU_ASSERT_FATAL(x != NULL);
    CU_ASSERT(is_encoded_as(x, s));
    CU_ASSERT(serves(x, "a.example", TLS1_3_VERSION));
    X509_free(x);
    OPENSSL_free(der);
}

/* Cut, longer, or with a byte changed: refused, or still just what was sent. */
static void test_damaged(void)
{
    unsigned char *der, copy[4096];
    struct slice s = leaf_for(own, "a.example", &der);
    CU_ASSERT_FATAL(s.n < sizeof copy);
    memcpy(copy, der, s.n);
    copy[s.n] = 0;
    for (size_t n = 0; n < s.n; n++)
        CU_ASSERT_PTR_NULL(leaf_reader_read(reader, (struct slice){(char *)copy, n}));
    CU_ASSERT_PTR_NULL(leaf_reader_read(reader, (struct slice){(char *)copy, s.n + 1}));
    size_t taken = 0;
    for (size_t i = 0; i < s.n; i++) {
        copy[i] ^= 1;
        X509 *x = leaf_reader_read(reader, (struct slice){(char *)copy, s.n});
        if (x) {
            taken++;
            CU_ASSERT(is_encoded_as(x, (struct slice){(char *)copy, s.n}));
            CU_ASSERT_EQUAL(EVP_PKEY_eq(X509_get0_pubkey(x), own), 1);
        }
        X509_free(x);
        copy[i] ^= 1;
    }
    printf("# taken with a byte of another value: %zu of %zu\n", taken, s.n);
    CU_ASSERT_EQUAL(ERR_peek_error(), 0);
    OPENSSL_free(der);
}

void suite_leaf_reader(void)
{
    CU_pSuite s = CU_add_suite("leaf_reader", setup, teardown);
    CU_add_test(s, "leaves of its key", test_own);
    CU_add_test(s, "leaves of other keys", test_others);
    CU_add_test(s, "its key in another form", test_form);
    CU_add_test(s, "damaged leaves", test_damaged);
}

void tap_suites(void)
{
    suite_leaf_reader();
}
