/* Reads a `budget` mapping and writes it for people. Its key is a hash of the rule without the
 * budget, so that a changed amount goes on with the count. */
#include "budget.h"

#include "arena.h"
#include "node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct key budget_keys[] = {
    KEY("requests", AS(rates), "", ""),
    KEY("upload", AS(byte_rates), "", ""),
    KEY("download", AS(byte_rates), "", ""),
};

static const struct {
    const char *name;
    unsigned seconds;
} windows[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};

static const struct {
    const char *name;
    uint64_t bytes;
} units[] = {{"GB", 1000000000}, {"MB", 1000000}, {"KB", 1000}, {"B", 1}};

const char *budget_kind_name(enum budget_kind kind)
{
    return budget_keys[kind].name;
}

/* "h", or "10s": so many of the unit. */
static int read_window(struct slice s, unsigned *ret)
{
    uint64_t count = 1;
    for (size_t i = 0; i < ARRAY_LEN(windows); i++) {
        if (!slice_ends(s, slice_str(windows[i].name)))
            continue;
        s.n -= 1;
        if (s.n > 0 && slice_u64(s, BUDGET_SECONDS_MAX, &count) < 0)
            return -1;
        uint64_t seconds = count * windows[i].seconds;
        if (seconds == 0 || seconds > BUDGET_SECONDS_MAX)
            return -1;
        *ret = (unsigned)seconds;
        return 0;
    }
    return -1;
}

static int read_amount(struct slice s, bool bytes, uint64_t *ret)
{
    static const uint64_t most = UINT64_C(1) << 50;
    uint64_t unit = 1;
    size_t i = 0;
    while (bytes && i < ARRAY_LEN(units) && !slice_ends(s, slice_str(units[i].name)))
        i++;
    if (bytes && i == ARRAY_LEN(units))
        return -1;
    if (bytes) {
        unit = units[i].bytes;
        s.n -= strlen(units[i].name);
    }
    if (slice_u64(s, most / unit, ret) < 0 || *ret == 0)
        return -1;
    *ret *= unit;
    return 0;
}

static int read_limit(const struct node *n, enum budget_kind kind, const char *text,
                      struct budget *b, struct err *err)
{
    struct slice s = slice_str(text);
    ssize_t slash = slice_find(s, '/');
    struct budget_limit *l = &b->limits[b->n];
    bool bytes = kind != BUDGET_REQUESTS;
    if (b->n == BUDGET_LIMITS_MAX)
        return node_fail(n, err, "more than %d limits in a budget", BUDGET_LIMITS_MAX);
    if (slash < 0 || read_amount((struct slice){s.p, (size_t)slash}, bytes, &l->amount) < 0 ||
        read_window((struct slice){s.p + slash + 1, s.n - (size_t)slash - 1}, &l->seconds) < 0)
        return node_fail(n, err,
                         "'%.40s' is no such limit; write %s: a number%s, a slash, and s, m, h, d "
                         "or a number of these, at most a day",
                         text, bytes ? "50MB/h" : "1000/h", bytes ? " with B, KB, MB or GB" : "");
    l->kind = kind;
    for (size_t i = 0; i < b->n; i++)
        if (b->limits[i].kind == kind && b->limits[i].seconds == l->seconds)
            return node_fail(n, err, "two limits for the same time; keep the smaller");
    b->n++;
    return 0;
}

static int read_kind(const struct node *n, enum budget_kind kind, struct budget *b, struct err *err)
{
    size_t count;
    if (node_strings(n, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *text;
        if (node_strings_at(n, i, &item, &text, err) < 0 ||
            read_limit(&item, kind, text, b, err) < 0)
            return -1;
    }
    return 0;
}

/* FNV-1a of all that the rule says but its budget: who changes an amount goes on with the count. */
static uint64_t make_key(const struct node *of)
{
    uint64_t h = 0xcbf29ce484222325u;
    json_t *rest = json_copy(of->value);
    if (rest)
        json_object_del(rest, "budget");
    char *text = rest ? json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    if (text == NULL)
        abort(); /* memory is out, as in the arena */
    for (const char *p = text; *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    free(text);
    json_decref(rest);
    return h ? h : 1;
}

int budget_read(struct arena *a, const struct node *n, const struct node *of,
                const struct budget **ret, struct err *err)
{
    struct budget *b = arena_zalloc(a, 1, sizeof *b);
    struct node at;
    if (node_keys(n, KEYS(budget_keys), err) < 0)
        return -1;
    for (enum budget_kind k = BUDGET_REQUESTS; k < BUDGET_KINDS; k++)
        if (node_get(n, budget_keys[k].name, &at) && read_kind(&at, k, b, err) < 0)
            return -1;
    if (b->n == 0)
        return node_fail(n, err, "an empty budget; say 'requests', 'upload' or 'download'");
    b->key = of ? make_key(of) : 1;
    *ret = b;
    return 0;
}

bool budget_has(const struct budget *b, enum budget_kind kind)
{
    for (size_t i = 0; b && i < b->n; i++)
        if (b->limits[i].kind == kind)
            return true;
    return false;
}

static void put_amount(uint64_t amount, bool bytes, char *buf, size_t size)
{
    size_t i = 0;
    while (bytes && amount % units[i].bytes)
        i++;
    snprintf(buf, size, "%llu%s", (unsigned long long)(bytes ? amount / units[i].bytes : amount),
             bytes ? units[i].name : "");
}

static void put_window(unsigned seconds, char *buf, size_t size)
{
    size_t i = ARRAY_LEN(windows) - 1;
    while (seconds % windows[i].seconds)
        i--;
    unsigned count = seconds / windows[i].seconds;
    if (count == 1)
        snprintf(buf, size, "%s", windows[i].name);
    else
        snprintf(buf, size, "%u%s", count, windows[i].name);
}

char *budget_text(const struct budget *b, char *buf, size_t size)
{
    char amount[32], window[16];
    size_t used = 0;
    buf[0] = 0;
    for (size_t i = 0; i < b->n && used < size; i++) {
        const struct budget_limit *l = &b->limits[i];
        put_amount(l->amount, l->kind != BUDGET_REQUESTS, amount, sizeof amount);
        put_window(l->seconds, window, sizeof window);
        used += (size_t)snprintf(buf + used, size - used, "%s%s %s/%s", i ? ", " : "",
                                 budget_kind_name(l->kind), amount, window);
    }
    return buf;
}
