#include "hello.h"

int hello_name(SSL *ssl, struct slice *name)
{
    const unsigned char *p;
    size_t n;
    if (!SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &p, &n))
        return 0;
    if (n < 5 || (size_t)(p[0] << 8 | p[1]) != n - 2 || p[2] != TLSEXT_NAMETYPE_host_name)
        return -1;
    size_t len = (size_t)(p[3] << 8 | p[4]);
    if (len == 0 || len != n - 5)
        return -1;
    *name = (struct slice){(const char *)p + 5, len};
    return 1;
}
