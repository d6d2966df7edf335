/* A key that signs elsewhere, in OpenSSL's own handshakes of both versions; and what the vault
 * signs of them. */
#include "tap_main.h"
#include "tls_sign.h"
#include "vault_key.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

void suite_vault_key(void);

static int setup(void)
{
    return vault_key_setup();
}

struct pair {
    char crt[8192], key[8192];
};

static size_t text_of(BIO *b, char *to, size_t size)
{
    int n = BIO_read(b, to, (int)size - 1);
    to[n > 0 ? n : 0] = 0;
    BIO_free(b);
    return (size_t)n;
}

static EVP_PKEY *make_key(const char *type)
{
    if (strncmp(type, "RSA", 3) == 0)
        return EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)(type[3] ? 1024 : 2048));
    return strchr(type, '-') ? EVP_PKEY_Q_keygen(NULL, NULL, "EC", type)
                             : EVP_PKEY_Q_keygen(NULL, NULL, type);
}

static struct pair make(const char *type)
{
    struct pair p;
    EVP_PKEY *key = make_key(type);
    X509 *x = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(x), -60);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)type, -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_sign(x, key, strncmp(type, "ED", 2) == 0 ? NULL : EVP_sha256());
    BIO *b = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(b, x);
    text_of(b, p.crt, sizeof p.crt);
    b = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(b, key, NULL, NULL, 0, NULL, NULL);
    text_of(b, p.key, sizeof p.key);
    X509_free(x);
    EVP_PKEY_free(key);
    return p;
}

static struct secret *pack(const char *crt, const char *key, const char *why)
{
    struct err err = {0};
    struct secret *s = tls_pack(slice_str(crt), slice_str(key), &err);
    CU_ASSERT((s == NULL) == (why != NULL));
    if (why)
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, why));
    return s;
}

static STACK_OF(X509) * chain_of(struct slice pem)
{
    STACK_OF(X509) *all = sk_X509_new_null();
    BIO *b = BIO_new_mem_buf(pem.p, (int)pem.n);
    X509 *x;
    while ((x = PEM_read_bio_X509(b, NULL, NULL, NULL)) != NULL)
        sk_X509_push(all, x);
    BIO_free(b);
    ERR_clear_error();
    return all;
}

static int any_client(int ok, X509_STORE_CTX *store)
{
    (void)ok;
    (void)store;
    return 1; /* that the key is the certificate's is OpenSSL's own check */
}

struct both {
    SSL_CTX *server_ctx, *client_ctx;
    SSL *server, *client;
    STACK_OF(X509) * chain;
    struct vault_key *key;
    unsigned wanted;
};

static void on_wanted(void *arg)
{
    ((struct both *)arg)->wanted++;
}

static void start(struct both *b, int version, bool ask, struct slice chain)
{
    static struct pair own;
    if (own.crt[0] == 0)
        own = make("P-256");
    BIO *left, *right;
    *b = (struct both){.server_ctx = SSL_CTX_new(TLS_server_method()),
                       .client_ctx = SSL_CTX_new(TLS_client_method())};
    SSL_CTX_set_min_proto_version(b->server_ctx, version);
    SSL_CTX_set_max_proto_version(b->server_ctx, version);
    b->server = SSL_new(b->server_ctx);
    b->client = SSL_new(b->client_ctx);
    STACK_OF(X509) *server = chain_of(slice_str(own.crt));
    BIO *key = BIO_new_mem_buf(own.key, -1);
    EVP_PKEY *pkey = PEM_read_bio_PrivateKey(key, NULL, NULL, NULL);
    SSL_use_certificate(b->server, sk_X509_value(server, 0));
    SSL_use_PrivateKey(b->server, pkey);
    EVP_PKEY_free(pkey);
    BIO_free(key);
    sk_X509_pop_free(server, X509_free);
    if (ask)
        SSL_set_verify(b->server, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, any_client);
    CU_ASSERT_EQUAL_FATAL(BIO_new_bio_pair(&left, 0, &right, 0), 1);
    SSL_set_bio(b->server, left, left);
    SSL_set_bio(b->client, right, right);
    SSL_set_accept_state(b->server);
    SSL_set_connect_state(b->client);
    b->chain = chain_of(chain);
    b->key = vault_key_new(b->client, b->chain, on_wanted, b);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->key);
}

/* Until the client waits for a signature, both are done, or one has failed. */
static int drive(struct both *b)
{
    for (int i = 0; i < 50; i++) {
        int c = SSL_do_handshake(b->client);
        int why = c == 1 ? 0 : SSL_get_error(b->client, c);
        int s = SSL_do_handshake(b->server);
        if (why == SSL_ERROR_WANT_ASYNC || (c == 1 && s == 1))
            return why;
        if (c != 1 && why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
            return why;
    }
    return -1;
}

static void stop(struct both *b)
{
    vault_key_free(b->key);
    SSL_free(b->client);
    SSL_free(b->server);
    SSL_CTX_free(b->client_ctx);
    SSL_CTX_free(b->server_ctx);
    sk_X509_pop_free(b->chain, X509_free);
    ERR_clear_error();
}

static void handshake(const struct secret *s, int version)
{
    struct both b;
    struct buf out;
    struct err err = {0};
    uint16_t scheme = 0;
    start(&b, version, true, tls_certificates(secret_slice(s)));
    CU_ASSERT_EQUAL(drive(&b), SSL_ERROR_WANT_ASYNC);
    CU_ASSERT_EQUAL(b.wanted, 1);
    CU_ASSERT_EQUAL(drive(&b), SSL_ERROR_WANT_ASYNC); /* it waits on */
    struct slice text = vault_key_text(b.key, &scheme);
    CU_ASSERT(text.n > 0 && scheme != 0 && !vault_key_used(b.key));
    buf_init(&out, TLS_SIGNATURE_MAX);
    CU_ASSERT_EQUAL(tls_sign(secret_slice(s), scheme, text, &out, &err), 0);
    /* less is nothing that a handshake signs; 16 is between the lengths of two hashes */
    for (size_t cut = 1; cut < 100; cut++)
        CU_ASSERT((cut == 16 || !tls_is_signed_text((struct slice){text.p, text.n - cut})) &&
                  !tls_is_signed_text((struct slice){text.p + cut, text.n - cut}));
    vault_key_signed(b.key, buf_slice(&out));
    buf_free(&out);
    CU_ASSERT_EQUAL(drive(&b), 0);
    CU_ASSERT(vault_key_used(b.key));
    X509 *seen = SSL_get1_peer_certificate(b.server);
    CU_ASSERT(seen && X509_cmp(seen, sk_X509_value(b.chain, 0)) == 0);
    X509_free(seen);
    stop(&b);
}

static void test_handshakes(void)
{
    static const char *const types[] = {"RSA", "P-256", "P-384", "P-521", "ED25519"};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct pair p = make(types[i]);
        struct secret *s = pack(p.crt, p.key, NULL);
        handshake(s, TLS1_3_VERSION);
        handshake(s, TLS1_2_VERSION);
        secret_unref(s);
    }
}

static void test_given_up(void)
{
    struct pair p = make("RSA");
    struct secret *s = pack(p.crt, p.key, NULL);
    struct slice chain = tls_certificates(secret_slice(s));
    struct both b;
    static const struct slice signatures[] = {{"", 0}, {"nonsense", 8}};
    for (size_t i = 0; i < ARRAY_LEN(signatures); i++) {
        start(&b, TLS1_3_VERSION, true, chain);
        CU_ASSERT_EQUAL(drive(&b), SSL_ERROR_WANT_ASYNC);
        vault_key_signed(b.key, signatures[i]);
        drive(&b);
        CU_ASSERT(!SSL_is_init_finished(b.server) && vault_key_used(b.key) == (i == 1));
        stop(&b);
    }
    start(&b, TLS1_3_VERSION, true, chain); /* while it waits: nothing is left behind */
    CU_ASSERT_EQUAL(drive(&b), SSL_ERROR_WANT_ASYNC);
    stop(&b);
    start(&b, TLS1_2_VERSION, false, chain);
    CU_ASSERT_EQUAL(drive(&b), 0);
    CU_ASSERT(!vault_key_used(b.key) && b.wanted == 0); /* nobody asked */
    stop(&b);
    secret_unref(s);
}

static void test_pack(void)
{
    char all[40000];
    struct pair a = make("P-256"), other = make("P-256"), small = make("RSA1"), ed = make("ED448");
    snprintf(all, sizeof all, "%s\n%s\n%s", a.key, a.crt, other.crt);
    struct secret *s = pack(all, a.key, NULL);
    struct slice chain = tls_certificates(secret_slice(s));
    CU_ASSERT(slice_find_slice(chain, SLICE("PRIVATE")) < 0); /* what else is in the file stays */
    STACK_OF(X509) *both = chain_of(chain);
    CU_ASSERT_EQUAL(sk_X509_num(both), 2);
    sk_X509_pop_free(both, X509_free);
    secret_unref(s);
    pack(a.crt, other.key, "not that of its first certificate");
    pack(a.key, a.key, "not one in PEM");
    pack("", a.key, "not one in PEM");
    pack(a.crt, a.crt, "not a private key");
    pack(a.crt, "", "not a private key");
    pack(small.crt, small.key, "2048 bits");
    pack(ed.crt, ed.key, "neither RSA");
    size_t n = strlen(a.crt);
    for (size_t i = 0; i < 17; i++)
        memcpy(all + i * n, a.crt, n + 1);
    pack(all, a.key, "more than 16");
    CU_ASSERT_EQUAL(tls_certificates(SLICE("AKID\nkey\n")).n, 0);
}

static void refuses(const struct secret *s, uint16_t scheme, struct slice text)
{
    struct buf out;
    struct err err = {0};
    buf_init(&out, TLS_SIGNATURE_MAX);
    CU_ASSERT_EQUAL(tls_sign(secret_slice(s), scheme, text, &out, &err), -1);
    CU_ASSERT(buf_len(&out) == 0 && err.text[0]);
    buf_free(&out);
}

static void test_text(void)
{
    char text[64 + 34 + 32];
    struct pair p = make("RSA");
    struct secret *s = pack(p.crt, p.key, NULL);
    struct slice good = {text, sizeof text};
    memset(text, ' ', 64);
    memcpy(text + 64, "TLS 1.3, client CertificateVerify", 34);
    memset(text + 98, 7, 32);
    CU_ASSERT(tls_is_signed_text(good));
    refuses(s, 0x0403, good); /* not this key's */
    refuses(s, 0x0201, good); /* SHA-1 */
    refuses(s, 0, good);
    refuses(s, 0x0804, SLICE("hello"));
    refuses(s, 0x0804, SLICE(""));
    text[73] = 's'; /* "TLS 1.3, server": another role's */
    refuses(s, 0x0804, good);
    text[73] = 'c';
    text[10] = 'x';
    refuses(s, 0x0804, good);
    /* TLS 1.2: ClientHello, ServerHello, Certificate, ClientKeyExchange */
    static const char whole[] = "\1\0\0\1a\2\0\0\1b\13\0\0\0\20\0\0\2cd";
    CU_ASSERT(tls_is_signed_text((struct slice){whole, 20}));
    CU_ASSERT(!tls_is_signed_text((struct slice){whole, 19}));
    CU_ASSERT(!tls_is_signed_text((struct slice){whole, 21}));
    CU_ASSERT(!tls_is_signed_text((struct slice){whole, 14}));
    CU_ASSERT(!tls_is_signed_text((struct slice){whole + 5, 15}));
    static const char no_client[] = "\2\0\0\1a\2\0\0\1b\13\0\0\0\20\0\0\2cd";
    static const char no_server[] = "\1\0\0\1a\1\0\0\1b\13\0\0\0\20\0\0\2cd";
    CU_ASSERT(!tls_is_signed_text((struct slice){no_client, 20}));
    CU_ASSERT(!tls_is_signed_text((struct slice){no_server, 20}));
    CU_ASSERT(!tls_is_signed_text(SLICE("\1\377\377\377a")));
    secret_unref(s);
}

void suite_vault_key(void)
{
    CU_pSuite s = CU_add_suite("vault_key", setup, NULL);
    CU_add_test(s, "handshakes", test_handshakes);
    CU_add_test(s, "handshakes that are given up", test_given_up);
    CU_add_test(s, "certificates and key", test_pack);
    CU_add_test(s, "what is signed", test_text);
}

void tap_suites(void)
{
    suite_vault_key();
}
