/* The `listen` section: explicit proxies, in clear or in TLS. */
#include <stdio.h>
#include <string.h>

#include "config_tree.h"

enum { PREVIEW_DOMAIN_MAX = 180 }; /* a label goes before it */

static bool is_loopback(const struct authority *a)
{
    static const unsigned char one[16] = {[15] = 1};
    return a->kind == HOST_IPV4 ? a->ip[0] == 127 : memcmp(a->ip, one, sizeof one) == 0;
}

static bool is_any(const struct authority *a)
{
    static const unsigned char zero[16];
    return memcmp(a->ip, zero, a->kind == HOST_IPV4 ? 4 : 16) == 0;
}

static bool is_local(const struct authority *a)
{
    size_t n = strlen(a->host), of = strlen(".localhost");
    if (a->kind != HOST_NAME)
        return is_loopback(a);
    return strcmp(a->host, "localhost") == 0 ||
           (n > of && strcmp(a->host + n - of, ".localhost") == 0);
}

/* ADDRESS:PORT, with the port written out. */
static int read_address(struct config *c, const struct node *at, struct authority *a,
                        struct config_listen *l, struct err *err)
{
    char text[HOST_TEXT_MAX + 16];
    const char *value;
    if (node_string(at, &value, err) < 0)
        return -1;
    if (authority_parse(a, SCHEME_HTTP, slice_str(value)) < 0 || a->kind == HOST_NAME ||
        (a->port == 80 && (strlen(value) < 3 || strcmp(value + strlen(value) - 3, ":80") != 0)))
        return node_fail(at, err, "'%.200s' is not ADDRESS:PORT, such as 127.0.0.1:3128", value);
    l->address = l->reached_at = arena_str(c->arena, authority_text_port(a, text, sizeof text));
    l->local = is_local(a);
    return 0;
}

/* What the listener's own certificate is for, and clients call it: `name`, else the address. */
static int read_name(struct config *c, const struct node *n, const struct authority *a,
                     struct config_listen *l, struct err *err)
{
    struct authority named = *a;
    struct node at;
    char text[HOST_TEXT_MAX + 16];
    const char *value;
    if (!node_get(n, "name", &at)) {
        if (is_any(a))
            return node_fail(n, err,
                             "clients cannot verify %s: say by what name they reach it, "
                             "'name: proxy.example.com'",
                             l->address);
        l->name = arena_str(c->arena, a->host);
        return 0;
    }
    if (node_string(&at, &value, err) < 0)
        return -1;
    if (authority_host(&named, slice_str(value)) < 0)
        return node_fail(&at, err, "'%.200s' is not a host name or address", value);
    l->name = arena_str(c->arena, named.host);
    l->reached_at = arena_str(c->arena, authority_text_port(&named, text, sizeof text));
    l->local = is_local(&named);
    return 0;
}

static int read_policy(const struct config *c, const struct node *n, struct config_listen *l,
                       struct err *err)
{
    struct node at;
    const char *value;
    if (!node_get(n, "policy", &at))
        return 0;
    if (node_string(&at, &value, err) < 0)
        return -1;
    const struct config_policy *p = config_policy_find(c, value);
    if (p == NULL)
        return node_fail(&at, err, "there is no policy '%.60s'; add it under 'policies'", value);
    l->policy = p->name;
    return 0;
}

static const struct key page_keys[] = {
    KEY("metrics", AS(address), "none",
        "ADDRESS:PORT of `/metrics` (Prometheus' text format), `/healthz` and `/readyz`, in clear. "
        "Off loopback with `insecure: true` only. The names are in the answer's own HELP lines; "
        "deploy/ has alert rules and a Grafana dashboard"),
    KEY("console", AS(address), "none",
        "ADDRESS:PORT, loopback only, of the page that shows what goes on; `durward console` "
        "prints the link that logs in"),
    KEY("insecure", AS(bool), "", ""),
};

/* { metrics: ADDRESS:PORT } or { console: ADDRESS:PORT }: no way out of a sandbox, but what the
 * controller serves. */
static int read_page(struct config *c, const struct node *n, const char *key, const char **ret,
                     struct err *err)
{
    struct config_listen l = {.insecure = false};
    struct authority a;
    struct node at;
    bool is_metrics = strcmp(key, "metrics") == 0;
    if (node_keys(n, KEYS(page_keys), err) < 0)
        return -1;
    if (node_get(n, is_metrics ? "console" : "metrics", &at))
        return node_fail(n, err, "'metrics' and 'console' are two listeners: make two entries");
    if (node_key_bool(n, "insecure", &l.insecure, err) < 0)
        return -1;
    if (!node_get(n, key, &at) || read_address(c, &at, &a, &l, err) < 0)
        return -1;
    if (*ret)
        return node_fail(&at, err, "there is a '%s' listener already: %s", key, *ret);
    if (!is_loopback(&a) && !is_metrics)
        return node_fail(&at, err,
                         "%s is not a loopback address: the console is served on this "
                         "host only; reach it through 'ssh -L'",
                         l.address);
    if (!is_loopback(&a) && !l.insecure)
        return node_fail(&at, err,
                         "%s is not a loopback address: whoever reaches it could read "
                         "the metrics; say 'insecure: true' if you mean it",
                         l.address);
    *ret = l.address;
    return 0;
}

static const struct key listener_keys[] = {
    KEY("http", AS(address), "this or `https`",
        "ADDRESS:PORT of an explicit proxy in clear, for CONNECT, absolute-form and SOCKS5 "
        "(recognised by its first byte; the token is the password). An address, not a name; port 1 "
        "to 65535"),
    KEY("https", AS(address), "this or `http`",
        "the same in TLS: the client verifies its proxy before it says anything. The certificate "
        "is of Durward's own CA, which clients have to trust anyway; curl takes that for a proxy "
        "from `--proxy-cacert` alone (`proxy-cacert` in a .curlrc), not from a variable"),
    KEY("name", AS(text), "the address; required where that is `0.0.0.0` or `[::]`",
        "with `https`: the one host name or address that the certificate is for, and that `durward "
        "env` prints. A client that asks for another by SNI is refused"),
    KEY("policy", AS(name), "a token",
        "whoever reaches the listener has this policy. Without it a sandbox's token is asked for"),
    KEY("insecure", AS(bool), "`false`",
        "`true` permits an address that is not loopback. There, without it, two forms are load "
        "errors: any with a `policy`, which would let anybody in without a token, and `http`, "
        "which would carry tokens in clear"),
    KEY("forwarded", OWN, "a proxy",
        "it is not a proxy, but a URL to which a provider sends its sandboxes' requests on; see "
        "below. With a `policy`, which they have; with `https` no `insecure` is needed for it"),
};

static int read_listener(struct config *c, const struct node *n, struct config_listen *l,
                         struct err *err)
{
    struct node clear, secure, at;
    struct authority a;
    if (node_keys(n, KEYS(listener_keys), err) < 0)
        return -1;
    bool is_http = node_get(n, "http", &clear), is_https = node_get(n, "https", &secure);
    if (is_http == is_https)
        return node_fail(n, err, "a listener has an address: { http: 127.0.0.1:3128 }%s",
                         is_http ? ", or https, not both" : "");
    l->kind = is_http ? LISTEN_HTTP : LISTEN_HTTPS;
    if (node_key_bool(n, "insecure", &l->insecure, err) < 0)
        return -1;
    if (read_address(c, is_http ? &clear : &secure, &a, l, err) < 0 ||
        read_policy(c, n, l, err) < 0)
        return -1;
    if (node_get(n, "forwarded", &at) && config_read_forwarded(c, &at, l, err) < 0)
        return -1;
    if (is_http && node_get(n, "name", &at))
        return node_fail(&at, err, "'name' is of a certificate: it goes with 'https'");
    if (!is_loopback(&a) && !l->insecure && (is_http || (l->policy && !l->forwarded)))
        return node_fail(n, err,
                         "%s is not a loopback address: %s; listen on 127.0.0.1, or say "
                         "'insecure: true' if you mean it",
                         l->address,
                         l->policy && !l->forwarded
                             ? "whoever reaches it would be that policy, without a token"
                             : "tokens would go over the network in clear");
    return is_https ? read_name(c, n, &a, l, err) : 0;
}

/* Of `controller`: https ADDRESS:PORT, name HOST. */
int config_read_api(struct config *c, const struct node *n, struct err *err)
{
    struct config_listen *l = &c->api;
    struct authority a;
    struct node at;
    if (!node_get(n, "https", &at))
        return node_get(n, "name", &at)
                   ? node_fail(&at, err, "'name' is of the certificate: it goes with 'https'")
                   : 0;
    l->kind = LISTEN_HTTPS;
    return read_address(c, &at, &a, l, err) < 0 ? -1 : read_name(c, n, &a, l, err);
}

/* http://DOMAIN[:PORT] or https://DOMAIN[:PORT], and not a byte more. */
static int read_preview_url(const struct config *c, const struct node *n, struct authority *ret,
                            struct err *err)
{
    const char *text, *api = c->api.address ? c->api.name : NULL;
    if (node_string(n, &text, err) < 0)
        return -1;
    struct slice s = slice_str(text), clear = SLICE("http://"), tls = SLICE("https://");
    bool secure = slice_starts(s, tls);
    size_t skip = secure ? tls.n : clear.n;
    if ((!secure && !slice_starts(s, clear)) ||
        authority_parse(ret, secure ? SCHEME_HTTPS : SCHEME_HTTP,
                        (struct slice){s.p + skip, s.n - skip}) < 0 ||
        ret->kind != HOST_NAME || strlen(ret->host) > PREVIEW_DOMAIN_MAX)
        return node_fail(n, err, "'%.200s' is not http://DOMAIN[:PORT] or https://DOMAIN[:PORT]",
                         text);
    if (!secure && !is_local(ret)) /* elsewhere browsers do not say whose page asks */
        return node_fail(n, err, "a domain that is not below localhost is seen by https:// only");
    if (api && (strcmp(api, ret->host) == 0 || (slice_ends(slice_str(api), slice_str(ret->host)) &&
                                                api[strlen(api) - strlen(ret->host) - 1] == '.')))
        return node_fail(n, err, "%s is the API's own name: previews have a domain apart", api);
    return 0;
}

int config_read_preview(struct config *c, const struct node *n, struct err *err)
{
    struct config_listen l = {.insecure = false};
    struct authority a;
    struct node at, url;
    bool named = node_get(n, "preview_url", &url);
    if (!node_get(n, "preview", &at))
        return named ? node_fail(&url, err, "'preview_url' goes with 'preview'") : 0;
    if (read_address(c, &at, &a, &l, err) < 0)
        return -1;
    (void)authority_parse(&c->preview.at, SCHEME_HTTP, SLICE("preview.localhost"));
    c->preview.at.port = a.port;
    if (named && read_preview_url(c, &url, &c->preview.at, err) < 0)
        return -1;
    if (!is_loopback(&a) && c->preview.at.scheme != SCHEME_HTTPS)
        return node_fail(&at, err,
                         "%s is not a loopback address: what is seen there would go over the "
                         "network in clear; say by which https:// it is reached, 'preview_url'",
                         l.address);
    c->preview.address = l.address;
    return 0;
}

int config_read_listen(struct config *c, const struct node *n, struct err *err)
{
    if (node_is_array(n, err) < 0)
        return -1;
    size_t count = json_array_size(n->value);
    if (count > 64)
        return node_fail(n, err, "more than 64 listeners");
    c->listens = arena_zalloc(c->arena, count + 1, sizeof *c->listens);
    for (size_t i = 0; i < count; i++) {
        struct node item = node_item(n, i), at;
        struct config_listen *l = &c->listens[c->n_listens];
        if (node_get(&item, "metrics", &at) || node_get(&item, "console", &at)) {
            bool is_metrics = node_get(&item, "metrics", &at);
            if (read_page(c, &item, is_metrics ? "metrics" : "console",
                          is_metrics ? &c->metrics : &c->console, err) < 0)
                return -1;
            continue;
        }
        if (read_listener(c, &item, l, err) < 0)
            return -1;
        for (size_t j = 0; j < c->n_listens; j++)
            if (strcmp(l->address, c->listens[j].address) == 0)
                return node_fail(&item, err, "%s is listened on twice", l->address);
        c->n_listens++;
    }
    return 0;
}
