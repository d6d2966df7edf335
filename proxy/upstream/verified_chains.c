/* Stands before OpenSSL's verification of an origin: finds a chain again by a digest of its
 * certificates, and remembers it when OpenSSL has found it good. It only ever spares work: what it
 * does not know, or what does not fit, OpenSSL verifies in whole and refuses with its own reason.
 */
#include "verified_chains.h"

#include "tls_sessions.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    DIGEST = 32,
    CERTS_MAX = 10, /* of a chain as the origin sends it; a longer one is not remembered */
};

struct verified {
    unsigned char digest[DIGEST];
    time_t begins, ends; /* when every certificate up to the root is valid, by the wall clock */
    time_t until;        /* by CLOCK_BOOTTIME, which goes on in a suspend; 0: none is here */
};

struct verified_chains {
    unsigned seconds;
    size_t spared, next; /* the place that is written next */
    struct verified list[VERIFIED_CHAINS_MAX];
};

static void on_ctx_free(void *parent UNUSED, void *ptr, CRYPTO_EX_DATA *ad UNUSED, int idx UNUSED,
                        long argl UNUSED, void *argp UNUSED)
{
    free(ptr);
}

static int slot(void)
{
    static int index = -1;
    if (index < 0)
        index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, on_ctx_free);
    return index;
}

static time_t monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec;
}

/* Whose chain it is, and all bytes that the origin sent of it. */
static bool digest_of(X509_STORE_CTX *ctx, unsigned char ret[DIGEST])
{
    const SSL *ssl = X509_STORE_CTX_get_ex_data(ctx, SSL_get_ex_data_X509_STORE_CTX_idx());
    STACK_OF(X509) *sent = X509_STORE_CTX_get0_untrusted(ctx);
    struct slice owner;
    unsigned char each[(CERTS_MAX + 1) * DIGEST];
    int n = sent ? sk_X509_num(sent) : 0;
    if (n < 1 || n > CERTS_MAX || sk_X509_value(sent, 0) != X509_STORE_CTX_get0_cert(ctx) ||
        !tls_sessions_owner(ssl, &owner) ||
        EVP_Digest(owner.p, owner.n, each, NULL, EVP_sha256(), NULL) != 1)
        return false;
    for (int i = 0; i < n; i++)
        if (X509_digest(sk_X509_value(sent, i), EVP_sha256(), each + (i + 1) * DIGEST, NULL) != 1)
            return false;
    return EVP_Digest(each, (size_t)(n + 1) * DIGEST, ret, NULL, EVP_sha256(), NULL) == 1;
}

static struct verified *find(struct verified_chains *v, const unsigned char digest[DIGEST])
{
    for (size_t i = 0; i < VERIFIED_CHAINS_MAX; i++)
        if (v->list[i].until && memcmp(v->list[i].digest, digest, DIGEST) == 0)
            return &v->list[i];
    return NULL;
}

/* The same two questions that OpenSSL asks last. Neither name nor address: none is good enough. */
static bool is_for(X509_STORE_CTX *ctx)
{
    X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
    X509 *leaf = X509_STORE_CTX_get0_cert(ctx);
    const char *host = X509_VERIFY_PARAM_get0_host(param, 0);
    if (host)
        return X509_check_host(leaf, host, 0, X509_VERIFY_PARAM_get_hostflags(param), NULL) == 1;
    char *ip = X509_VERIFY_PARAM_get1_ip_asc(param);
    bool good = ip && X509_check_ip_asc(leaf, ip, 0) == 1;
    OPENSSL_free(ip);
    return good;
}

static bool is_fresh(const struct verified *e)
{
    time_t now = time(NULL);
    return monotonic() < e->until && now >= e->begins && now < e->ends;
}

static bool seconds_of(const ASN1_TIME *t, time_t *ret)
{
    struct tm tm;
    if (ASN1_TIME_to_tm(t, &tm) != 1)
        return false;
    *ret = timegm(&tm);
    return true;
}

/* Where an authority may sign for some names only, the answer depends on the name that was asked
 * for (origin_tls.c): such a chain is verified each time. */
static bool bounds_of(STACK_OF(X509) * chain, struct verified *e)
{
    for (int i = 0; i < sk_X509_num(chain); i++) {
        const X509 *x = sk_X509_value(chain, i);
        time_t begins, ends;
        if (X509_get_ext_by_NID(x, NID_name_constraints, -1) >= 0 ||
            !seconds_of(X509_get0_notBefore(x), &begins) ||
            !seconds_of(X509_get0_notAfter(x), &ends))
            return false;
        if (i == 0 || begins > e->begins)
            e->begins = begins;
        if (i == 0 || ends < e->ends)
            e->ends = ends;
    }
    return sk_X509_num(chain) > 0;
}

static void remember(struct verified_chains *v, const unsigned char digest[DIGEST],
                     STACK_OF(X509) * chain)
{
    struct verified e = {.until = monotonic() + (time_t)v->seconds};
    if (chain == NULL || !bounds_of(chain, &e))
        return;
    memcpy(e.digest, digest, DIGEST);
    struct verified *at = find(v, digest);
    if (at == NULL) {
        at = &v->list[v->next];
        v->next = (v->next + 1) % VERIFIED_CHAINS_MAX;
    }
    *at = e;
}

static int on_chain(X509_STORE_CTX *ctx, void *arg)
{
    struct verified_chains *v = arg;
    unsigned char digest[DIGEST];
    bool known = digest_of(ctx, digest);
    const struct verified *e = known ? find(v, digest) : NULL;
    if (e && is_fresh(e) && is_for(ctx)) {
        v->spared++;
        X509_STORE_CTX_set_error(ctx, X509_V_OK);
        return 1;
    }
    int r = X509_verify_cert(ctx);
    if (r == 1 && known && X509_STORE_CTX_get_error(ctx) == X509_V_OK)
        remember(v, digest, X509_STORE_CTX_get0_chain(ctx));
    return r;
}

int verified_chains_setup(SSL_CTX *ctx, unsigned seconds)
{
    struct verified_chains *v = calloc(1, sizeof *v);
    if (v == NULL || SSL_CTX_set_ex_data(ctx, slot(), v) != 1) {
        free(v);
        return -1;
    }
    v->seconds = seconds;
    SSL_CTX_set_cert_verify_callback(ctx, on_chain, v);
    return 0;
}

void verified_chains_forget(SSL_CTX *ctx)
{
    struct verified_chains *v = SSL_CTX_get_ex_data(ctx, slot());
    if (v)
        memset(v->list, 0, sizeof v->list);
}

size_t verified_chains_spared(const SSL_CTX *ctx)
{
    const struct verified_chains *v = SSL_CTX_get_ex_data(ctx, slot());
    return v ? v->spared : 0;
}
