/* `to` of a rule: where its name may lead to that other names may not. */
#include "rule.h"

enum { TO_MAX = 64, TO_BITS_V4 = 8, TO_BITS_V6 = 7 };

static int read_range(const struct node *at, const char *text, struct cidr *ret, struct err *err)
{
    if (cidr_parse(ret, slice_str(text)) < 0)
        return node_fail(at, err,
                         "'%.80s' is not a range of addresses; write 10.0.0.0/8 or fd00::/8, with "
                         "no bit set beyond the prefix",
                         text);
    if (ret->bits < (ret->kind == HOST_IPV4 ? TO_BITS_V4 : TO_BITS_V6))
        return node_fail(at, err,
                         "'%.80s' is too wide; at most a /%d here, better the very addresses", text,
                         ret->kind == HOST_IPV4 ? TO_BITS_V4 : TO_BITS_V6);
    return 0;
}

int rule_to_read(struct arena *a, const struct node *rule, struct rule *ret, struct err *err)
{
    struct node n;
    size_t count;
    if (!node_get(rule, "to", &n))
        return 0;
    if (node_strings(&n, &count, err) < 0)
        return -1;
    if (count > TO_MAX)
        return node_fail(&n, err, "more than %d ranges", TO_MAX);
    struct cidr *list = arena_zalloc(a, count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *text;
        if (node_strings_at(&n, i, &item, &text, err) < 0 ||
            read_range(&item, text, &list[i], err) < 0)
            return -1;
    }
    ret->to = list;
    ret->n_to = count;
    return 0;
}
