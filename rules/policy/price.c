/* Reads the table of prices, and amounts of money as decimal numbers without a binary fraction in
 * between. */
#include "price.h"

#include "arena.h"
#include "inspect.h"
#include "mcp.h"
#include "node.h"

#include <stdio.h>
#include <string.h>

enum { DECIMALS = 6, MILLION = 1000000 };

/* For a million tokens: price_of stays within 64 bits. */
static const uint64_t dearest = UINT64_C(10000) * MILLION;

int price_amount(struct slice s, uint64_t most, uint64_t *ret)
{
    ssize_t dot = slice_find(s, '.');
    struct slice whole = {s.p, dot < 0 ? s.n : (size_t)dot}, rest = {"", 0};
    uint64_t part = 0;
    if (dot >= 0)
        rest = (struct slice){s.p + dot + 1, s.n - (size_t)dot - 1};
    if (slice_u64(whole, most / MILLION, ret) < 0 || (dot >= 0 && rest.n == 0) || rest.n > DECIMALS)
        return -1;
    for (size_t i = 0; i < DECIMALS; i++) {
        char c = i < rest.n ? rest.p[i] : '0';
        if (c < '0' || c > '9')
            return -1;
        part = part * 10 + (uint64_t)(c - '0');
    }
    *ret = *ret * MILLION + part;
    return *ret <= most ? 0 : -1;
}

char *price_text(uint64_t millionths, char *buf, size_t size)
{
    snprintf(buf, size, "%llu.%06llu", (unsigned long long)(millionths / MILLION),
             (unsigned long long)(millionths % MILLION));
    size_t n = strlen(buf);
    while (n > 0 && buf[n - 1] == '0')
        buf[--n] = 0;
    if (n > 0 && buf[n - 1] == '.')
        buf[n - 1] = 0;
    return buf;
}

uint64_t price_of(uint64_t per_million, uint64_t tokens)
{
    return (per_million * tokens + MILLION - 1) / MILLION;
}

static int read_price(const struct node *n, const char *key, bool needed, uint64_t otherwise,
                      uint64_t *ret, struct err *err)
{
    struct node at;
    const char *text;
    char number[PRICE_TEXT];
    *ret = otherwise;
    if (!node_get(n, key, &at))
        return needed ? node_fail(n, err, "a price needs '%s'", key) : 0;
    if (json_is_number(at.value)) {
        snprintf(number, sizeof number, "%.6f", json_number_value(at.value));
        text = number;
    } else if (node_text(&at, &text, err) < 0) {
        return -1;
    }
    if (price_amount(slice_str(text), dearest, ret) < 0)
        return node_fail(
            &at, err,
            "'%.40s' is not a price of a million tokens; write 2.50, at most 10000 and "
            "six decimals",
            text);
    return 0;
}

static const struct key price_keys[] = {
    KEY("model", OWN, "required", ""), KEY("in", OWN, "required", ""),
    KEY("out", OWN, "required", ""),   KEY("cached", OWN, "", ""),
    KEY("cache_write", OWN, "", ""),
};

static void fold(struct slice from, char *to)
{
    for (size_t i = 0; i < from.n; i++)
        to[i] = from.p[i] >= 'A' && from.p[i] <= 'Z' ? (char)(from.p[i] + ('a' - 'A')) : from.p[i];
}

static int read_one(struct arena *a, const struct node *n, struct price *p, struct err *err)
{
    struct node model;
    const char *text;
    if (node_is_object(n, err) < 0 || node_keys(n, KEYS(price_keys), err) < 0)
        return -1;
    if (!node_get(n, "model", &model))
        return node_fail(n, err, "a price needs 'model'");
    if (node_string(&model, &text, err) < 0)
        return -1;
    if (strlen(text) > MCP_PATTERN_MAX)
        return node_fail(&model, err, "longer than %d bytes", MCP_PATTERN_MAX);
    char *folded = arena_zalloc(a, strlen(text) + 1, 1);
    fold(slice_str(text), folded);
    p->model = folded;
    if (read_price(n, "in", true, 0, &p->in, err) < 0 ||
        read_price(n, "out", true, 0, &p->out, err) < 0 ||
        read_price(n, "cached", false, p->in, &p->cached, err) < 0)
        return -1;
    return read_price(n, "cache_write", false, p->in, &p->written, err);
}

int price_table_read(struct arena *a, const struct node *n, const struct price_table **ret,
                     struct err *err)
{
    struct price_table *t = arena_zalloc(a, 1, sizeof *t);
    if (node_is_array(n, err) < 0)
        return -1;
    t->n = json_array_size(n->value);
    if (t->n > PRICES_MAX)
        return node_fail(n, err, "more than %d prices", PRICES_MAX);
    struct price *list = arena_zalloc(a, t->n + 1, sizeof *list);
    for (size_t i = 0; i < t->n; i++) {
        struct node item = node_item(n, i);
        if (read_one(a, &item, &list[i], err) < 0)
            return -1;
    }
    t->list = list;
    *ret = t;
    return 0;
}

/* Providers take names of models in any case: what is paid does not depend on it. */
const struct price *price_find(const struct price_table *t, struct slice model)
{
    char folded[LLM_MODELS_MAX];
    if (model.n > sizeof folded)
        return NULL;
    fold(model, folded);
    model.p = folded;
    for (size_t i = 0; t && i < t->n; i++)
        if (mcp_pattern_fits(t->list[i].model, model, false))
            return &t->list[i];
    return NULL;
}
