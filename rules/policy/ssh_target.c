/* Reads targets that an SSH server may connect to, and compares them. */
#include "ssh_target.h"

#include <string.h>

/* The host and what is behind the last colon. -1: there is none. */
static int split(struct slice text, struct slice *host, struct slice *port)
{
    const char *colon = memrchr(text.p, ':', text.n);
    if (colon == NULL || colon == text.p)
        return -1;
    *host = (struct slice){text.p, (size_t)(colon - text.p)};
    *port = (struct slice){colon + 1, text.n - host->n - 1};
    return 0;
}

static int read_port(struct slice digits, uint16_t *ret)
{
    uint64_t n;
    if (digits.n == 0 || digits.p[0] == '0' || slice_u64(digits, 65535, &n) < 0)
        return -1;
    *ret = (uint16_t)n;
    return 0;
}

/* "10.0.0.0/8", "[fd00::/8]": an IPv6 one stands in brackets, as an address does. */
static int read_range(struct slice host, struct cidr *ret)
{
    bool v6 = host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';
    if (v6)
        host = (struct slice){host.p + 1, host.n - 2};
    return cidr_parse(ret, host) == 0 && (ret->kind == HOST_IPV6) == v6 ? 0 : -1;
}

int ssh_target_parse(struct slice text, struct ssh_target *ret)
{
    struct slice host, port;
    memset(ret, 0, sizeof *ret);
    if (split(text, &host, &port) < 0 ||
        (!slice_eq(port, SLICE("*")) && read_port(port, &ret->port) < 0))
        return -1;
    ret->is_range = slice_find(host, '/') >= 0;
    if (ret->is_range)
        return read_range(host, &ret->range);
    ret->subdomains = host.p[0] == '.';
    if (ret->subdomains)
        host = (struct slice){host.p + 1, host.n - 1};
    if (authority_host(&ret->host, host) < 0)
        return -1;
    return ret->subdomains && ret->host.kind != HOST_NAME ? -1 : 0;
}

static bool is_under(const char *host, const char *name)
{
    size_t n = strlen(host), under = strlen(name);
    return n > under + 1 && host[n - under - 1] == '.' && strcmp(host + n - under, name) == 0;
}

bool ssh_target_matches(const struct ssh_target *t, const struct authority *at)
{
    if (t->port && t->port != at->port)
        return false;
    if (t->is_range)
        return cidr_contains(&t->range, at);
    if (t->subdomains)
        return at->kind == HOST_NAME && is_under(at->host, t->host.host);
    return authority_same_host(&t->host, at);
}

int ssh_target_asked(struct slice host, unsigned port, struct authority *ret)
{
    char text[HOST_TEXT_MAX + 2];
    bool v6 = slice_find(host, ':') >= 0;
    memset(ret, 0, sizeof *ret);
    if (host.n == 0 || host.n >= HOST_TEXT_MAX || port == 0 || port > 65535 || host.p[0] == '[')
        return -1;
    text[0] = '[';
    memcpy(text + v6, host.p, host.n);
    text[host.n + v6] = ']';
    ret->scheme = SCHEME_SSH;
    ret->port = (uint16_t)port;
    return authority_host(ret, (struct slice){text, host.n + (v6 ? 2 : 0)});
}

int ssh_target_read(struct slice text, struct authority *ret)
{
    char whole[SSH_TARGET_TEXT_MAX];
    struct slice host, port;
    memset(ret, 0, sizeof *ret);
    if (text.n >= sizeof whole || split(text, &host, &port) < 0 ||
        read_port(port, &ret->port) < 0 || authority_host(ret, host) < 0)
        return -1;
    ret->scheme = SCHEME_SSH;
    return slice_eq_str(text, authority_text_port(ret, whole, sizeof whole)) ? 0 : -1;
}
