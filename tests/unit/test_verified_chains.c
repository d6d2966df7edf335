/* What a chain that was found good a short while ago spares, and what it does not: another name,
 * owner, chain, time or set of roots; in memory, with OpenSSL as the origin. */
#include "authority.h"
#include "origin.h"
#include "roots.h"
#include "tap_main.h"
#include "tls_sessions.h"
#include "verified_chains.h"

#include <event2/event.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void suite_verified_chains(void);

enum { HOUR = 3600 };

static EVP_PKEY *key, *thief, *forged;
static X509 *root, *stranger;

static void extend(X509 *x, int nid, const char *value)
{
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    CU_ASSERT_FATAL(e && X509_add_ext(x, e, -1) == 1);
    X509_EXTENSION_free(e);
}

/* Of `life` seconds more. alt: NULL of an authority. */
static X509 *certificate(const char *cn, const char *alt, X509 *issuer, long life)
{
    static long serial;
    X509 *x = X509_new();
    CU_ASSERT_PTR_NOT_NULL_FATAL(x);
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(x), -HOUR);
    X509_gmtime_adj(X509_getm_notAfter(x), life);
    X509_set_pubkey(x, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)cn, -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(issuer ? issuer : x));
    if (alt)
        extend(x, NID_subject_alt_name, alt);
    else
        extend(x, NID_basic_constraints, "critical,CA:TRUE");
    return x;
}

static X509 *signed_by_us(X509 *x)
{
    CU_ASSERT_FATAL(X509_sign(x, key, EVP_sha256()) > 0);
    return x;
}

static X509 *leaf_of(X509 *issuer, const char *alt, long life)
{
    return signed_by_us(certificate("x", alt, issuer, life));
}

/* It says that it is the other's, and signs with its own: what OpenSSL takes for the certificate's.
 */
static EVP_PKEY *forge(EVP_PKEY *theirs, EVP_PKEY *own)
{
    unsigned char point[128];
    size_t n = 0;
    BIGNUM *d = NULL;
    EVP_PKEY *made = NULL;
    OSSL_PARAM *params = NULL;
    OSSL_PARAM_BLD *list = OSSL_PARAM_BLD_new();
    EVP_PKEY_CTX *with = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    if (list && with &&
        EVP_PKEY_get_octet_string_param(theirs, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point, &n) ==
            1 &&
        EVP_PKEY_get_bn_param(own, OSSL_PKEY_PARAM_PRIV_KEY, &d) == 1 &&
        OSSL_PARAM_BLD_push_utf8_string(list, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) &&
        OSSL_PARAM_BLD_push_octet_string(list, OSSL_PKEY_PARAM_PUB_KEY, point, n) &&
        OSSL_PARAM_BLD_push_BN(list, OSSL_PKEY_PARAM_PRIV_KEY, d) &&
        (params = OSSL_PARAM_BLD_to_param(list)) != NULL && EVP_PKEY_fromdata_init(with) == 1)
        (void)EVP_PKEY_fromdata(with, &made, EVP_PKEY_KEYPAIR, params);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(list);
    EVP_PKEY_CTX_free(with);
    BN_free(d);
    return made;
}

static int setup(void)
{
    key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    thief = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    forged = key && thief ? forge(key, thief) : NULL;
    return forged ? 0 : -1;
}

static int teardown(void)
{
    EVP_PKEY_free(key);
    EVP_PKEY_free(thief);
    EVP_PKEY_free(forged);
    return 0;
}

/* A role's context towards origins; its roots are given by trust(). */
struct bed {
    SSL_CTX *ctx;
    struct tls_sessions *sessions;
};

static void trust(struct bed *b, X509 *x)
{
    X509_STORE *store = X509_STORE_new();
    if (x)
        CU_ASSERT_EQUAL(X509_STORE_add_cert(store, x), 1);
    SSL_CTX_set1_cert_store(b->ctx, store);
    X509_STORE_free(store);
}

static struct bed bed_new(unsigned seconds)
{
    struct bed b = {SSL_CTX_new(TLS_client_method()), tls_sessions_new(4)};
    CU_ASSERT_FATAL(b.ctx && b.sessions);
    CU_ASSERT_EQUAL(verified_chains_setup(b.ctx, seconds), 0);
    root = signed_by_us(certificate("root", NULL, NULL, HOUR));
    stranger = signed_by_us(certificate("root", NULL, NULL, HOUR));
    trust(&b, root);
    return b;
}

static void bed_free(struct bed *b)
{
    SSL_CTX_free(b->ctx);
    tls_sessions_free(b->sessions);
    X509_free(root);
    X509_free(stranger);
    ERR_clear_error();
}

static void shake(SSL *client, SSL *server, int *c)
{
    BIO *left, *right;
    int s = 0;
    CU_ASSERT_EQUAL_FATAL(BIO_new_bio_pair(&left, 0, &right, 0), 1);
    SSL_set_bio(client, left, left);
    SSL_set_bio(server, right, right);
    SSL_set_connect_state(client);
    SSL_set_accept_state(server);
    for (int i = 0; i < 20 && !(*c == 1 && s == 1); i++) {
        *c = SSL_do_handshake(client);
        s = SSL_do_handshake(server);
    }
}

enum { REFUSED = 0, VERIFIED, SPARED };

struct origin_side {
    X509 *leaf, *between; /* between: an intermediate or NULL */
    EVP_PKEY *key;
};

static SSL_CTX *server_of(const struct origin_side *o)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    CU_ASSERT_FATAL(ctx && SSL_CTX_use_certificate(ctx, o->leaf) == 1);
    if (o->between)
        CU_ASSERT_EQUAL(SSL_CTX_add1_chain_cert(ctx, o->between), 1);
    CU_ASSERT_EQUAL(SSL_CTX_use_PrivateKey(ctx, o->key), 1);
    return ctx;
}

static int connect_to(struct bed *b, const struct origin_side *o, const char *owner,
                      const char *host)
{
    struct authority a;
    char pool_key[128];
    int c = 0;
    size_t before = verified_chains_spared(b->ctx);
    CU_ASSERT_EQUAL_FATAL(authority_parse(&a, SCHEME_HTTPS, slice_str(host)), 0);
    snprintf(pool_key, sizeof pool_key, "%s|%s", owner, host);
    SSL_CTX *ctx = server_of(o);
    SSL *client = origin_ssl(b->ctx, &a, true), *server = SSL_new(ctx);
    CU_ASSERT_FATAL(client && server);
    CU_ASSERT_EQUAL(tls_sessions_begin(b->sessions, pool_key, client), 0);
    shake(client, server, &c);
    if (c == 1)
        CU_ASSERT_EQUAL(SSL_get_verify_result(client), X509_V_OK);
    SSL_free(client);
    SSL_free(server);
    SSL_CTX_free(ctx);
    ERR_clear_error();
    size_t spared = verified_chains_spared(b->ctx) - before;
    return spared ? c == 1 ? SPARED : REFUSED : c == 1 ? VERIFIED : REFUSED;
}

static void test_again(void)
{
    struct bed b = bed_new(60);
    struct origin_side o = {leaf_of(root, "DNS:*.w.example,IP:10.0.0.1,IP:2001:db8::1", HOUR), NULL,
                            key};
    CU_ASSERT_EQUAL(connect_to(&b, &o, "s", "a.w.example"), VERIFIED);
    CU_ASSERT_EQUAL(connect_to(&b, &o, "s", "a.w.example"), SPARED);
    CU_ASSERT_EQUAL(connect_to(&b, &o, "s", "b.w.example"), SPARED); /* it is for this one, too */
    CU_ASSERT_EQUAL(connect_to(&b, &o, "s", "10.0.0.1"), SPARED);
    CU_ASSERT_EQUAL(connect_to(&b, &o, "s", "[2001:db8::1]"), SPARED);
    X509_free(o.leaf);
    bed_free(&b);
}

/* What it is not for is refused, as if nothing were known. */
static void test_names(void)
{
    static const char *const others[] = {"w.example", "a.b.w.example", "a.x.example", "10.0.0.2",
                                         "[2001:db8::2]"};
    struct bed b = bed_new(60);
    struct origin_side o = {leaf_of(root, "DNS:*.w.example,IP:10.0.0.1", HOUR), NULL, key};
    CU_ASSERT_EQUAL(connect_to(&b, &o, "s", "a.w.example"), VERIFIED);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        CU_ASSERT_EQUAL(connect_to(&b, &o, "s", others[i]), REFUSED);
    X509_free(o.leaf);
    bed_free(&b);
}

static void test_owners(void)
{
    struct bed b = bed_new(60);
    struct origin_side o = {leaf_of(root, "DNS:a.example", HOUR), NULL, key};
    CU_ASSERT_EQUAL(connect_to(&b, &o, "one", "a.example"), VERIFIED);
    CU_ASSERT_EQUAL(connect_to(&b, &o, "two", "a.example"), VERIFIED);
    CU_ASSERT_EQUAL(connect_to(&b, &o, "one", "a.example"), SPARED);
    X509_free(o.leaf);
    bed_free(&b);
}

/* Another leaf of the same names, from an issuer of the same name or behind other certificates. */
static void test_chains(void)
{
    struct bed b = bed_new(60);
    X509 *between = signed_by_us(certificate("between", NULL, root, HOUR));
    struct origin_side good = {leaf_of(root, "DNS:a.example", HOUR), NULL, key};
    struct origin_side other = {leaf_of(root, "DNS:a.example", HOUR), NULL, key};
    struct origin_side longer = {good.leaf, between, key};
    struct origin_side two = {leaf_of(between, "DNS:a.example", HOUR), between, key};
    struct origin_side foreign = {certificate("x", "DNS:a.example", stranger, HOUR), NULL, thief};
    X509_set_pubkey(foreign.leaf, thief);
    CU_ASSERT_FATAL(X509_sign(foreign.leaf, thief, EVP_sha256()) > 0);
    CU_ASSERT_EQUAL(connect_to(&b, &good, "s", "a.example"), VERIFIED);
    CU_ASSERT_EQUAL(connect_to(&b, &other, "s", "a.example"), VERIFIED);
    CU_ASSERT_EQUAL(connect_to(&b, &longer, "s", "a.example"), VERIFIED);
    CU_ASSERT_EQUAL(connect_to(&b, &foreign, "s", "a.example"), REFUSED);
    CU_ASSERT_EQUAL(connect_to(&b, &two, "s", "a.example"), VERIFIED);
    CU_ASSERT_EQUAL(connect_to(&b, &two, "s", "a.example"), SPARED);
    CU_ASSERT_EQUAL(connect_to(&b, &good, "s", "a.example"), SPARED);
    CU_ASSERT_EQUAL(connect_to(&b, &foreign, "s", "a.example"), REFUSED); /* nor was it kept */
    X509_free(good.leaf);
    X509_free(other.leaf);
    X509_free(two.leaf);
    X509_free(foreign.leaf);
    X509_free(between);
    bed_free(&b);
}

/* Other roots vouch for it, or not, anew. */
static void test_roots(void)
{
    struct bed b = bed_new(60);
    struct origin_side o = {leaf_of(root, "DNS:a.example", HOUR), NULL, key};
    CU_ASSERT_EQUAL(connect_to(&b, &o, "s", "a.example"), VERIFIED);
    trust(&b, NULL); /* told nothing, it still knows: that is what was spared */
    CU_ASSERT_EQUAL(connect_to(&b, &o, "s", "a.example"), SPARED);
    verified_chains_forget(b.ctx);
    CU_ASSERT_EQUAL(connect_to(&b, &o, "s", "a.example"), REFUSED);
    trust(&b, root);
    CU_ASSERT_EQUAL(connect_to(&b, &o, "s", "a.example"), VERIFIED);
    X509_free(o.leaf);
    bed_free(&b);
}

static int packed(X509 *x)
{
    char path[] = "/tmp/durward-test-verified-XXXXXX";
    const char *const paths[] = {path, NULL};
    int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    CU_ASSERT_FATAL(f && PEM_write_X509(f, x) == 1 && fclose(f) == 0);
    fd = roots_pack_with(NULL, paths, NULL);
    remove(path);
    return fd;
}

/* The same by way of what a role has: it knows what it found good until it is given roots again. */
static void test_environment(void)
{
    struct event_base *base = event_base_new();
    struct limits limits = {0};
    struct origin_env env;
    struct bed b = bed_new(60);
    X509 *others = certificate("others", NULL, NULL, HOUR);
    X509_set_pubkey(others, thief);
    CU_ASSERT_FATAL(X509_sign(others, thief, EVP_sha256()) > 0);
    CU_ASSERT_EQUAL_FATAL(origin_env_init(&env, base, &limits, 4, 4), 0);
    struct bed role = {env.tls, b.sessions};
    struct origin_side o = {leaf_of(root, "DNS:a.example", HOUR), NULL, key};
    CU_ASSERT_EQUAL(origin_env_trust(&env, packed(root), NULL), 0);
    CU_ASSERT_EQUAL(connect_to(&role, &o, "s", "a.example"), VERIFIED);
    CU_ASSERT_EQUAL(connect_to(&role, &o, "s", "a.example"), SPARED);
    CU_ASSERT_EQUAL(origin_env_trust(&env, packed(others), NULL), 0);
    CU_ASSERT_EQUAL(connect_to(&role, &o, "s", "a.example"), REFUSED);
    origin_env_done(&env);
    X509_free(o.leaf);
    X509_free(others);
    bed_free(&b);
    event_base_free(base);
}

/* An issuer that may sign for some names only is asked about each name. */
static void test_constraints(void)
{
    struct bed b = bed_new(60);
    X509 *between = certificate("between", NULL, root, HOUR);
    extend(between, NID_name_constraints, "excluded;DNS:secret.w.example");
    signed_by_us(between);
    struct origin_side o = {leaf_of(between, "DNS:*.w.example", HOUR), between, key};
    CU_ASSERT_EQUAL(connect_to(&b, &o, "s", "a.w.example"), VERIFIED);
    CU_ASSERT_EQUAL(connect_to(&b, &o, "s", "a.w.example"), VERIFIED);
    CU_ASSERT_EQUAL(connect_to(&b, &o, "s", "secret.w.example"), REFUSED);
    X509_free(o.leaf);
    X509_free(between);
    bed_free(&b);
}

/* Until that second of the wall clock, which certificates go by. */
static void pass(time_t until)
{
    static const struct timespec tick = {0, 20 * 1000 * 1000};
    while (time(NULL) < until)
        nanosleep(&tick, NULL);
}

/* Not after its own end, nor after that of an authority above it. */
static void test_ends(void)
{
    struct bed b = bed_new(60);
    time_t begun = time(NULL);
    X509 *between = signed_by_us(certificate("between", NULL, root, 2));
    struct origin_side leaf = {leaf_of(root, "DNS:a.example", 2), NULL, key};
    struct origin_side above = {leaf_of(between, "DNS:a.example", HOUR), between, key};
    struct origin_side *const all[] = {&leaf, &above};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        CU_ASSERT_EQUAL(connect_to(&b, all[i], "s", "a.example"), VERIFIED);
    pass(begun + 4);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        CU_ASSERT_EQUAL(connect_to(&b, all[i], "s", "a.example"), REFUSED);
    X509_free(leaf.leaf);
    X509_free(above.leaf);
    X509_free(between);
    bed_free(&b);
}

/* Nor after the time that was set. */
static void test_seconds(void)
{
    struct bed b = bed_new(1);
    struct origin_side o = {leaf_of(root, "DNS:a.example", HOUR), NULL, key};
    time_t begun = time(NULL);
    CU_ASSERT_EQUAL(connect_to(&b, &o, "s", "a.example"), VERIFIED);
    pass(begun + 3);
    CU_ASSERT_EQUAL(connect_to(&b, &o, "s", "a.example"), VERIFIED);
    X509_free(o.leaf);
    bed_free(&b);
}

/* One more than there is room for: the first is verified again, the last is known. */
static void test_bound(void)
{
    struct bed b = bed_new(60);
    static struct origin_side all[VERIFIED_CHAINS_MAX + 1];
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        all[i] = (struct origin_side){leaf_of(root, "DNS:a.example", HOUR), NULL, key};
        CU_ASSERT_EQUAL(connect_to(&b, &all[i], "s", "a.example"), VERIFIED);
    }
    CU_ASSERT_EQUAL(connect_to(&b, &all[ARRAY_LEN(all) - 1], "s", "a.example"), SPARED);
    CU_ASSERT_EQUAL(connect_to(&b, &all[1], "s", "a.example"), SPARED);
    CU_ASSERT_EQUAL(connect_to(&b, &all[0], "s", "a.example"), VERIFIED);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        X509_free(all[i].leaf);
    bed_free(&b);
}

/* Who has seen the chain has not got its key. */
static void test_key(void)
{
    struct bed b = bed_new(60);
    struct origin_side o = {leaf_of(root, "DNS:a.example", HOUR), NULL, key};
    CU_ASSERT_EQUAL(connect_to(&b, &o, "s", "a.example"), VERIFIED);
    o.key = forged;
    CU_ASSERT_EQUAL(connect_to(&b, &o, "s", "a.example"), REFUSED);
    X509_free(o.leaf);
    bed_free(&b);
}

/* Whose connection it is has to be known. */
static void test_unowned(void)
{
    struct bed b = bed_new(60);
    struct authority a;
    struct origin_side o = {leaf_of(root, "DNS:a.example", HOUR), NULL, key};
    CU_ASSERT_EQUAL_FATAL(authority_parse(&a, SCHEME_HTTPS, SLICE("a.example")), 0);
    for (int i = 0; i < 2; i++) {
        int c = 0;
        SSL_CTX *ctx = server_of(&o);
        SSL *client = origin_ssl(b.ctx, &a, true), *server = SSL_new(ctx);
        shake(client, server, &c);
        CU_ASSERT_EQUAL(c, 1);
        SSL_free(client);
        SSL_free(server);
        SSL_CTX_free(ctx);
    }
    CU_ASSERT_EQUAL(verified_chains_spared(b.ctx), 0);
    X509_free(o.leaf);
    bed_free(&b);
}

void suite_verified_chains(void)
{
    CU_pSuite s = CU_add_suite("verified_chains", setup, teardown);
    CU_add_test(s, "the same chain again, for each name that it is for", test_again);
    CU_add_test(s, "names and addresses that it is not for", test_names);
    CU_add_test(s, "another owner", test_owners);
    CU_add_test(s, "other chains", test_chains);
    CU_add_test(s, "other roots", test_roots);
    CU_add_test(s, "other roots of a role", test_environment);
    CU_add_test(s, "an issuer of some names", test_constraints);
    CU_add_test(s, "certificates that end", test_ends);
    CU_add_test(s, "known for so long only", test_seconds);
    CU_add_test(s, "more chains than there is room for", test_bound);
    CU_add_test(s, "another key behind a known chain", test_key);
    CU_add_test(s, "a connection of nobody's", test_unowned);
}

void tap_suites(void)
{
    suite_verified_chains();
}
