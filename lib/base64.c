/* By hand: OpenSSL's decoder is not as strict as the header promises, and a program that only
 * encodes does not load it for that. */
#include "base64.h"

#include <limits.h>
#include <string.h>

static const char padded[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
                  for_urls[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Without padding; how many characters. */
static size_t encode(struct slice s, const char digits[64], unsigned char *to)
{
    unsigned bits = 0, have = 0;
    size_t done = 0;
    for (size_t i = 0; i < s.n; i++) {
        bits = (bits << 8 | (unsigned char)s.p[i]) & 0xffff;
        for (have += 8; have >= 6; have -= 6)
            to[done++] = (unsigned char)digits[bits >> (have - 6) & 63];
    }
    if (have > 0)
        to[done++] = (unsigned char)digits[bits << (6 - have) & 63];
    return done;
}

static int put(struct buf *out, struct slice s, const char digits[64], bool pad)
{
    size_t most = (s.n + 2) / 3 * 4;
    unsigned char *to = s.n == 0 || s.n > INT_MAX / 2 ? NULL : buf_reserve(out, most);
    if (to == NULL)
        return s.n ? -1 : 0;
    size_t n = encode(s, digits, to);
    while (pad && n < most)
        to[n++] = '=';
    buf_commit(out, n);
    return 0;
}

int base64_append(struct buf *out, struct slice s)
{
    return put(out, s, padded, true);
}

int base64url_append(struct buf *out, struct slice s)
{
    return put(out, s, for_urls, false);
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
