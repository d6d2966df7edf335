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

static const struct key rotate_keys[] = {
    KEY("size", AS(bytes), "", ""),
    KEY("every", AS(age), "", ""),
    KEY("compress", WORDS("none", "zstd"), "", ""),
};

static int read_rotate(struct config_audit *a, const struct node *n, struct err *err)
{
    struct node at;
    size_t word = a->compress;
    if (node_keys(n, KEYS(rotate_keys), err) < 0)
        return -1;
    if (node_get(n, "size", &at)) {
        if (quantity_bytes(&at, &a->rotate_bytes, err) < 0)
            return -1;
        if (a->rotate_bytes < ROTATE_MIN)
            return node_fail(&at, err, "'size' is at least 1100KB");
    }
    if (node_get(n, "every", &at) && read_seconds(&at, &a->rotate_seconds, err) < 0)
        return -1;
    if (node_key_word(n, rotate_keys, "compress", &word, err) < 0)
        return -1;
    a->compress = word == 1;
    return 0;
}

static const struct key retention_keys[] = {
    KEY("size", AS(bytes), "", ""),
    KEY("for", AS(age), "", ""),
};

static int read_retention(struct config_audit *a, const struct node *n, struct err *err)
{
    struct node at;
    if (node_keys(n, KEYS(retention_keys), err) < 0 ||
        (node_get(n, "size", &at) && quantity_bytes(&at, &a->keep_bytes, err) < 0) ||
        (node_get(n, "for", &at) && read_seconds(&at, &a->keep_seconds, err) < 0))
        return -1;
    if (a->keep_bytes == 0 && a->keep_seconds == 0)
        return node_fail(n, err, "'retention' needs 'for', 'size' or both");
    return 0;
}

static const struct key share_keys[] = {
    KEY("burst", AS(bytes), "", ""),
    KEY("per_minute", AS(bytes), "", ""),
};

/* Of each sandbox: what it may write at once, and what it has again a minute. */
static int read_share(struct config_audit *a, const struct node *n, struct err *err)
{
    struct node at;
    uint64_t minute = a->share_rate * 60;
    if (node_keys(n, KEYS(share_keys), err) < 0 ||
        (node_get(n, "burst", &at) && quantity_bytes(&at, &a->share_burst, err) < 0) ||
        (node_get(n, "per_minute", &at) && quantity_bytes(&at, &minute, err) < 0))
        return -1;
    a->share_rate = minute / 60;
    if (a->share_burst < SHARE_MIN || minute < SHARE_MIN)
        return node_fail(n, err, "'burst' and 'per_minute' are at least 1100KB");
    return 0;
}

static const struct key anchor_keys[] = {
    KEY("command", AS(command), "", ""),
    KEY("syslog", AS(syslog), "", ""),
    KEY("https", REF(place), "", ""),
};

static int read_anchor(struct config *c, const struct node *n, struct err *err)
{
    struct node at;
    if (node_keys(n, KEYS(anchor_keys), err) < 0 ||
        (node_get(n, "command", &at) &&
         config_read_command(c, &at, CONFIG_PROGRAM_FILE, &c->audit.anchor_command, err) < 0) ||
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

static const struct key audit_keys[] = {
    KEY("dir", AS(path),
        "root: /var/log/durward; else `durward/audit` in `$XDG_STATE_HOME` or ~/.local/state",
        "directory of the records"),
    KEY("durability", WORDS("written", "synced"), "`written`",
        "`written`: a record is in the kernel before the request goes on (survives the death of "
        "every process). `synced`: it is on disk"),
    KEY("anchor", OWN, "none",
        "where a copy of each checkpoint goes: `command: [PROGRAM, ...]` gets it as a line on its "
        "standard input (environment as of a secret's command), `syslog: true` sends it to "
        "/dev/log (authpriv.notice; `syslog: PATH` to another socket), `https: URL` (or `{ url, to "
        "}`, as `webhook` below) gets it by POST; one or several. A checkpoint "
        "is made each minute and at the end; of the one at the end `https` gets no copy. Before "
        "the "
        "checkpoint of a `durward run` stand its log's name and a blank; with `https` the name is "
        "the first member, `\"log\"`, of the JSON object"),
    KEY("rotate", OWN, "64 MiB, no age, zstd",
        "`{ size: 64MB, every: 24h, compress: zstd }`: the active file is closed past this size "
        "(at least 1100KB; KB, MB, GB, TB are decimal) or age (m, h, d), and at SIGHUP; closed "
        "files are compressed (`zstd` or `none`)"),
    KEY("retention", OWN, "everything is kept",
        "`{ for: 90d, size: 10GB }`: closed files older than this are removed, oldest first, one "
        "that does not end with a checkpoint never. Beyond this size in all, each closed file "
        "first loses, oldest first, what was refused to the sandboxes that have more than their "
        "even part of it, then all that these asked for, and only then the oldest files go. A "
        "record says so before, and a signed gap stands where the records were"),
    KEY("share", OWN, "64MB, 10MB",
        "`{ burst: 64MB, per_minute: 10MB }`: how much of the log each sandbox may write at once, "
        "and has again a minute (at least 1100KB each; a record counts as 512 bytes at least). At "
        "its bound its requests wait for up to 5 s and then are 503 `audit_unwritable`; nothing "
        "goes unrecorded, and others are not touched. To pause or end it, see `log_bytes`"),
    KEY("notify", OWN, "none",
        "thresholds: who is told when a sandbox does too much of something, and what becomes of "
        "it; see below"),
};

int config_read_audit(struct config *c, const struct node *n, struct err *err)
{
    struct node at;
    size_t word = 0;
    if (node_keys(n, KEYS(audit_keys), err) < 0 ||
        (node_get(n, "dir", &at) && config_file(c, &at, &c->audit_dir, err) < 0) ||
        node_key_word(n, audit_keys, "durability", &word, err) < 0 ||
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
