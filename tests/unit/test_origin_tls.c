/* Whom the injector and the gate take for an origin: certificates of an issuer that is trusted, for
 * the name or address that was asked for, and nothing else; in memory, with OpenSSL as the origin.
 */
#include "authority.h"
#include "origin.h"
#include "tap_main.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>

void suite_origin_tls(void);

static EVP_PKEY *key;
static X509 *trusted, *stranger;

static X509 *certificate(const char *cn, const char *alt, X509 *issuer)
{
    X509 *x = X509_new();
    CU_ASSERT_PTR_NOT_NULL_FATAL(x);
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), issuer ? 2 : 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -60);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)cn, -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(issuer ? issuer : x));
    const char *value = issuer ? alt : "critical,CA:TRUE";
    if (value) {
        X509_EXTENSION *e = X509V3_EXT_conf_nid(
            NULL, NULL, issuer ? NID_subject_alt_name : NID_basic_constraints, value);
        CU_ASSERT_FATAL(e && X509_add_ext(x, e, -1) == 1);
        X509_EXTENSION_free(e);
    }
    CU_ASSERT_FATAL(X509_sign(x, key, EVP_sha256()) > 0);
    return x;
}

static int setup(void)
{
    key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    return key ? 0 : -1;
}

static int teardown(void)
{
    EVP_PKEY_free(key);
    return 0;
}

static void issuers_make(void)
{
    trusted = certificate("trusted", NULL, NULL);
    stranger = certificate("stranger", NULL, NULL);
}

static void issuers_free(void)
{
    X509_free(trusted);
    X509_free(stranger);
}

struct both {
    SSL_CTX *client_ctx, *server_ctx;
    SSL *client, *server;
    const char *protocol; /* that the origin chooses, as on the wire */
};

static int choose(SSL *ssl, const unsigned char **out, unsigned char *out_n,
                  const unsigned char *in, unsigned n, void *arg)
{
    const struct both *b = arg;
    size_t len = strlen(b->protocol);
    (void)ssl;
    for (unsigned at = 0; at < n; at += 1u + in[at])
        if (in[at] == len && memcmp(in + at + 1, b->protocol, len) == 0) {
            *out = in + at + 1;
            *out_n = in[at];
            return SSL_TLSEXT_ERR_OK;
        }
    return SSL_TLSEXT_ERR_NOACK;
}

/* Whether the client's handshake went through. */
static bool handshake(struct both *b, const char *host, X509 *leaf, bool only_http1,
                      const char *protocol)
{
    struct authority a;
    BIO *left, *right;
    int c = 0, s = 0;
    CU_ASSERT_EQUAL_FATAL(authority_parse(&a, SCHEME_HTTPS, slice_str(host)), 0);
    *b = (struct both){.client_ctx = SSL_CTX_new(TLS_client_method()),
                       .server_ctx = SSL_CTX_new(TLS_server_method()),
                       .protocol = protocol};
    CU_ASSERT_EQUAL(X509_STORE_add_cert(SSL_CTX_get_cert_store(b->client_ctx), trusted), 1);
    CU_ASSERT(SSL_CTX_use_certificate(b->server_ctx, leaf) == 1 &&
              SSL_CTX_use_PrivateKey(b->server_ctx, key) == 1);
    SSL_CTX_set_alpn_select_cb(b->server_ctx, choose, b);
    b->client = origin_ssl(b->client_ctx, &a, only_http1);
    b->server = SSL_new(b->server_ctx);
    CU_ASSERT_FATAL(b->client && b->server);
    CU_ASSERT_EQUAL_FATAL(BIO_new_bio_pair(&left, 0, &right, 0), 1);
    SSL_set_bio(b->client, left, left);
    SSL_set_bio(b->server, right, right);
    SSL_set_connect_state(b->client);
    SSL_set_accept_state(b->server);
    for (int i = 0; i < 20 && !(c == 1 && s == 1); i++) {
        c = SSL_do_handshake(b->client);
        s = SSL_do_handshake(b->server);
    }
    return c == 1;
}

static void done(struct both *b)
{
    SSL_free(b->client);
    SSL_free(b->server);
    SSL_CTX_free(b->client_ctx);
    SSL_CTX_free(b->server_ctx);
    ERR_clear_error();
}

static void test_names(void)
{
    static const struct {
        const char *host, *alt, *cn;
        bool stranger, want;
    } rows[] = {
        {"a.w.example", "DNS:a.w.example", "x", false, true},
        {"a.w.example", "DNS:x.example,DNS:a.w.example", "x", false, true},
        {"a.w.example", "DNS:*.w.example", "x", false, true},
        {"a.w.example", "DNS:a.w.example", "x", true, false}, /* nobody knows its issuer */
        {"a.w.example", "DNS:b.w.example", "a.w.example", false, false},
        {"a.w.example", "DNS:w.example", "x", false, false},
        {"a.b.w.example", "DNS:*.w.example", "x", false, false},
        {"ab.w.example", "DNS:a*.w.example", "x", false, false}, /* part of a label */
        {"a.w.example", NULL, "a.w.example", false, false},      /* a subject is no name */
        {"a.w.example", "email:a@w.example", "a.w.example", false, false},
        {"10.0.0.1", "IP:10.0.0.1", "x", false, true},
        {"10.0.0.1", "IP:10.0.0.2", "10.0.0.1", false, false},
        {"10.0.0.1", "DNS:10.0.0.1", "10.0.0.1", false, false},
        {"[2001:db8::1]", "IP:2001:db8::1", "x", false, true},
        {"[2001:db8::1]", "IP:2001:db8::2", "x", false, false},
    };
    issuers_make();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct both b;
        X509 *leaf = certificate(rows[i].cn, rows[i].alt, rows[i].stranger ? stranger : trusted);
        bool got = handshake(&b, rows[i].host, leaf, true, "");
        if (got != rows[i].want)
            printf("# row %zu: %s, %s\n", i, rows[i].host, rows[i].alt ? rows[i].alt : "");
        CU_ASSERT_EQUAL(got, rows[i].want);
        done(&b);
        X509_free(leaf);
    }
    issuers_free();
}

/* The origin is told the name, never an address; and offered HTTP/2 only where it may be chosen. */
static void test_told(void)
{
    static const struct {
        const char *protocol;
        bool only_http1;
        enum origin_protocol want;
    } rows[] = {{"h2", false, ORIGIN_HTTP2},
                {"h2", true, ORIGIN_HTTP1},
                {"http/1.1", false, ORIGIN_HTTP1},
                {"http/1.1", true, ORIGIN_HTTP1},
                {"", false, ORIGIN_HTTP1}};
    struct both b;
    issuers_make();
    X509 *leaf = certificate("x", "DNS:a.example,IP:10.0.0.1", trusted);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CU_ASSERT(handshake(&b, "a.example", leaf, rows[i].only_http1, rows[i].protocol));
        CU_ASSERT_EQUAL(origin_protocol(b.client), rows[i].want);
        const char *name = SSL_get_servername(b.server, TLSEXT_NAMETYPE_host_name);
        CU_ASSERT(name && strcmp(name, "a.example") == 0);
        done(&b);
    }
    CU_ASSERT(handshake(&b, "10.0.0.1", leaf, true, ""));
    CU_ASSERT_PTR_NULL(SSL_get_servername(b.server, TLSEXT_NAMETYPE_host_name));
    done(&b);
    CU_ASSERT_EQUAL(origin_protocol(NULL), ORIGIN_HTTP1);
    X509_free(leaf);
    issuers_free();
}

void suite_origin_tls(void)
{
    CU_pSuite s = CU_add_suite("origin_tls", setup, teardown);
    CU_add_test(s, "issuers, names and addresses", test_names);
    CU_add_test(s, "what the origin is told, and chooses", test_told);
}

void tap_suites(void)
{
    suite_origin_tls();
}
