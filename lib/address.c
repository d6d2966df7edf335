/* Holds the tables of forbidden ranges and of the IPv6 forms that carry an IPv4 address, and the
 * guard, which keeps every address in 16 bytes so that one comparison serves both families. */
#include "address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct range {
    unsigned char net[16];
    unsigned bits;
    const char *why;
};

/* IANA special-purpose registry and the addresses of cloud metadata and host agents. */
static const struct range blocked4[] = {
    {{0}, 8, "this-network"},
    {{10}, 8, "private"},
    {{100, 64}, 10, "shared"}, /* RFC 6598; also 100.100.100.200, a metadata service */
    {{127}, 8, "loopback"},
    {{168, 63, 129, 16}, 32, "metadata"}, /* host agent of a cloud, outside every special range */
    {{169, 254}, 16, "link-local"},       /* with 169.254.169.254 */
    {{172, 16}, 12, "private"},
    {{192, 0, 0}, 24, "protocol"},
    {{192, 0, 2}, 24, "documentation"},
    {{192, 31, 196}, 24, "as112"},
    {{192, 52, 193}, 24, "amt"},
    {{192, 88, 99}, 24, "6to4-relay"},
    {{192, 168}, 16, "private"},
    {{192, 175, 48}, 24, "as112"},
    {{198, 18}, 15, "benchmark"}, /* with the synthetic addresses of sandboxes */
    {{198, 51, 100}, 24, "documentation"},
    {{203, 0, 113}, 24, "documentation"},
    {{224}, 4, "multicast"},
    {{240}, 4, "reserved"}, /* with 255.255.255.255 */
};

static const struct range blocked6[] = {
    {{0}, 128, "unspecified"},
    {{[15] = 1}, 128, "loopback"},
    {{0, 0x64, 0xff, 0x9b, 0, 1}, 48, "nat64-local"}, /* prefix length is the site's: unreadable */
    {{1}, 64, "discard"},
    {{0x20, 0x01, 0x00, 0x02}, 48, "benchmark"},
    {{0x20, 0x01, 0x00, 0x10}, 28, "orchid"},
    {{0x20, 0x01, 0x00, 0x20}, 28, "orchid"},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, "documentation"},
    {{0x3f, 0xff}, 20, "documentation"},
    {{0x5f, 0x00}, 16, "segment-routing"},
    {{0xfc}, 7, "private"}, /* with fd00:ec2::254 and the synthetic prefix */
    {{0xfe, 0x80}, 10, "link-local"},
    {{0xfe, 0xc0}, 10, "site-local"},
    {{0xff}, 8, "multicast"},
};

/* Where an IPv4 address sits inside an IPv6 one. */
struct wrapper {
    unsigned char net[16];
    unsigned bits;
    unsigned at;        /* first byte of the IPv4 address */
    unsigned char flip; /* every byte is XORed with this */
};

static const struct wrapper wrappers[] = {
    {{[10] = 0xff, [11] = 0xff}, 96, 12, 0}, /* ::ffff:0:0/96 v4-mapped */
    {{[8] = 0xff, [9] = 0xff}, 96, 12, 0},   /* ::ffff:0:0:0/96 v4-translated */
    {{0}, 96, 12, 0},                        /* ::/96 v4-compatible */
    {{0, 0x64, 0xff, 0x9b}, 96, 12, 0},      /* NAT64, RFC 6052 */
    {{0x20, 0x02}, 16, 2, 0},                /* 6to4 */
    {{0x20, 0x01, 0, 0}, 32, 4, 0},          /* Teredo: the server */
    {{0x20, 0x01, 0, 0}, 32, 12, 0xff},      /* Teredo: the client, inverted */
};

struct address_guard {
    struct range *extra; /* IPv4 ones hold the v4-mapped form, so that one comparison serves */
    size_t n_extra;
    unsigned char (*own)[16];
    size_t n_own;
    uint16_t ports[ADDRESS_PORTS_MAX]; /* that this daemon listens on itself */
    size_t n_ports;
    unsigned char published[65536 / 8]; /* a bit a port */
};

static bool in_net(const unsigned char *ip, const unsigned char *net, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    if (memcmp(ip, net, whole) != 0)
        return false;
    return rest == 0 || ((ip[whole] ^ net[whole]) >> (8 - rest)) == 0;
}

static const char *in_table(const unsigned char *ip, const struct range *t, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (in_net(ip, t[i].net, t[i].bits))
            return t[i].why;
    return NULL;
}

static const char *blocked_v4(const unsigned char ip[4])
{
    return in_table(ip, blocked4, ARRAY_LEN(blocked4));
}

/* An interface identifier of ISATAP (RFC 5214) names an IPv4 host under any prefix. */
static bool is_isatap(const unsigned char ip[16])
{
    return (ip[8] & 0xfd) == 0 && ip[9] == 0 && ip[10] == 0x5e && ip[11] == 0xfe;
}

static const char *blocked_v6(const unsigned char ip[16])
{
    const char *why = in_table(ip, blocked6, ARRAY_LEN(blocked6));
    if (why)
        return why;
    for (size_t i = 0; i < ARRAY_LEN(wrappers); i++) {
        const struct wrapper *w = &wrappers[i];
        unsigned char v4[4];
        if (!in_net(ip, w->net, w->bits))
            continue;
        for (unsigned j = 0; j < 4; j++)
            v4[j] = ip[w->at + j] ^ w->flip;
        why = blocked_v4(v4);
        if (why)
            return why;
    }
    return is_isatap(ip) ? blocked_v4(ip + 12) : NULL;
}

static const unsigned char *ip_of(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET)
        return (const unsigned char *)&((const struct sockaddr_in *)sa)->sin_addr;
    if (sa->sa_family == AF_INET6)
        return (const unsigned char *)&((const struct sockaddr_in6 *)sa)->sin6_addr;
    return NULL;
}

/* Both families as one: IPv4 in its v4-mapped form. */
static void unify(unsigned char to[16], int family, const unsigned char *ip)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (family == AF_INET6) {
        memcpy(to, ip, 16);
        return;
    }
    memcpy(to, mapped, 12);
    memcpy(to + 12, ip, 4);
}

const char *address_blocked(const struct sockaddr *sa)
{
    const unsigned char *ip = ip_of(sa);
    if (ip == NULL)
        return "family";
    return sa->sa_family == AF_INET ? blocked_v4(ip) : blocked_v6(ip);
}

struct address_guard *address_guard_new(void)
{
    return calloc(1, sizeof(struct address_guard));
}

void address_guard_free(struct address_guard *g)
{
    if (g == NULL)
        return;
    free(g->extra);
    free(g->own);
    free(g);
}

static int parse_ip(struct slice text, int *family, unsigned char ip[16])
{
    char s[INET6_ADDRSTRLEN];
    if (text.n == 0 || text.n >= sizeof s || memchr(text.p, 0, text.n))
        return -1;
    memcpy(s, text.p, text.n);
    s[text.n] = 0;
    *family = strchr(s, ':') ? AF_INET6 : AF_INET;
    return inet_pton(*family, s, ip) == 1 ? 0 : -1;
}

int address_guard_add(struct address_guard *g, struct slice cidr, struct err *err)
{
    struct slice host = cidr;
    ssize_t slash = slice_find(cidr, '/');
    int family;
    unsigned char ip[16];
    if (slash >= 0)
        host.n = (size_t)slash;
    if (parse_ip(host, &family, ip) < 0)
        return err_set(err, ERR_PARSE, "not an address or CIDR range: %.*s", SL(cidr));
    uint64_t max = family == AF_INET ? 32 : 128, bits = max;
    if (slash >= 0 &&
        slice_u64((struct slice){cidr.p + slash + 1, cidr.n - (size_t)slash - 1}, max, &bits) < 0)
        return err_set(err, ERR_PARSE, "bad prefix length in %.*s", SL(cidr));
    if (g->n_extra >= ADDRESS_EXTRA_MAX)
        return err_set(err, ERR_LIMIT, "more than %d forbidden ranges", ADDRESS_EXTRA_MAX);
    struct range *p = realloc(g->extra, (g->n_extra + 1) * sizeof *p);
    if (p == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    g->extra = p;
    p += g->n_extra++;
    unify(p->net, family, ip);
    p->bits = (unsigned)bits + (family == AF_INET ? 96 : 0);
    p->why = "listed";
    return 0;
}

int address_guard_port(struct address_guard *g, uint16_t port, struct err *err)
{
    if (g->n_ports >= ADDRESS_PORTS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d ports of our own", ADDRESS_PORTS_MAX);
    g->ports[g->n_ports++] = port;
    return 0;
}

int address_guard_refresh(struct address_guard *g, struct err *err)
{
    struct ifaddrs *list, *i;
    size_t n = 0;
    if (getifaddrs(&list) < 0)
        return err_sys(err, "getifaddrs");
    unsigned char(*own)[16] = calloc(ADDRESS_OWN_MAX, sizeof *own);
    if (own == NULL) {
        freeifaddrs(list);
        return err_set(err, ERR_INTERNAL, "out of memory");
    }
    for (i = list; i && n < ADDRESS_OWN_MAX; i = i->ifa_next) {
        const unsigned char *ip = i->ifa_addr ? ip_of(i->ifa_addr) : NULL;
        if (ip)
            unify(own[n++], i->ifa_addr->sa_family, ip);
    }
    bool all = i == NULL;
    freeifaddrs(list);
    if (!all) {
        free(own);
        return err_set(err, ERR_LIMIT, "this host has more than %d addresses", ADDRESS_OWN_MAX);
    }
    unsigned char(*cut)[16] = n ? realloc(own, n * sizeof *own) : NULL;
    free(g->own);
    g->own = cut ? cut : own;
    g->n_own = n;
    return 0;
}

static const char *guard_own(const struct address_guard *g, const unsigned char ip[16])
{
    for (size_t i = 0; i < g->n_own; i++)
        if (memcmp(g->own[i], ip, 16) == 0)
            return "own";
    return NULL;
}

static const char *guard_one(const struct address_guard *g, const unsigned char ip[16])
{
    const char *own = guard_own(g, ip);
    return own ? own : in_table(ip, g->extra, g->n_extra);
}

/* An address and what it carries inside, each asked of the guard. */
static const char *guard_each(const struct address_guard *g, const struct sockaddr *sa,
                              const char *(*ask)(const struct address_guard *,
                                                 const unsigned char ip[16]))
{
    unsigned char ip[16], inner[16], v4[4];
    const char *why;
    unify(ip, sa->sa_family, ip_of(sa));
    if ((why = ask(g, ip)) != NULL)
        return why;
    for (size_t i = 0; i < ARRAY_LEN(wrappers); i++) {
        const struct wrapper *w = &wrappers[i];
        if (!in_net(ip, w->net, w->bits))
            continue;
        for (unsigned j = 0; j < 4; j++)
            v4[j] = ip[w->at + j] ^ w->flip;
        unify(inner, AF_INET, v4);
        if ((why = ask(g, inner)) != NULL)
            return why;
    }
    return NULL;
}

static const char *guard_listed(const struct address_guard *g, const unsigned char ip[16])
{
    return in_table(ip, g->extra, g->n_extra);
}

const char *address_guard_check(const struct address_guard *g, const struct sockaddr *sa)
{
    const char *why = address_blocked(sa);
    return why ? why : guard_each(g, sa, guard_one);
}

bool address_guard_listed(const struct address_guard *g, const struct sockaddr *sa)
{
    return ip_of(sa) == NULL || guard_each(g, sa, guard_listed) != NULL;
}

void address_guard_published(struct address_guard *g, const uint16_t *ports, size_t n)
{
    memset(g->published, 0, sizeof g->published);
    for (size_t i = 0; i < n; i++)
        g->published[ports[i] / 8] |= (unsigned char)(1U << ports[i] % 8);
}

bool address_guard_ours(const struct address_guard *g, const struct sockaddr *sa, uint16_t port)
{
    static const char *const here[] = {"this-network", "unspecified", "loopback"};
    bool listens = (g->published[port / 8] >> port % 8 & 1) != 0;
    for (size_t i = 0; i < g->n_ports; i++)
        listens |= g->ports[i] == port;
    if (!listens || ip_of(sa) == NULL)
        return false;
    const char *why = address_blocked(sa);
    for (size_t i = 0; why && i < ARRAY_LEN(here); i++)
        if (strcmp(why, here[i]) == 0)
            return true;
    return guard_each(g, sa, guard_own) != NULL;
}

void address_set(struct address *a, int family, const void *ip, uint16_t port)
{
    memset(a, 0, sizeof *a);
    if (family == AF_INET) {
        a->in.sin_family = AF_INET;
        a->in.sin_port = htons(port);
        memcpy(&a->in.sin_addr, ip, 4);
        a->len = sizeof a->in;
    } else {
        a->in6.sin6_family = AF_INET6;
        a->in6.sin6_port = htons(port);
        memcpy(&a->in6.sin6_addr, ip, 16);
        a->len = sizeof a->in6;
    }
}

int address_parse(struct address *a, struct slice text)
{
    struct slice host = text;
    size_t colon = text.n;
    while (colon > 0 && text.p[colon - 1] != ':')
        colon--;
    if (colon == 0)
        return -1;
    host.n = colon - 1;
    struct slice port_text = {text.p + colon, text.n - colon};
    uint64_t port;
    if (slice_u64(port_text, 65535, &port) < 0 || port == 0)
        return -1;
    bool bracket = host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';
    if (bracket)
        host = (struct slice){host.p + 1, host.n - 2};
    int family;
    unsigned char ip[16];
    if (parse_ip(host, &family, ip) < 0 || bracket != (family == AF_INET6))
        return -1;
    address_set(a, family, ip, (uint16_t)port);
    return 0;
}

uint16_t address_port(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)sa)->sin_port);
    if (sa->sa_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)sa)->sin6_port);
    return 0;
}

char *address_text(const struct sockaddr *sa, char *buf, size_t size)
{
    char ip[INET6_ADDRSTRLEN] = "?";
    const unsigned char *p = ip_of(sa);
    if (p)
        inet_ntop(sa->sa_family, p, ip, sizeof ip);
    if (sa->sa_family == AF_INET6)
        snprintf(buf, size, "[%s]:%u", ip, address_port(sa));
    else
        snprintf(buf, size, "%s:%u", ip, address_port(sa));
    return buf;
}

bool address_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
    unsigned char x[16], y[16];
    if (!ip_of(a) || !ip_of(b))
        return false;
    unify(x, a->sa_family, ip_of(a));
    unify(y, b->sa_family, ip_of(b));
    return memcmp(x, y, 16) == 0;
}
