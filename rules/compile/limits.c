/* Reads `limits` by a table of names, defaults and bounds. The struct itself stands in
 * rules/policy/request_limits.h, because every role knows it. */
#include <stddef.h>

#include "config_tree.h"

/* name, default, least, most */
static const struct {
    const char *name;
    size_t offset;
    unsigned value, min, max;
} fields[] = {
#define LIMIT(field, value, min, max)                           \
    {                                                           \
#field, offsetof(struct limits, field), value, min, max \
    }
    LIMIT(connections, 1024, 1, 65536),
    LIMIT(mints, 200, 1, 10000),
    LIMIT(head_bytes, 32768, 4096, 1048576),
    LIMIT(headers, 100, 8, 1000),
    LIMIT(target_bytes, 8192, 256, 65536),
    LIMIT(head_seconds, 10, 1, 300),
    LIMIT(idle_seconds, 60, 1, 86400),
    LIMIT(tunnel_seconds, 900, 1, 86400),
    LIMIT(progress_seconds, 60, 1, 86400),
    LIMIT(dial_seconds, 15, 1, 300),
    LIMIT(reply_seconds, 300, 1, 86400),
    LIMIT(pool_idle_seconds, 30, 1, 3600),
    LIMIT(pool, 128, 0, 4096),
    LIMIT(approval_seconds, 300, 1, 3600),
    LIMIT(approvals, 16, 1, 256),
    LIMIT(names, 4096, 1, 4096),
#undef LIMIT
};

static unsigned *field(struct limits *l, size_t i)
{
    return (unsigned *)((char *)l + fields[i].offset);
}

void limits_default(struct limits *l)
{
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        *field(l, i) = fields[i].value;
}

int limits_read(struct limits *l, const struct node *n, struct err *err)
{
    struct key keys[ARRAY_LEN(fields)];
    struct node at;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        keys[i] = (struct key){fields[i].name, NULL};
    if (node_keys(n, keys, ARRAY_LEN(keys), err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (node_get(n, fields[i].name, &at) &&
            node_uint(&at, fields[i].min, fields[i].max, field(l, i), err) < 0)
            return -1;
    if (l->target_bytes < l->head_bytes)
        return 0;
    node_get(n, node_get(n, "target_bytes", &at) ? "target_bytes" : "head_bytes", &at);
    return node_fail(&at, err,
                     "'target_bytes' (%u) must be less than 'head_bytes' (%u): the "
                     "target is in the head",
                     l->target_bytes, l->head_bytes);
}
