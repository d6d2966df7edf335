/* The TLS of a connection to an origin. */
#include "origin.h"

#include <openssl/x509v3.h>
#include <string.h>

SSL *origin_ssl(SSL_CTX *ctx, const struct authority *a, bool only_http1)
{
    static const unsigned char alpn[] = "\x02h2\x08http/1.1";
    const size_t skip = only_http1 ? 3 : 0;
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
    ok = ok && SSL_set_alpn_protos(ssl, alpn + skip, (unsigned)(sizeof alpn - 1 - skip)) == 0;
    SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    if (!ok) {
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
