/* The TLS of a connection to an origin. */
#include "origin.h"

#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

/* Name constraints are held against the names of the certificate, among which `*.example.com` lies
 * beneath no `internal.example.com` that was excluded. Here they are held against the name that is
 * asked for: the leaf is judged as if it were for this one alone. */
static bool within(X509 *leaf, const char *host, NAME_CONSTRAINTS *nc)
{
    char name[sizeof "DNS:" + HOST_TEXT_MAX];
    snprintf(name, sizeof name, "DNS:%s", host);
    X509 *x = X509_dup(leaf);
    X509_EXTENSION *san = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, name);
    bool good = x && san;
    for (int at; good && (at = X509_get_ext_by_NID(x, NID_subject_alt_name, -1)) >= 0;)
        X509_EXTENSION_free(X509_delete_ext(x, at));
    good = good && X509_add_ext(x, san, -1) == 1;
    if (good)
        X509_check_purpose(x, -1, 0); /* reads the extensions, of which the next is asked */
    good = good && NAME_CONSTRAINTS_check(x, nc) == X509_V_OK;
    X509_EXTENSION_free(san);
    X509_free(x);
    return good;
}

/* Of a chain that was found good. host: NULL for an address, which no wildcard stands for. */
static int chain_fault(STACK_OF(X509) * chain, const char *host)
{
    for (int i = 1; host && i < sk_X509_num(chain); i++) {
        NAME_CONSTRAINTS *nc =
            X509_get_ext_d2i(sk_X509_value(chain, i), NID_name_constraints, NULL, NULL);
        bool good = nc == NULL || within(sk_X509_value(chain, 0), host, nc);
        NAME_CONSTRAINTS_free(nc);
        if (!good)
            return X509_V_ERR_PERMITTED_VIOLATION;
    }
    return X509_V_OK;
}

/* The leaf comes last, when all else was found good. */
static int on_verified(int ok, X509_STORE_CTX *ctx)
{
    if (!ok || X509_STORE_CTX_get_error_depth(ctx) != 0)
        return ok;
    const char *host = X509_VERIFY_PARAM_get0_host(X509_STORE_CTX_get0_param(ctx), 0);
    int fault = chain_fault(X509_STORE_CTX_get0_chain(ctx), host);
    if (fault != X509_V_OK)
        X509_STORE_CTX_set_error(ctx, fault);
    return fault == X509_V_OK;
}

SSL *origin_ssl_for(SSL_CTX *ctx, const struct authority *a)
{
    SSL *ssl = SSL_new(ctx);
    if (ssl == NULL)
        return NULL;
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                               X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    int ok;
    if (a->kind == HOST_NAME)
        ok = SSL_set_tlsext_host_name(ssl, a->host) &&
             X509_VERIFY_PARAM_set1_host(param, a->host, strlen(a->host));
    else
        ok = X509_VERIFY_PARAM_set1_ip(param, a->ip, a->kind == HOST_IPV4 ? 4 : 16);
    SSL_set_verify(ssl, SSL_VERIFY_PEER, on_verified);
    if (!ok) {
        SSL_free(ssl);
        return NULL;
    }
    return ssl;
}

SSL *origin_ssl(SSL_CTX *ctx, const struct authority *a, bool only_http1)
{
    static const unsigned char alpn[] = "\x02h2\x08http/1.1";
    const size_t skip = only_http1 ? 3 : 0;
    SSL *ssl = origin_ssl_for(ctx, a);
    if (ssl && SSL_set_alpn_protos(ssl, alpn + skip, (unsigned)(sizeof alpn - 1 - skip)) != 0) {
        SSL_free(ssl);
        return NULL;
    }
    return ssl;
}

enum origin_protocol origin_protocol(const SSL *ssl)
{
    const unsigned char *chosen;
    unsigned n;
    if (ssl == NULL)
        return ORIGIN_HTTP1;
    SSL_get0_alpn_selected(ssl, &chosen, &n);
    struct slice name = {(const char *)chosen, n};
    if (n == 0 || slice_eq(name, SLICE("http/1.1")))
        return ORIGIN_HTTP1;
    return slice_eq(name, SLICE("h2")) ? ORIGIN_HTTP2 : ORIGIN_UNKNOWN;
}
