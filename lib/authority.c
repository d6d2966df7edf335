/* Parses hosts and ports into the canonical form and writes them back. It refuses ::ffff:a.b.c.d,
 * which is another spelling of an IPv4 address. */
#include "authority.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

const char *scheme_name(enum scheme s)
{
    return s == SCHEME_IMAP       ? "imap"
           : s == SCHEME_SMTP     ? "smtp"
           : s == SCHEME_MYSQL    ? "mysql"
           : s == SCHEME_REDIS    ? "redis"
           : s == SCHEME_POSTGRES ? "postgres"
           : s == SCHEME_SSH      ? "ssh"
           : s == SCHEME_HTTPS    ? "https"
                                  : "http";
}

bool scheme_is_http(enum scheme s)
{
    return s == SCHEME_HTTP || s == SCHEME_HTTPS;
}

uint16_t scheme_port(enum scheme s)
{
    return s == SCHEME_IMAP       ? 143
           : s == SCHEME_SMTP     ? 587
           : s == SCHEME_MYSQL    ? 3306
           : s == SCHEME_REDIS    ? 6379
           : s == SCHEME_POSTGRES ? 5432
           : s == SCHEME_SSH      ? 22
           : s == SCHEME_HTTPS    ? 443
                                  : 80;
}

static bool label_is_numeric(struct slice l)
{
    size_t i = 0;
    if (l.n >= 2 && l.p[0] == '0' && (l.p[1] == 'x' || l.p[1] == 'X')) {
        for (i = 2; i < l.n; i++) {
            char c = ascii_lower(l.p[i]);
            if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
                return false;
        }
        return true;
    }
    for (; i < l.n; i++)
        if (l.p[i] < '0' || l.p[i] > '9')
            return false;
    return l.n > 0;
}

static bool label_ok(struct slice l)
{
    if (l.n == 0 || l.n > 63 || l.p[0] == '-' || l.p[l.n - 1] == '-')
        return false;
    for (size_t i = 0; i < l.n; i++)
        if (!ascii_is_alnum(l.p[i]) && l.p[i] != '-' && l.p[i] != '_')
            return false;
    return true;
}

static int host_name(struct authority *a, struct slice h)
{
    if (h.n > 1 && h.p[h.n - 1] == '.')
        h.n--;
    if (h.n == 0 || h.n > HOST_MAX)
        return -1;
    struct slice last, rest = h;
    for (;;) {
        ssize_t dot = slice_find(rest, '.');
        last = (struct slice){rest.p, dot < 0 ? rest.n : (size_t)dot};
        if (!label_ok(last))
            return -1;
        if (dot < 0)
            break;
        rest = (struct slice){rest.p + dot + 1, rest.n - (size_t)dot - 1};
    }
    if (label_is_numeric(last))
        return -1;
    for (size_t i = 0; i < h.n; i++)
        a->host[i] = ascii_lower(h.p[i]);
    a->host[h.n] = 0;
    memset(a->ip, 0, sizeof a->ip);
    a->kind = HOST_NAME;
    return 0;
}

static int host_ipv4(struct authority *a, struct slice h)
{
    char text[INET_ADDRSTRLEN], canonical[INET_ADDRSTRLEN];
    if (h.n >= sizeof text)
        return -1;
    memcpy(text, h.p, h.n);
    text[h.n] = 0;
    if (strlen(text) != h.n || inet_pton(AF_INET, text, a->ip) != 1)
        return -1;
    if (!inet_ntop(AF_INET, a->ip, canonical, sizeof canonical) || strcmp(text, canonical) != 0)
        return -1;
    memset(a->ip + 4, 0, 12);
    snprintf(a->host, sizeof a->host, "%s", canonical);
    a->kind = HOST_IPV4;
    return 0;
}

static void set_ipv6(struct authority *a)
{
    inet_ntop(AF_INET6, a->ip, a->host, sizeof a->host);
    a->kind = HOST_IPV6;
}

static int host_ipv6(struct authority *a, struct slice h)
{
    char text[INET6_ADDRSTRLEN];
    if (h.n >= sizeof text || slice_find(h, '%') >= 0)
        return -1;
    memcpy(text, h.p, h.n);
    text[h.n] = 0;
    if (strlen(text) != h.n || inet_pton(AF_INET6, text, a->ip) != 1)
        return -1;
    /* ::ffff:a.b.c.d is an IPv4 address spelled in another way */
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (memcmp(a->ip, mapped, sizeof mapped) == 0)
        return -1;
    set_ipv6(a);
    return 0;
}

int authority_host(struct authority *a, struct slice h)
{
    if (h.n >= 2 && h.p[0] == '[' && h.p[h.n - 1] == ']')
        return host_ipv6(a, (struct slice){h.p + 1, h.n - 2});
    if (host_ipv4(a, h) == 0)
        return 0;
    return host_name(a, h);
}

int authority_parse(struct authority *a, enum scheme scheme, struct slice text)
{
    struct slice host = text, port = {"", 0};
    bool has_port = false;
    ssize_t colon;
    if (text.n && text.p[0] == '[') {
        ssize_t close = slice_find(text, ']');
        if (close < 0)
            return -1;
        host.n = (size_t)close + 1;
        struct slice rest = {text.p + close + 1, text.n - (size_t)close - 1};
        if (rest.n) {
            if (rest.p[0] != ':')
                return -1;
            port = (struct slice){rest.p + 1, rest.n - 1};
            has_port = true;
        }
    } else if ((colon = slice_find(text, ':')) >= 0) {
        host.n = (size_t)colon;
        port = (struct slice){text.p + colon + 1, text.n - (size_t)colon - 1};
        has_port = true;
    }
    uint64_t v = scheme_port(scheme);
    if (has_port && (port.n > 5 || slice_u64(port, 65535, &v) < 0 || v == 0 || port.p[0] == '0'))
        return -1;
    if (authority_host(a, host) < 0)
        return -1;
    a->scheme = scheme;
    a->port = (uint16_t)v;
    return 0;
}

int authority_from_sockaddr(struct authority *a, enum scheme scheme, const struct sockaddr *sa)
{
    memset(a->ip, 0, sizeof a->ip);
    a->scheme = scheme;
    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
        memcpy(a->ip, &in->sin_addr, 4);
        a->port = ntohs(in->sin_port);
    } else if (sa->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
        a->port = ntohs(in6->sin6_port);
        if (!IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
            memcpy(a->ip, &in6->sin6_addr, 16);
            set_ipv6(a);
            return 0;
        }
        memcpy(a->ip, (const unsigned char *)&in6->sin6_addr + 12, 4);
    } else {
        return -1;
    }
    inet_ntop(AF_INET, a->ip, a->host, sizeof a->host);
    a->kind = HOST_IPV4;
    return 0;
}

bool authority_same_host(const struct authority *a, const struct authority *b)
{
    return a->kind == b->kind && strcmp(a->host, b->host) == 0;
}

bool authority_eq(const struct authority *a, const struct authority *b)
{
    return a->scheme == b->scheme && a->port == b->port && authority_same_host(a, b);
}

/* buf has room, or is cut as snprintf would. */
static char *put(const struct authority *a, bool port, char *buf, size_t size)
{
    char digits[SLICE_U64_TEXT];
    bool six = a->kind == HOST_IPV6;
    const struct slice parts[] = {six ? SLICE("[") : SLICE(""), slice_str(a->host),
                                  six ? SLICE("]") : SLICE(""), port ? SLICE(":") : SLICE(""),
                                  port ? slice_of_u64(a->port, digits) : SLICE("")};
    size_t at = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        size_t n = parts[i].n < size - 1 - at ? parts[i].n : size - 1 - at;
        memcpy(buf + at, parts[i].p, n);
        at += n;
    }
    buf[at] = 0;
    return buf;
}

char *authority_text(const struct authority *a, char *buf, size_t size)
{
    return put(a, a->port != scheme_port(a->scheme), buf, size);
}

char *authority_text_port(const struct authority *a, char *buf, size_t size)
{
    return put(a, true, buf, size);
}
