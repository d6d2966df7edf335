/* Checks the entries as they come and finds the one for an authority: the same port always, its
 * exact host first, then the longest ".host" that it lies below. */
#include "upstream_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    char host[HOST_TEXT_MAX + 1]; /* one more for the dot */
    uint16_t port;
    struct address address;
};

struct upstream_map {
    struct entry *entries;
    size_t n;
};

struct upstream_map *upstream_map_new(void)
{
    return calloc(1, sizeof(struct upstream_map));
}

void upstream_map_free(struct upstream_map *u)
{
    if (u == NULL)
        return;
    free(u->entries);
    free(u);
}

static bool host_ok(const char *host)
{
    struct authority a;
    struct slice h = slice_str(host);
    char bracketed[HOST_TEXT_MAX + 2];
    if (h.n > 1 && h.p[0] == '.') {
        h.p++;
        h.n--;
        return authority_host(&a, h) == 0 && a.kind == HOST_NAME && slice_eq_str(h, a.host);
    }
    if (slice_find(h, ':') >= 0 && h.n < HOST_TEXT_MAX) { /* IPv6, without brackets here */
        snprintf(bracketed, sizeof bracketed, "[%s]", host);
        h = slice_str(bracketed);
    }
    return authority_host(&a, h) == 0 && strcmp(a.host, host) == 0;
}

int upstream_map_add(struct upstream_map *u, const char *host, uint16_t port, const char *address,
                     struct err *err)
{
    struct entry e = {.port = port};
    if (u->n >= UPSTREAM_MAP_MAX)
        return err_set(err, ERR_LIMIT, "more than %d upstream.resolve entries", UPSTREAM_MAP_MAX);
    if (port == 0 || !host_ok(host))
        return err_set(err, ERR_PARSE, "upstream.resolve: bad name %s:%u", host, port);
    if (address_parse(&e.address, slice_str(address)) < 0)
        return err_set(err, ERR_PARSE, "upstream.resolve: %s: not ADDRESS:PORT: %s", host, address);
    snprintf(e.host, sizeof e.host, "%s", host);
    struct entry *p = realloc(u->entries, (u->n + 1) * sizeof *p);
    if (p == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    u->entries = p;
    u->entries[u->n++] = e;
    return 0;
}

const struct address *upstream_map_find(const struct upstream_map *u, const struct authority *a)
{
    const struct entry *best = NULL;
    struct slice host = slice_str(a->host);
    size_t best_n = 0;
    for (size_t i = 0; i < u->n; i++) {
        const struct entry *e = &u->entries[i];
        struct slice pattern = slice_str(e->host);
        if (e->port != a->port)
            continue;
        if (slice_eq(host, pattern))
            return &e->address;
        if (a->kind == HOST_NAME && pattern.p[0] == '.' && host.n > pattern.n &&
            pattern.n > best_n && slice_ends(host, pattern)) {
            best = e;
            best_n = pattern.n;
        }
    }
    return best ? &best->address : NULL;
}
