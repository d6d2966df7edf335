/* Finds the name in a ClientHello that OpenSSL reads, and tells how many bytes one needs to be
 * whole, which a tunnel must know before OpenSSL has seen any. */
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

enum { RECORD_HEAD = 5, MESSAGE_HEAD = 4, HANDSHAKE = 22, CLIENT_HELLO = 1 };

size_t hello_needs(struct slice in)
{
    unsigned char head[MESSAGE_HEAD];
    size_t at = 0, got = 0, want = MESSAGE_HEAD;
    while (got < want) {
        if (in.n < at + RECORD_HEAD)
            return at + RECORD_HEAD;
        const unsigned char *p = (const unsigned char *)in.p + at;
        size_t n = (size_t)p[3] << 8 | p[4];
        if (p[0] != HANDSHAKE || n == 0)
            return 0;
        at += RECORD_HEAD + n;
        if (in.n < at)
            return at;
        for (size_t i = 0; i < n && got + i < MESSAGE_HEAD; i++)
            head[got + i] = p[RECORD_HEAD + i];
        got += n;
        if (got < MESSAGE_HEAD)
            continue;
        if (head[0] != CLIENT_HELLO)
            return 0;
        want = MESSAGE_HEAD + ((size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3]);
    }
    return 0;
}
