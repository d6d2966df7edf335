/* Reads frames of a trunk: each field in its bounds, and nothing after the last. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "trunk.h"

enum { ADDRESS = 1 + 16 + 2, MESSAGE_MIN = 3, MESSAGE_MAX = IPC_MSG_MAX + 3 + 3 * IPC_FDS_MAX };

static uint32_t number(const unsigned char *p, size_t n)
{
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

/* How long what follows a head may be. */
static bool length_ok(uint8_t type, uint32_t n)
{
    switch (type) {
    case TRUNK_MESSAGE:
        return n >= MESSAGE_MIN && n <= MESSAGE_MAX;
    case TRUNK_OPEN:
        return n == 1 + ADDRESS;
    case TRUNK_REFUSED:
        return n == ADDRESS;
    case TRUNK_DATA:
        return n >= 1 && n <= TRUNK_CHUNK;
    case TRUNK_CREDIT:
        return n == 4;
    case TRUNK_END:
    case TRUNK_CLOSED:
        return n == 0;
    default:
        return false;
    }
}

static int address_read(const unsigned char *p, struct trunk_address *ret)
{
    static const unsigned char none[12];
    ret->family = p[0];
    memcpy(ret->ip, p + 1, 16);
    ret->port = (uint16_t)number(p + 17, 2);
    if (ret->port == 0 || (ret->family != 4 && ret->family != 6))
        return -1;
    return ret->family == 4 && memcmp(ret->ip + 4, none, sizeof none) != 0 ? -1 : 0;
}

static int body_read(struct trunk_frame *f, const unsigned char *p)
{
    switch (f->type) {
    case TRUNK_OPEN:
        f->kind = (enum trunk_kind)p[0];
        return f->kind != TRUNK_TCP && f->kind != TRUNK_UDP ? -1 : address_read(p + 1, &f->to);
    case TRUNK_REFUSED:
        return f->channel != 0 ? -1 : address_read(p, &f->to);
    case TRUNK_CREDIT:
        f->credit = number(p, 4);
        return f->credit == 0 || f->credit > TRUNK_WINDOW ? -1 : 0;
    case TRUNK_MESSAGE:
        return f->channel != 0 ? -1 : 0;
    default:
        return 0;
    }
}

ssize_t trunk_frame_read(struct slice from, struct trunk_frame *ret)
{
    const unsigned char *p = (const unsigned char *)from.p;
    if (from.n < TRUNK_HEAD)
        return 0;
    uint32_t n = number(p + 4, 4);
    if (p[1] != 0 || !length_ok(p[0], n))
        return -1;
    *ret = (struct trunk_frame){.type = (enum trunk_type)p[0],
                                .channel = (uint16_t)number(p + 2, 2),
                                .body = {from.p + TRUNK_HEAD, n}};
    if ((ret->channel & ~TRUNK_BY_HOST) >= TRUNK_CHANNELS)
        return -1;
    if (from.n - TRUNK_HEAD < n)
        return 0;
    return body_read(ret, p + TRUNK_HEAD) < 0 ? -1 : (ssize_t)(TRUNK_HEAD + n);
}

void trunk_address_to(const struct trunk_address *a, struct sockaddr *ret, unsigned *len)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(a->port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(a->port)};
    memcpy(&v4.sin_addr, a->ip, 4);
    memcpy(&v6.sin6_addr, a->ip, 16);
    *len = a->family == 4 ? sizeof v4 : sizeof v6;
    memcpy(ret, a->family == 4 ? (const void *)&v4 : (const void *)&v6, *len);
}

int trunk_address_of(const struct sockaddr *a, struct trunk_address *ret)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    *ret = (struct trunk_address){.family = a->sa_family == AF_INET ? 4 : 6};
    if (a->sa_family == AF_INET) {
        memcpy(&v4, a, sizeof v4);
        memcpy(ret->ip, &v4.sin_addr, 4);
        ret->port = ntohs(v4.sin_port);
    } else if (a->sa_family == AF_INET6) {
        memcpy(&v6, a, sizeof v6);
        memcpy(ret->ip, &v6.sin6_addr, 16);
        ret->port = ntohs(v6.sin6_port);
    }
    return ret->port == 0 ? -1 : 0;
}
