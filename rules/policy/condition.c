/* Checks a request's query and fields against a rule's conditions. Parameters are decoded once, and
 * each may stand in the query once. */
#include "condition.h"

#include <string.h>

enum { PARAMETER_MAX = 4096, PARAMETERS_MAX = 64 };

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent escapes decoded, once. -1: broken, a byte that means different things to different
 * readers, or too long. */
static int decode(struct slice s, char to[PARAMETER_MAX], struct slice *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == ';' || c == '+' || n == PARAMETER_MAX)
            return -1;
        if (c == '%') {
            int high = s.n - i > 2 ? hex_value(s.p[i + 1]) : -1;
            int low = high < 0 ? -1 : hex_value(s.p[i + 2]);
            if (low < 0)
                return -1;
            c = (char)(high * 16 + low);
            i += 2;
            if (c == 0 || c == '%') /* NUL ends it for some, and % may be decoded again */
                return -1;
        }
        to[n++] = c;
    }
    *ret = (struct slice){to, n};
    return 0;
}

static bool value_ok(const struct condition *c, struct slice value)
{
    for (size_t i = 0; i < c->n_values; i++)
        if (slice_eq_str(value, c->values[i]))
            return true;
    return c->n_values == 0; /* any */
}

static ssize_t find_condition(const struct rule *r, struct slice name)
{
    for (size_t i = 0; i < r->n_query; i++)
        if (slice_eq_str(name, r->query[i].name))
            return (ssize_t)i;
    return -1;
}

static int take_parameter(const struct rule *r, struct slice part, uint64_t *seen)
{
    char name_text[PARAMETER_MAX], value_text[PARAMETER_MAX];
    struct slice name, value = {"", 0};
    ssize_t eq = slice_find(part, '=');
    struct slice raw = {part.p, eq < 0 ? part.n : (size_t)eq};
    if (decode(raw, name_text, &name) < 0)
        return -1;
    if (eq >= 0 &&
        decode((struct slice){part.p + eq + 1, part.n - (size_t)eq - 1}, value_text, &value) < 0)
        return -1;
    ssize_t i = find_condition(r, name);
    if (i < 0 || *seen & UINT64_C(1) << i || !value_ok(&r->query[i], value))
        return -1;
    *seen |= UINT64_C(1) << i;
    return 0;
}

const char *condition_query(const struct rule *r, struct slice query, bool has_query)
{
    static const char code[] = "query";
    uint64_t seen = 0;
    if (!r->query_limited)
        return NULL;
    if (!has_query || query.n == 0)
        return NULL;
    for (;;) {
        ssize_t amp = slice_find(query, '&');
        struct slice part = {query.p, amp < 0 ? query.n : (size_t)amp};
        if (take_parameter(r, part, &seen) < 0)
            return code;
        if (amp < 0)
            return NULL;
        query = (struct slice){query.p + amp + 1, query.n - (size_t)amp - 1};
    }
}

const char *condition_headers(const struct rule *r, condition_field_fn find, const void *head)
{
    for (size_t i = 0; i < r->n_headers; i++) {
        struct slice value;
        if (find(head, r->headers[i].name, &value) != 1 || !value_ok(&r->headers[i], value))
            return "header";
    }
    return NULL;
}
