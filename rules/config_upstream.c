/* The `upstream` section: where names lie, whom to believe, which way out. */
#include <stdio.h>
#include <string.h>

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

int config_read_upstream(struct config *c, const struct node *n, struct err *err)
{
    static const struct key keys[] = {
        {"ca", NULL}, {"resolve", NULL}, {"proxy", "M2"}, {"no_proxy", "M2"}};
    struct node ca, resolve, at;
    const char *text;
    size_t count = 0;
    if (node_keys(n, keys, ARRAY_LEN(keys), err) < 0)
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
    if (json_object_size(resolve.value) > CONFIG_ENTRIES_MAX)
        return node_fail(&resolve, err, "more than %d names", CONFIG_ENTRIES_MAX);
    c->resolves = arena_zalloc(c->arena, json_object_size(resolve.value) + 1, sizeof *c->resolves);
    for (void *it = json_object_iter(resolve.value); it;
         it = json_object_iter_next(resolve.value, it)) {
        node_get(&resolve, json_object_iter_key(it), &at);
        if (read_resolve(c, &at, err) < 0)
            return -1;
    }
    return 0;
}
