/* Reads `limits` by a table of names, defaults and bounds. The struct itself stands in
 * rules/policy/request_limits.h, because every role knows it. */
#include <stddef.h>

#include "config_tree.h"

static const struct key limits_keys[] = {
    KEY("connections", COUNT(1024, 1, 65536), "", "open client connections of a listener"),
    KEY("mints", COUNT(200, 1, 10000), "",
        "new leaf certificates a second and gate, held by the gate and again by the signer"),
    KEY("head_bytes", COUNT(32768, 4096, 1048576), "", "head of a request or reply"),
    KEY("headers", COUNT(100, 8, 1000), "", "fields in a head"),
    KEY("target_bytes", COUNT(8192, 256, 65536), "", "request target; less than `head_bytes`"),
    KEY("head_seconds", COUNT(10, 1, 300), "", "to receive a whole head, and for a TLS handshake"),
    KEY("idle_seconds", COUNT(60, 1, 86400), "",
        "an idle connection of a client; also a body without progress"),
    KEY("tunnel_seconds", COUNT(900, 1, 86400), "", "a WebSocket without a byte either way"),
    KEY("progress_seconds", COUNT(60, 1, 86400), "",
        "between the `progress` records of a request that lasts"),
    KEY("dial_seconds", COUNT(15, 1, 300), "", "resolve, connect and TLS to the origin"),
    KEY("reply_seconds", COUNT(300, 1, 86400), "",
        "from the end of the request to the head of the reply"),
    KEY("pool_idle_seconds", COUNT(30, 1, 3600), "",
        "an idle connection to an origin is kept so long"),
    KEY("pool", COUNT(128, 0, 4096), "", "idle connections to origins of a gate or injector"),
    KEY("approval_seconds", COUNT(300, 1, 3600), "",
        "a request that an `ask` rule holds is denied after so long"),
    KEY("approvals", COUNT(16, 1, 256), "", "requests of a sandbox that are held at a time"),
    KEY("names", COUNT(4096, 1, 4096), "", "synthetic DNS names of a sandbox"),
};

/* Where each is kept. */
static const size_t offsets[] = {
    offsetof(struct limits, connections),
    offsetof(struct limits, mints),
    offsetof(struct limits, head_bytes),
    offsetof(struct limits, headers),
    offsetof(struct limits, target_bytes),
    offsetof(struct limits, head_seconds),
    offsetof(struct limits, idle_seconds),
    offsetof(struct limits, tunnel_seconds),
    offsetof(struct limits, progress_seconds),
    offsetof(struct limits, dial_seconds),
    offsetof(struct limits, reply_seconds),
    offsetof(struct limits, pool_idle_seconds),
    offsetof(struct limits, pool),
    offsetof(struct limits, approval_seconds),
    offsetof(struct limits, approvals),
    offsetof(struct limits, names),
};

_Static_assert(ARRAY_LEN(offsets) == ARRAY_LEN(limits_keys), "a place for each");

static unsigned *field(struct limits *l, size_t i)
{
    return (unsigned *)((char *)l + offsets[i]);
}

void limits_default(struct limits *l)
{
    for (size_t i = 0; i < ARRAY_LEN(limits_keys); i++)
        *field(l, i) = (unsigned)limits_keys[i].standard;
}

int limits_read(struct limits *l, const struct node *n, struct err *err)
{
    struct node at;
    if (node_keys(n, KEYS(limits_keys), err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(limits_keys); i++)
        if (node_key_uint(n, &limits_keys[i], limits_keys[i].name, field(l, i), err) < 0)
            return -1;
    if (l->target_bytes < l->head_bytes)
        return 0;
    node_get(n, node_get(n, "target_bytes", &at) ? "target_bytes" : "head_bytes", &at);
    return node_fail(&at, err,
                     "'target_bytes' (%u) must be less than 'head_bytes' (%u): the "
                     "target is in the head",
                     l->target_bytes, l->head_bytes);
}
