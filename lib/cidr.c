/* Parses a range by way of authority_host, so that its address has one spelling only, and compares
 * prefixes byte by byte. */
#include "cidr.h"

#include <string.h>

static unsigned char mask(unsigned bits, size_t at)
{
    if (bits >= (at + 1) * 8)
        return 0xff;
    return bits <= at * 8 ? 0 : (unsigned char)(0xff << (8 - bits % 8));
}

int cidr_parse(struct cidr *ret, struct slice text)
{
    char host[HOST_TEXT_MAX];
    struct authority a = {.scheme = SCHEME_HTTPS};
    uint64_t bits;
    ssize_t slash = slice_find(text, '/');
    if (slash <= 0 || slash > HOST_TEXT_MAX - 3)
        return -1;
    size_t n = (size_t)slash;
    bool v6 = slice_find(text, ':') >= 0;
    host[0] = '[';
    memcpy(host + v6, text.p, n);
    host[n + v6] = ']';
    if (authority_host(&a, (struct slice){host, n + (v6 ? 2 : 0)}) < 0 || a.kind == HOST_NAME)
        return -1;
    struct slice digits = {text.p + n + 1, text.n - n - 1};
    if ((digits.n > 1 && digits.p[0] == '0') ||
        slice_u64(digits, a.kind == HOST_IPV4 ? 32 : 128, &bits) < 0)
        return -1;
    for (size_t i = 0; i < (a.kind == HOST_IPV4 ? 4u : 16u); i++)
        if (a.ip[i] & (unsigned char)~mask((unsigned)bits, i))
            return -1;
    *ret = (struct cidr){.kind = a.kind, .bits = (unsigned)bits};
    memcpy(ret->ip, a.ip, sizeof ret->ip);
    return 0;
}

bool cidr_contains(const struct cidr *c, const struct authority *a)
{
    if (a->kind != c->kind)
        return false;
    for (size_t i = 0; i < (c->kind == HOST_IPV4 ? 4u : 16u); i++)
        if ((a->ip[i] & mask(c->bits, i)) != c->ip[i])
            return false;
    return true;
}
