/* Reads the proxy and the list of what does not use it from W_INIT, in canonical form, and matches
 * authorities with that list. */
#include "upstream_proxy.h"

#include "ipc_msg.h"
#include "roots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIRECT_MAX = 4096 };

/* A host as the configuration's canonical text: IPv6 without brackets. */
static int take_host(struct authority *a, struct slice text)
{
    char bracketed[HOST_TEXT_MAX + 2];
    if (text.n >= HOST_TEXT_MAX)
        return -1;
    bool v6 = slice_find(text, ':') >= 0;
    snprintf(bracketed, sizeof bracketed, v6 ? "[%.*s]" : "%.*s", SL(text));
    return authority_host(a, slice_str(bracketed));
}

static int take_direct(struct upstream_direct *d, const char *text)
{
    struct slice s = slice_str(text);
    memset(d, 0, sizeof *d);
    if (slice_find(s, '/') >= 0)
        return cidr_parse(&d->range, s);
    d->below = slice_starts(s, SLICE("."));
    if (take_host(&d->host, (struct slice){s.p + d->below, s.n - d->below}) < 0)
        return -1;
    return d->below && d->host.kind != HOST_NAME ? -1 : 0;
}

static int get_direct(struct msg *m, struct upstream_proxy *p, struct err *err)
{
    uint32_t n;
    char text[HOST_TEXT_MAX + 1];
    if (msg_get_u32(m, &n) < 0 || n > DIRECT_MAX)
        return err_set(err, ERR_PARSE, "upstream.no_proxy: bad list");
    p->direct = calloc(n ? n : 1, sizeof *p->direct);
    if (p->direct == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    for (; p->n_direct < n; p->n_direct++)
        if (msg_get_str(m, text, sizeof text) < 0 || take_direct(&p->direct[p->n_direct], text) < 0)
            return err_set(err, ERR_PARSE, "upstream.no_proxy: bad entry");
    return 0;
}

static int get_all(struct msg *m, struct upstream_proxy *p, uint8_t scheme, struct err *err)
{
    char host[HOST_TEXT_MAX], at[HOST_TEXT_MAX + 16];
    uint32_t port;
    if (msg_get_str(m, host, sizeof host) < 0 || msg_get_u32(m, &port) < 0 ||
        msg_get_str(m, p->user, sizeof p->user) < 0 ||
        msg_get_str(m, p->secret, sizeof p->secret) < 0 || port == 0 || port > 65535 ||
        (scheme != SCHEME_HTTP && scheme != SCHEME_HTTPS) || take_host(&p->at, slice_str(host)) < 0)
        return err_set(err, ERR_PARSE, "upstream.proxy: malformed");
    p->at.scheme = scheme;
    p->at.port = (uint16_t)port;
    snprintf(p->text, sizeof p->text, "%s://%s", scheme_name(p->at.scheme),
             authority_text_port(&p->at, at, sizeof at));
    return get_direct(m, p, err);
}

int upstream_proxy_get(struct msg *m, struct upstream_proxy **ret, struct err *err)
{
    uint8_t scheme;
    *ret = NULL;
    if (msg_get_u8(m, &scheme) < 0)
        return err_set(err, ERR_PARSE, "upstream.proxy: missing");
    if (scheme == 0)
        return 0;
    struct upstream_proxy *p = calloc(1, sizeof *p);
    if (p == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (get_all(m, p, scheme, err) < 0) {
        upstream_proxy_free(p);
        return -1;
    }
    *ret = p;
    return 0;
}

void upstream_proxy_free(struct upstream_proxy *p)
{
    if (p == NULL)
        return;
    SSL_CTX_free(p->tls);
    roots_free(p->roots);
    free(p->direct);
    free(p);
}

static bool matches(const struct upstream_direct *d, const struct authority *a)
{
    struct slice host = slice_str(a->host), below = slice_str(d->host.host);
    if (d->host.host[0] == 0)
        return cidr_contains(&d->range, a);
    if (!d->below)
        return authority_same_host(&d->host, a);
    return a->kind == HOST_NAME && host.n > below.n + 1 && slice_ends(host, below) &&
           host.p[host.n - below.n - 1] == '.';
}

bool upstream_proxy_direct(const struct upstream_proxy *p, const struct authority *a)
{
    for (size_t i = 0; i < p->n_direct; i++)
        if (matches(&p->direct[i], a))
            return true;
    return false;
}
