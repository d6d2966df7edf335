/* Reads a header and one question (RFC 1035, 4.1), and writes answers that point at it. */
#include "network_dns.h"

#include <string.h>

#include "slice.h"

enum {
    RESPONSE = 0x80,
    OPCODE = 0x78,
    RECURSION_WANTED = 0x01,
    RECURSION_THERE = 0x80,
    LABEL_MAX = 63,
    TYPE_A = 1,
    TYPE_ANY = 255,
    CLASS_IN = 1,
    POINTER = 0xc0,
    TTL = 5,
    ANSWER = 16, /* bytes of one address's record */
};

static unsigned u16(const unsigned char *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

static void put_u16(unsigned char *p, unsigned v)
{
    p[0] = (unsigned char)(v >> 8);
    p[1] = (unsigned char)v;
}

/* The labels from *at on, which is then behind them. */
static bool take_name(const unsigned char *p, size_t n, size_t *at, char *to)
{
    size_t length = 0;
    for (;;) {
        if (*at >= n || p[*at] > LABEL_MAX)
            return false;
        size_t label = p[(*at)++];
        if (label == 0)
            break;
        if (label > n - *at || length + (length > 0) + label > NETWORK_DNS_NAME)
            return false;
        if (length > 0)
            to[length++] = '.';
        for (size_t i = 0; i < label; i++) {
            char c = (char)p[(*at)++];
            if (c == '\0' || c == '.')
                return false;
            to[length++] = ascii_lower(c);
        }
    }
    to[length] = '\0';
    return length > 0;
}

bool network_dns_question(const unsigned char *p, size_t n, struct network_question *ret)
{
    size_t at = NETWORK_DNS_HEAD;
    if (n < NETWORK_DNS_HEAD || (p[2] & (RESPONSE | OPCODE)) || u16(p + 4) != 1 || u16(p + 6) != 0)
        return false;
    if (!take_name(p, n, &at, ret->name) || n - at < 4 || u16(p + at + 2) != CLASS_IN)
        return false;
    ret->type = (uint16_t)u16(p + at);
    ret->end = at + 4;
    return true;
}

size_t network_dns_answer(const unsigned char *query, const struct network_question *q,
                          const unsigned char ips[][4], unsigned nips, unsigned char *to,
                          size_t size)
{
    unsigned n = q->type == TYPE_A || q->type == TYPE_ANY ? nips : 0;
    size_t at = q->end;
    if (q->end + (size_t)n * ANSWER > size)
        return 0;
    memcpy(to, query, q->end);
    to[2] = (unsigned char)(RESPONSE | (query[2] & RECURSION_WANTED));
    to[3] = RECURSION_THERE;
    put_u16(to + 6, n);
    put_u16(to + 8, 0);
    put_u16(to + 10, 0);
    for (unsigned i = 0; i < n; i++, at += ANSWER) {
        put_u16(to + at, POINTER << 8 | NETWORK_DNS_HEAD);
        put_u16(to + at + 2, TYPE_A);
        put_u16(to + at + 4, CLASS_IN);
        put_u16(to + at + 6, 0);
        put_u16(to + at + 8, TTL);
        put_u16(to + at + 10, 4);
        memcpy(to + at + 12, ips[i], 4);
    }
    return at;
}
