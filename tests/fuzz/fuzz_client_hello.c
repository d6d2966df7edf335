/* The first bytes of a TLS connection, whatever they are, as a gate takes them: OpenSSL parses, our
 * callback takes the name out. A name lies inside the input and is folded to a fixed point. */
#include "authority.h"
#include "hello.h"

#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

static int on_hello(SSL *ssl, int *alert, void *arg)
{
    struct slice name;
    struct authority a = {.scheme = SCHEME_HTTPS, .port = 443}, again = a;
    (void)arg;
    *alert = SSL_AD_UNRECOGNIZED_NAME;
    if (hello_name(ssl, &name) <= 0)
        return SSL_CLIENT_HELLO_ERROR;
    require(name.n > 0 && name.n <= 65535);
    unsigned sum = 0; /* every byte of it can be read */
    for (size_t i = 0; i < name.n; i++)
        sum += (unsigned char)name.p[i];
    require(sum < 65536 * 256);
    if (authority_host(&a, name) == 0) {
        require(strlen(a.host) <= HOST_MAX && authority_host(&again, slice_str(a.host)) == 0);
        require(authority_same_host(&a, &again));
    }
    return SSL_CLIENT_HELLO_ERROR;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static SSL_CTX *ctx;
    if (ctx == NULL) {
        ctx = SSL_CTX_new(TLS_server_method());
        require(ctx != NULL);
        SSL_CTX_set_client_hello_cb(ctx, on_hello, NULL);
    }
    if (size > 140000)
        return 0;
    SSL *ssl = SSL_new(ctx);
    BIO *in = BIO_new_mem_buf(data, (int)size), *out = BIO_new(BIO_s_mem());
    require(ssl && in && out);
    SSL_set_bio(ssl, in, out);
    SSL_set_accept_state(ssl);
    require(SSL_do_handshake(ssl) <= 0);
    SSL_free(ssl);
    ERR_clear_error();
    return 0;
}
