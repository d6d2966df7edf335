/* Looks for the next BEGIN and END lines of a certificate and decodes the base64 between them. */
#include "pem.h"

#include <openssl/evp.h>

static struct slice after(struct slice s, size_t n)
{
    return (struct slice){s.p + n, s.n - n};
}

static int decode(struct slice text, struct buf *der)
{
    buf_clear(der);
    EVP_ENCODE_CTX *ctx = EVP_ENCODE_CTX_new();
    unsigned char *to = buf_reserve(der, text.n / 4 * 3 + 3);
    int n = 0, tail = 0, r = -1;
    if (ctx && to) {
        EVP_DecodeInit(ctx);
        if (EVP_DecodeUpdate(ctx, to, &n, (const unsigned char *)text.p, (int)text.n) >= 0 &&
            EVP_DecodeFinal(ctx, to + n, &tail) == 1 && n + tail > 0) {
            buf_commit(der, (size_t)n + (size_t)tail);
            r = 0;
        }
    }
    EVP_ENCODE_CTX_free(ctx);
    return r;
}

int pem_next(struct slice *rest, struct buf *der)
{
    static const struct slice begin = {"-----BEGIN CERTIFICATE-----", 27},
                              end = {"-----END CERTIFICATE-----", 25};
    ssize_t at = slice_find_slice(*rest, begin);
    if (at < 0) {
        *rest = after(*rest, rest->n);
        return 0;
    }
    struct slice body = after(*rest, (size_t)at + begin.n);
    ssize_t stop = slice_find_slice(body, end);
    if (stop < 0) {
        *rest = after(*rest, rest->n);
        return -1;
    }
    *rest = after(body, (size_t)stop + end.n);
    if ((size_t)stop > PEM_TEXT_MAX)
        return PEM_TOO_LARGE;
    return decode((struct slice){body.p, (size_t)stop}, der) < 0 ? -1 : 1;
}
