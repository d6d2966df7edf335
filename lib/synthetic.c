/* Computes a name's two addresses from its index and finds the index of an address, in v4-mapped
 * form too. */
#include "synthetic.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static const uint32_t base4 = 0xc6120000; /* 198.18.0.0/15 */
static const unsigned char prefix6[8] = {0xfd, 0x64, 0x75, 0x72, 0x77, 0x61, 0x72, 0x64};
static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

static void put_u32(unsigned char to[4], uint32_t v)
{
    to[0] = (unsigned char)(v >> 24);
    to[1] = (unsigned char)(v >> 16);
    to[2] = (unsigned char)(v >> 8);
    to[3] = (unsigned char)v;
}

static uint32_t get_u32(const unsigned char p[4])
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

int synthetic_v4(uint32_t index, unsigned char ip[4])
{
    if (index == 0 || index > SYNTHETIC_MAX)
        return -1;
    put_u32(ip, base4 + index);
    return 0;
}

int synthetic_v6(uint32_t index, unsigned char ip[16])
{
    if (index == 0 || index > SYNTHETIC_MAX)
        return -1;
    memcpy(ip, prefix6, 8);
    memset(ip + 8, 0, 4);
    put_u32(ip + 12, index);
    return 0;
}

/* Which range an address is in, and its offset there. */
static bool locate(const struct sockaddr *sa, uint64_t *offset)
{
    const unsigned char *ip = NULL, *v4 = NULL;
    if (sa->sa_family == AF_INET)
        v4 = (const unsigned char *)&((const struct sockaddr_in *)sa)->sin_addr;
    else if (sa->sa_family == AF_INET6)
        ip = (const unsigned char *)&((const struct sockaddr_in6 *)sa)->sin6_addr;
    if (ip && memcmp(ip, mapped, sizeof mapped) == 0)
        v4 = ip + 12;
    if (v4) {
        uint32_t a = get_u32(v4);
        *offset = a - base4;
        return (a & 0xfffe0000) == base4;
    }
    if (ip == NULL || memcmp(ip, prefix6, sizeof prefix6) != 0)
        return false;
    *offset = (uint64_t)get_u32(ip + 8) << 32 | get_u32(ip + 12);
    return true;
}

uint32_t synthetic_index(const struct sockaddr *sa)
{
    uint64_t offset;
    if (!locate(sa, &offset) || offset == 0 || offset > SYNTHETIC_MAX)
        return 0;
    return (uint32_t)offset;
}

bool synthetic_contains(const struct sockaddr *sa)
{
    uint64_t offset;
    return locate(sa, &offset);
}
