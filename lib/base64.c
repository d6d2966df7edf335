/* Encodes with OpenSSL and decodes by hand, to be as strict as the header promises. */
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
static int digit(char c, const char last[2])
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == last[0] ? 62 : c == last[1] ? 63 : -1;
}

/* Of text without its padding. */
static ssize_t decode(struct slice s, const char last[2], unsigned char *to, size_t size)
{
    size_t n = s.n / 4 * 3 + (s.n % 4 ? s.n % 4 - 1 : 0), done = 0;
    unsigned bits = 0, have = 0;
    if (s.n % 4 == 1 || n > size)
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
        to[done++] = (unsigned char)(bits >> have);
    }
    return bits & ((1U << have) - 1) ? -1 : (ssize_t)done;
}

static int append(struct buf *out, struct slice s, const char last[2])
{
    size_t most = s.n / 4 * 3 + 3;
    size_t room = buf_room(out) < most ? buf_room(out) : most;
    unsigned char *to = room ? buf_reserve(out, room) : NULL;
    if (to == NULL)
        return s.n ? -1 : 0;
    ssize_t n = decode(s, last, to, room);
    if (n < 0)
        return -1;
    buf_commit(out, (size_t)n);
    return 0;
}

/* -1: no padded text has that length. */
static int without_padding(struct slice *s)
{
    if (s->n % 4)
        return -1;
    for (int i = 0; i < 2 && s->n > 0 && s->p[s->n - 1] == '='; i++)
        s->n--;
    return 0;
}

int base64url_decode(struct buf *out, struct slice s)
{
    return append(out, s, "-_");
}

int base64_decode(struct buf *out, struct slice s)
{
    return without_padding(&s) < 0 ? -1 : append(out, s, "+/");
}

ssize_t base64_read(struct slice s, void *to, size_t size)
{
    return without_padding(&s) < 0 ? -1 : decode(s, "+/", to, size);
}
