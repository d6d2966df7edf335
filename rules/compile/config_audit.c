/* The `audit` section. */
#include "config_tree.h"
#include "quantity.h"

enum { ROTATE_MIN = 1 << 20, SHARE_MIN = 1 << 20, SHARE_BURST = 64000000, SHARE_MINUTE = 10000000 };

/* "24h", "90d". */
static int read_seconds(const struct node *n, uint64_t *ret, struct err *err)
{
    const char *text = json_string_value(n->value);
    struct slice s = slice_str(text);
    uint64_t v, unit = 0;
    if (s.n >= 2) {
        char c = s.p[s.n - 1];
        unit = c == 'm' ? 60 : c == 'h' ? 3600 : c == 'd' ? 86400 : 0;
    }
    if (unit == 0 || slice_u64((struct slice){s.p, s.n - 1}, 100000, &v) < 0 || v == 0)
        return node_fail(n, err, "'%s' is a time such as 30m, 24h or 90d", n->key);
    *ret = v * unit;
    return 0;
}

static int read_rotate(struct config_audit *a, const struct node *n, struct err *err)
{
    static const struct key keys[] = {{"size", NULL}, {"every", NULL}, {"compress", NULL}};
    static const char *const words[] = {"none", "zstd"};
    struct node at;
    size_t word;
    if (node_keys(n, keys, ARRAY_LEN(keys), err) < 0)
        return -1;
    if (node_get(n, "size", &at)) {
        if (quantity_bytes(&at, &a->rotate_bytes, err) < 0)
            return -1;
        if (a->rotate_bytes < ROTATE_MIN)
            return node_fail(&at, err, "'size' is at least 1.1MB");
    }
    if (node_get(n, "every", &at) && read_seconds(&at, &a->rotate_seconds, err) < 0)
        return -1;
    if (node_get(n, "compress", &at)) {
        if (node_word(&at, words, ARRAY_LEN(words), &word, err) < 0)
            return -1;
        a->compress = word == 1;
    }
    return 0;
}

static int read_retention(struct config_audit *a, const struct node *n, struct err *err)
{
    static const struct key keys[] = {{"size", NULL}, {"for", NULL}};
    struct node at;
    if (node_keys(n, keys, ARRAY_LEN(keys), err) < 0 ||
        (node_get(n, "size", &at) && quantity_bytes(&at, &a->keep_bytes, err) < 0) ||
        (node_get(n, "for", &at) && read_seconds(&at, &a->keep_seconds, err) < 0))
        return -1;
    if (a->keep_bytes == 0 && a->keep_seconds == 0)
        return node_fail(n, err, "'retention' needs 'for', 'size' or both");
    return 0;
}

/* Of each sandbox: what it may write at once, and what it has again a minute. */
static int read_share(struct config_audit *a, const struct node *n, struct err *err)
{
    static const struct key keys[] = {{"burst", NULL}, {"per_minute", NULL}};
    struct node at;
    uint64_t minute = a->share_rate * 60;
    if (node_keys(n, keys, ARRAY_LEN(keys), err) < 0 ||
        (node_get(n, "burst", &at) && quantity_bytes(&at, &a->share_burst, err) < 0) ||
        (node_get(n, "per_minute", &at) && quantity_bytes(&at, &minute, err) < 0))
        return -1;
    a->share_rate = minute / 60;
    if (a->share_burst < SHARE_MIN || minute < SHARE_MIN)
        return node_fail(n, err, "'burst' and 'per_minute' are at least 1.1MB");
    return 0;
}

static int read_anchor(struct config *c, const struct node *n, struct err *err)
{
    static const struct key keys[] = {{"command", NULL}, {"syslog", NULL}, {"https", NULL}};
    struct node at;
    if (node_keys(n, keys, ARRAY_LEN(keys), err) < 0 ||
        (node_get(n, "command", &at) &&
         config_read_command(c, &at, &c->audit.anchor_command, err) < 0) ||
        (node_get(n, "syslog", &at) &&
         config_read_syslog(c, &at, &c->audit.anchor_syslog, err) < 0) ||
        (node_get(n, "https", &at) && config_read_place(c, &at, EXPORTER_ANCHOR, err) < 0))
        return -1;
    if (c->audit.anchor_command == NULL && c->audit.anchor_syslog == NULL &&
        c->places[EXPORTER_ANCHOR].url == NULL)
        return node_fail(n, err, "'anchor' needs 'command', 'https' or 'syslog: true'");
    return 0;
}

void config_audit_default(struct config_audit *a)
{
    *a = (struct config_audit){.durability = AUDIT_WRITTEN,
                               .rotate_bytes = 64 << 20,
                               .compress = true,
                               .share_burst = SHARE_BURST,
                               .share_rate = SHARE_MINUTE / 60};
}

int config_read_audit(struct config *c, const struct node *n, struct err *err)
{
    static const struct key keys[] = {{"dir", NULL},    {"durability", NULL}, {"anchor", NULL},
                                      {"rotate", NULL}, {"retention", NULL},  {"share", NULL},
                                      {"notify", NULL}};
    static const char *const words[] = {"written", "synced"};
    struct node at;
    size_t word = 0;
    if (node_keys(n, keys, ARRAY_LEN(keys), err) < 0 ||
        (node_get(n, "dir", &at) && config_file(c, &at, &c->audit_dir, err) < 0) ||
        (node_get(n, "durability", &at) &&
         node_word(&at, words, ARRAY_LEN(words), &word, err) < 0) ||
        (node_get(n, "rotate", &at) && read_rotate(&c->audit, &at, err) < 0) ||
        (node_get(n, "retention", &at) && read_retention(&c->audit, &at, err) < 0) ||
        (node_get(n, "share", &at) && read_share(&c->audit, &at, err) < 0) ||
        (node_get(n, "anchor", &at) && read_anchor(c, &at, err) < 0) ||
        (node_get(n, "notify", &at) && config_read_notify(c, &at, err) < 0))
        return -1;
    c->audit.durability = word == 1 ? AUDIT_SYNCED : AUDIT_WRITTEN;
    return 0;
}

const struct config_audit *config_audit(const struct config *c)
{
    return &c->audit;
}
