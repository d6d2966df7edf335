/* The `upstream` section: where names lie, whom to believe, which way out. */
#include <stdio.h>
#include <string.h>

#include "cidr.h"
#include "config_tree.h"

static int read_resolve(struct config *c, const struct node *n, struct err *err)
{
    struct authority host, address;
    char text[HOST_TEXT_MAX + 16];
    const char *value;
    struct slice key = slice_str(n->key);
    bool dot = key.n && key.p[0] == '.';
    if (authority_parse(&host, SCHEME_HTTPS, (struct slice){key.p + dot, key.n - dot}) < 0 ||
        (dot && host.kind != HOST_NAME))
        return node_fail(n, err, "'%.200s' is not HOST, .HOST or HOST:PORT", n->key);
    if (node_string(n, &value, err) < 0)
        return -1;
    if (authority_parse(&address, SCHEME_HTTPS, slice_str(value)) < 0 || address.kind == HOST_NAME)
        return node_fail(n, err, "'%.200s' is not an address such as 127.0.0.1:8443 or [::1]:8443",
                         value);
    ssize_t colon = slice_find(slice_str(strrchr(value, ']') ? strrchr(value, ']') : value), ':');
    if (colon < 0)
        address.port = host.port;
    struct config_resolve *r = &c->resolves[c->n_resolves];
    snprintf(text, sizeof text, "%s%s", dot ? "." : "", host.host);
    *r = (struct config_resolve){arena_str(c->arena, text), host.port, NULL};
    r->address = arena_str(c->arena, authority_text_port(&address, text, sizeof text));
    for (size_t i = 0; i < c->n_resolves; i++)
        if (c->resolves[i].port == r->port && strcmp(c->resolves[i].host, r->host) == 0)
            return node_fail(n, err, "%s port %u is resolved twice", r->host, r->port);
    c->n_resolves++;
    return 0;
}

/* http://HOST:PORT or https://HOST:PORT and not a byte more. */
static int read_proxy_url(struct config *c, const struct node *n, struct config_proxy *p,
                          struct err *err)
{
    const char *text;
    struct authority a;
    if (node_string(n, &text, err) < 0)
        return -1;
    struct slice s = slice_str(text);
    p->scheme = slice_starts(s, SLICE("https://")) ? SCHEME_HTTPS : SCHEME_HTTP;
    size_t skip = strlen(scheme_name(p->scheme)) + 3;
    if (slice_find(s, '@') >= 0)
        return node_fail(n, err,
                         "a credential never stands here: proxy: { url: ..., user: NAME, "
                         "password: SECRET }, with SECRET of 'secrets'");
    if (p->scheme == SCHEME_HTTP && !slice_starts(s, SLICE("http://")))
        return node_fail(n, err, "'%.200s' is not http://HOST:PORT or https://HOST:PORT", text);
    struct slice host = {s.p + skip, s.n - skip};
    const char *end = strrchr(host.p, ']');
    if (strchr(end ? end : host.p, ':') == NULL || authority_parse(&a, p->scheme, host) < 0)
        return node_fail(n, err, "'%.200s' is not http://HOST:PORT or https://HOST:PORT", text);
    p->host = arena_str(c->arena, a.host);
    p->port = a.port;
    return 0;
}

static int read_proxy_user(struct config *c, const struct node *n, struct config_proxy *p,
                           struct err *err)
{
    struct node user, password;
    bool has_user = node_get(n, "user", &user), has_password = node_get(n, "password", &password);
    if (has_user != has_password)
        return node_fail(n, err, "'user' and 'password' go together");
    if (!has_user)
        return 0;
    if (node_string(&user, &p->user, err) < 0 || node_string(&password, &p->password, err) < 0)
        return -1;
    if (strlen(p->user) > 128)
        return node_fail(&user, err, "a user is at most 128 bytes");
    for (const char *u = p->user; *u; u++)
        if ((unsigned char)*u < 0x21 || (unsigned char)*u > 0x7e || *u == ':')
            return node_fail(&user, err, "a user has no blank, colon or byte outside ASCII");
    const struct config_secret *s = config_secret(c, p->password);
    if (s == NULL)
        return node_fail(&password, err,
                         "there is no secret '%.60s'; 'password' is a name of 'secrets', not the "
                         "password",
                         p->password);
    p->user = arena_str(c->arena, p->user);
    p->password = s->name;
    return 0;
}

static const struct key proxy_keys[] = {
    KEY("url", AS(text), "", ""),
    KEY("user", AS(text), "", ""),
    KEY("password", AS(name), "", ""),
};

static int read_proxy(struct config *c, const struct node *n, struct err *err)
{
    struct node url;
    c->proxy = arena_zalloc(c->arena, 1, sizeof *c->proxy);
    if (json_is_string(n->value))
        return read_proxy_url(c, n, c->proxy, err);
    if (node_keys(n, KEYS(proxy_keys), err) < 0)
        return -1;
    if (!node_get(n, "url", &url))
        return node_fail(n, err, "'url' is missing: http://HOST:PORT or https://HOST:PORT");
    if (read_proxy_url(c, &url, c->proxy, err) < 0)
        return -1;
    return read_proxy_user(c, n, c->proxy, err);
}

/* Its canonical text, which the dialer reads again. */
static int read_direct(struct config *c, const struct node *n, const char *text, const char **ret,
                       struct err *err)
{
    struct authority a = {.scheme = SCHEME_HTTPS};
    struct cidr range;
    char canonical[HOST_TEXT_MAX + 1], bracketed[HOST_TEXT_MAX + 2];
    struct slice s = slice_str(text);
    bool dot = slice_starts(s, SLICE("."));
    struct slice host = {s.p + dot, s.n - dot};
    *ret = arena_str(c->arena, text);
    if (slice_find(s, '/') >= 0 && cidr_parse(&range, s) == 0)
        return 0;
    if (slice_find(host, ':') >= 0 && host.n < HOST_TEXT_MAX) {
        snprintf(bracketed, sizeof bracketed, "[%.*s]", SL(host));
        host = slice_str(bracketed);
    }
    if (authority_host(&a, host) < 0 || (dot && a.kind != HOST_NAME))
        return node_fail(
            n, err, "'%.200s' is not a host, .domain, address or range such as 10.0.0.0/8", text);
    snprintf(canonical, sizeof canonical, "%s%s", dot ? "." : "", a.host);
    *ret = arena_str(c->arena, canonical);
    return 0;
}

static int read_no_proxy(struct config *c, const struct node *n, struct err *err)
{
    struct node at;
    const char *text;
    size_t count, bytes = 0;
    if (c->proxy == NULL)
        return node_fail(n, err, "'no_proxy' has no meaning without 'proxy'");
    if (node_strings(n, &count, err) < 0)
        return -1;
    c->no_proxy = arena_zalloc(c->arena, count + 1, sizeof *c->no_proxy);
    for (; c->n_no_proxy < count; c->n_no_proxy++) {
        if (node_strings_at(n, c->n_no_proxy, &at, &text, err) < 0 ||
            read_direct(c, &at, text, &c->no_proxy[c->n_no_proxy], err) < 0)
            return -1;
        bytes += strlen(c->no_proxy[c->n_no_proxy]) + 4;
    }
    if (bytes > CONFIG_DIRECT_BYTES)
        return node_fail(n, err, "more than %d bytes together", CONFIG_DIRECT_BYTES);
    return 0;
}

static const struct key upstream_keys[] = {
    KEY("ca", AS(strings), "none",
        "list or one of PEM files: more anchors for verifying origins, beside the system's roots. "
        "Each authority named here ends a chain, also an intermediate or a root's cross-signed "
        "twin: whoever names a certificate trusts it, and need not trust its issuer as well. (An "
        "intermediate that only lies in the system's bundle ends no chain.) A certificate may have "
        "1 MiB of PEM, a file 8 MiB"),
    KEY("resolve", OWN, "none",
        "mapping of `HOST`, `HOST:PORT` (443 when absent) or `.HOST` (every name below it) to an "
        "address, `192.0.2.1`, `192.0.2.1:8443` or `[2001:db8::1]:8443` (the key's port when "
        "absent). The address is used without asking DNS and may be a private one; certificates "
        "are still verified for the name. At most 1024, of 64 KiB together"),
    KEY("proxy", OWN, "none",
        "the proxy of your own network through which everything else goes: `http://HOST:PORT`, "
        "`https://HOST:PORT` (verified with the system's roots and `ca`), or `{ url: ..., user: "
        "NAME, password: SECRET }`, where SECRET is a name of `secrets`. Only the process that "
        "makes connections is given it. Host variables such as HTTPS_PROXY are not looked at"),
    KEY("no_proxy", AS(strings), "none",
        "list or one of what goes directly: a host, `.domain` (every name below it, not itself), "
        "an address, or a range such as `10.0.0.0/8`. Addresses and ranges are compared with "
        "addresses that a request names; a name is not resolved to see. At most 16 KiB together"),
};

int config_read_upstream(struct config *c, const struct node *n, struct err *err)
{
    struct node ca, resolve, at;
    const char *text;
    size_t count = 0, bytes = 0;
    if (node_keys(n, KEYS(upstream_keys), err) < 0)
        return -1;
    if (node_get(n, "proxy", &at) && read_proxy(c, &at, err) < 0)
        return -1;
    if (node_get(n, "no_proxy", &at) && read_no_proxy(c, &at, err) < 0)
        return -1;
    if (node_get(n, "ca", &ca)) {
        if (node_strings(&ca, &count, err) < 0)
            return -1;
        c->upstream_ca = arena_zalloc(c->arena, count + 1, sizeof *c->upstream_ca);
        for (size_t i = 0; i < count; i++)
            if (node_strings_at(&ca, i, &at, &text, err) < 0 ||
                config_file(c, &at, &c->upstream_ca[i], err) < 0)
                return -1;
    }
    if (!node_get(n, "resolve", &resolve))
        return 0;
    if (node_is_object(&resolve, err) < 0)
        return -1;
    if (json_object_size(resolve.value) > CONFIG_RESOLVES_MAX)
        return node_fail(&resolve, err, "more than %d names", CONFIG_RESOLVES_MAX);
    c->resolves = arena_zalloc(c->arena, json_object_size(resolve.value) + 1, sizeof *c->resolves);
    for (void *it = json_object_iter(resolve.value); it;
         it = json_object_iter_next(resolve.value, it)) {
        node_get(&resolve, json_object_iter_key(it), &at);
        if (read_resolve(c, &at, err) < 0)
            return -1;
        const struct config_resolve *r = &c->resolves[c->n_resolves - 1];
        bytes += strlen(r->host) + strlen(r->address) + CONFIG_ENTRY_BYTES;
    }
    if (bytes > CONFIG_RESOLVES_BYTES)
        return node_fail(&resolve, err, "names and addresses of more than %d bytes together",
                         CONFIG_RESOLVES_BYTES);
    return 0;
}
