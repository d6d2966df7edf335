/* Reads a `budget` mapping and writes it for people. Its key is a hash of the rule without the
 * budget, so that a changed amount goes on with the count. */
#include "budget.h"

#include "arena.h"
#include "node.h"
#include "price.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct key budget_keys[] = {
    KEY("requests", AS(rates), "", ""),
    KEY("upload", AS(byte_rates), "", ""),
    KEY("download", AS(byte_rates), "", ""),
    KEY("tokens", OWN, "", ""),
    KEY("cost", OWN, "", ""),
    KEY("fleet", AS(bool), "", ""),
};

static const char per_sandbox[] = " per sandbox", per_label[] = " per label ";

static const struct {
    const char *name;
    unsigned seconds;
} windows[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};

static const struct {
    const char *name;
    uint64_t bytes;
} units[] = {{"GB", 1000000000}, {"MB", 1000000}, {"KB", 1000}, {"B", 1}},
  thousands[] = {{"M", 1000000}, {"K", 1000}, {"", 1}};

/* How an amount of each kind is written, for errors. */
static const struct {
    const char *example, *unit;
} wordings[BUDGET_KINDS] = {
    [BUDGET_REQUESTS] = {"1000/h", ""},
    [BUDGET_UPLOAD] = {"50MB/h", " with B, KB, MB or GB"},
    [BUDGET_DOWNLOAD] = {"50MB/h", " with B, KB, MB or GB"},
    [BUDGET_TOKENS] = {"2M/d", ", K or M behind it for thousands and millions"},
    [BUDGET_COST] = {"2.50/d", ""},
};

static const uint64_t most = UINT64_C(1) << 50;

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

static bool is_bytes(enum budget_kind kind)
{
    return kind == BUDGET_UPLOAD || kind == BUDGET_DOWNLOAD;
}

static int read_bytes(struct slice s, uint64_t *ret)
{
    size_t i = 0;
    while (i < ARRAY_LEN(units) && !slice_ends(s, slice_str(units[i].name)))
        i++;
    if (i == ARRAY_LEN(units))
        return -1;
    s.n -= strlen(units[i].name);
    if (slice_u64(s, most / units[i].bytes, ret) < 0)
        return -1;
    *ret *= units[i].bytes;
    return 0;
}

static int read_tokens(struct slice s, uint64_t *ret)
{
    size_t i = 0;
    while (!slice_ends(s, slice_str(thousands[i].name)))
        i++;
    s.n -= strlen(thousands[i].name);
    if (slice_u64(s, most / thousands[i].bytes, ret) < 0)
        return -1;
    *ret *= thousands[i].bytes;
    return 0;
}

static int read_amount(struct slice s, enum budget_kind kind, uint64_t *ret)
{
    int r = is_bytes(kind)          ? read_bytes(s, ret)
            : kind == BUDGET_TOKENS ? read_tokens(s, ret)
            : kind == BUDGET_COST   ? price_amount(s, most, ret)
                                    : slice_u64(s, most, ret);
    return r < 0 || *ret == 0 ? -1 : 0;
}

static bool same_label(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool twice(const struct budget *b, const struct budget_limit *l)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->limits[i].kind == l->kind && b->limits[i].seconds == l->seconds &&
            b->limits[i].each == l->each && same_label(b->limits[i].label, l->label))
            return true;
    return false;
}

/* A key as the API takes it of a label. */
static bool is_key(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!ascii_is_alnum(s.p[i]) && (s.p[i] == 0 || strchr("._/-", s.p[i]) == NULL))
            return false;
    return s.n > 0 && s.n <= BUDGET_LABEL_MAX;
}

/* Whose the limit is, cut off its text. */
static int read_whose(struct arena *a, const struct node *n, bool eaches, struct slice *s,
                      struct budget_limit *l, struct err *err)
{
    ssize_t at = slice_find_slice(*s, slice_str(per_label));
    l->each = slice_ends(*s, slice_str(per_sandbox));
    if (l->each) {
        s->n -= sizeof per_sandbox - 1;
    } else if (at >= 0) {
        size_t begin = (size_t)at + sizeof per_label - 1;
        struct slice key = {s->p + begin, s->n - begin};
        if (!is_key(key))
            return node_fail(n, err, "'%.64s' is not a key of a label", s->p + begin);
        l->label = arena_slice(a, key);
        s->n = (size_t)at;
    }
    if ((l->each || l->label) && !eaches)
        return node_fail(n, err,
                         "'per sandbox' and 'per label' go with tokens, cost, and calls of a tool");
    return 0;
}

static int read_limit(struct arena *a, const struct node *n, enum budget_kind kind, bool eaches,
                      const char *text, struct budget *b, struct err *err)
{
    struct slice s = slice_str(text);
    struct budget_limit *l = &b->limits[b->n];
    if (b->n == BUDGET_LIMITS_MAX)
        return node_fail(n, err, "more than %d limits in a budget", BUDGET_LIMITS_MAX);
    l->kind = kind;
    if (read_whose(a, n, eaches, &s, l, err) < 0)
        return -1;
    ssize_t slash = slice_find(s, '/');
    if (slash < 0 || read_amount((struct slice){s.p, (size_t)slash}, kind, &l->amount) < 0 ||
        read_window((struct slice){s.p + slash + 1, s.n - (size_t)slash - 1}, &l->seconds) < 0)
        return node_fail(n, err,
                         "'%.40s' is no such limit; write %s: a number%s, a slash, and s, m, h, d "
                         "or a number of these, at most a day",
                         text, wordings[kind].example, wordings[kind].unit);
    if (twice(b, l))
        return node_fail(n, err, "two limits for the same time; keep the smaller");
    b->n++;
    return 0;
}

static int read_kind(struct arena *a, const struct node *n, enum budget_kind kind, bool eaches,
                     struct budget *b, struct err *err)
{
    size_t count;
    if (node_strings(n, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *text;
        if (node_strings_at(n, i, &item, &text, err) < 0 ||
            read_limit(a, &item, kind, eaches, text, b, err) < 0)
            return -1;
    }
    return 0;
}

/* FNV-1a of all that the rule, or a tool of it, says but its amounts: who changes an amount goes on
 * with the count. */
static uint64_t make_key(const struct node *of)
{
    static const char *const amounts[] = {"budget", "calls"};
    uint64_t h = 0xcbf29ce484222325u;
    json_t *rest = json_copy(of->value);
    for (size_t i = 0; rest && i < ARRAY_LEN(amounts); i++)
        json_object_del(rest, amounts[i]);
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
        if (node_get(n, budget_keys[k].name, &at) &&
            read_kind(a, &at, k, k == BUDGET_TOKENS || k == BUDGET_COST, b, err) < 0)
            return -1;
    if (b->n == 0)
        return node_fail(n, err,
                         "an empty budget; say 'requests', 'upload', 'download', 'tokens' or "
                         "'cost'");
    if (node_key_bool(n, "fleet", &b->fleet, err) < 0)
        return -1;
    b->key = of ? make_key(of) : 1;
    *ret = b;
    return 0;
}

int budget_read_calls(struct arena *a, const struct node *n, const struct node *of,
                      const struct budget **ret, struct err *err)
{
    struct budget *b = arena_zalloc(a, 1, sizeof *b);
    if (read_kind(a, n, BUDGET_REQUESTS, true, b, err) < 0)
        return -1;
    if (b->n == 0)
        return node_fail(n, err, "no limit; write 10/h, or leave it out");
    b->key = make_key(of);
    *ret = b;
    return 0;
}

bool budget_of_calls(const struct budget *b)
{
    return budget_has(b, BUDGET_TOKENS) || budget_has(b, BUDGET_COST);
}

bool budget_of_fleet(const struct budget *b, const struct budget_limit *l)
{
    return b->fleet && !l->each;
}

bool budget_by_label(const struct budget *b)
{
    for (size_t i = 0; b && i < b->n; i++)
        if (b->limits[i].label)
            return true;
    return false;
}

bool budget_has(const struct budget *b, enum budget_kind kind)
{
    for (size_t i = 0; b && i < b->n; i++)
        if (b->limits[i].kind == kind)
            return true;
    return false;
}

static void put_amount(uint64_t amount, enum budget_kind kind, char *buf, size_t size)
{
    size_t i = 0;
    if (kind == BUDGET_COST) {
        price_text(amount, buf, size);
        return;
    }
    while (is_bytes(kind) && amount % units[i].bytes)
        i++;
    snprintf(buf, size, "%llu%s",
             (unsigned long long)(is_bytes(kind) ? amount / units[i].bytes : amount),
             is_bytes(kind) ? units[i].name : "");
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
        put_amount(l->amount, l->kind, amount, sizeof amount);
        put_window(l->seconds, window, sizeof window);
        used += (size_t)snprintf(buf + used, size - used, "%s%s %s/%s%s%s", i ? ", " : "",
                                 budget_kind_name(l->kind), amount, window,
                                 l->each    ? per_sandbox
                                 : l->label ? per_label
                                            : "",
                                 l->label ? l->label : "");
    }
    return buf;
}
