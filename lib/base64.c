#include "base64.h"

#include <limits.h>
#include <openssl/evp.h>
#include <string.h>

int base64_append(struct buf *out, struct slice s)
{
    unsigned char *to = s.n > INT_MAX / 2 ? NULL : buf_reserve(out, (s.n + 2) / 3 * 4 + 1);
    if (to == NULL)
        return -1;
    int n = EVP_EncodeBlock(to, (const unsigned char *)s.p, (int)s.n);
    buf_commit(out, (size_t)n);
    return 0;
}

int base64url_append(struct buf *out, struct slice s)
{
    unsigned char *to = s.n > INT_MAX / 2 ? NULL : buf_reserve(out, (s.n + 2) / 3 * 4 + 1);
    if (to == NULL)
        return -1;
    int n = EVP_EncodeBlock(to, (const unsigned char *)s.p, (int)s.n);
    while (n > 0 && to[n - 1] == '=')
        n--;
    for (int i = 0; i < n; i++)
        to[i] = to[i] == '+' ? '-' : to[i] == '/' ? '_' : to[i];
    buf_commit(out, (size_t)n);
    return 0;
}

/* last: the digits 62 and 63. */
static int digit(char c, const char *last)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : c && c == last[0] ? 62 : c && c == last[1] ? 63 : -1;
}

static int decode(struct buf *out, struct slice s, const char *last)
{
    unsigned bits = 0, have = 0;
    if (s.n % 4 == 1)
        return -1;
    for (size_t i = 0; i < s.n; i++) {
        int d = digit(s.p[i], last);
        if (d < 0)
            return -1;
        bits = bits << 6 | (unsigned)d;
        have += 6;
        if (have < 8)
            continue;
        have -= 8;
        unsigned char byte = (unsigned char)(bits >> have);
        if (buf_append(out, &byte, 1) < 0)
            return -1;
    }
    return 0;
}

int base64url_decode(struct buf *out, struct slice s)
{
    return decode(out, s, "-_");
}

int base64_decode(struct buf *out, struct slice s)
{
    if (s.n % 4)
        return -1;
    for (int i = 0; i < 2 && s.n > 0 && s.p[s.n - 1] == '='; i++)
        s.n--;
    return decode(out, s, "+/");
}
