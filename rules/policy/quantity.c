/* Sizes and times as a configuration writes them. */
#include "quantity.h"

#include <string.h>

static const uint64_t bytes_max = UINT64_C(1) << 50;

/* "64MB": decimal units, as disks are sold. */
int quantity_bytes(const struct node *n, uint64_t *ret, struct err *err)
{
    static const struct {
        const char *suffix;
        uint64_t unit;
    } units[] = {{"KB", 1000}, {"MB", 1000000}, {"GB", 1000000000}, {"TB", 1000000000000}};
    const char *text = json_string_value(n->value);
    struct slice s = slice_str(text);
    uint64_t v;
    for (size_t i = 0; text && i < ARRAY_LEN(units); i++) {
        if (s.n < 3 || !slice_ends(s, slice_str(units[i].suffix)))
            continue;
        if (slice_u64((struct slice){s.p, s.n - 2}, bytes_max / units[i].unit, &v) < 0)
            break;
        *ret = v * units[i].unit;
        return 0;
    }
    return node_fail(n, err, "'%s' is a whole number with KB, MB, GB or TB behind it, such as 64MB",
                     n->key);
}

/* Digits and one of `units`, at most max seconds: 0; 1: it is none of it. */
static int read_duration(const struct node *n, const char *units, unsigned max, unsigned *ret,
                         struct err *err)
{
    static const unsigned seconds[] = {1, 60, 3600, 86400};
    struct slice s = slice_str(json_string_value(n->value));
    uint64_t v = 0;
    if (json_is_integer(n->value))
        return node_fail(n, err, "'%s' needs a unit: %llds, or m for minutes, h for hours", n->key,
                         (long long)json_integer_value(n->value));
    const char *unit = s.n >= 2 ? memchr(units, s.p[s.n - 1], strlen(units)) : NULL;
    if (unit == NULL || slice_u64((struct slice){s.p, s.n - 1}, max, &v) < 0 ||
        v * seconds[unit - units] > max)
        return 1;
    *ret = (unsigned)(v * seconds[unit - units]);
    return 0;
}

/* "90s", "15m", "1h"; at most a day. */
int quantity_duration(const struct node *n, unsigned *ret, struct err *err)
{
    int r = read_duration(n, "smh", 86400, ret, err);
    return r > 0 ? node_fail(n, err, "'%s' is a time such as 90s, 15m or 1h, at most 24h", n->key)
                 : r;
}

int quantity_long_duration(const struct node *n, unsigned max, unsigned *ret, struct err *err)
{
    int r = read_duration(n, "smhd", max, ret, err);
    return r > 0 ? node_fail(n, err, "'%s' is a time such as 15m, 1h or 7d, at most %ud", n->key,
                             max / 86400)
                 : r;
}
