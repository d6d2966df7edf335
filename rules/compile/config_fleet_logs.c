/* Reads of `fleet` what is about audit logs: which hosts hold them against one another, by which
 * keys, and how often. */
#include "config_tree.h"

#include "fleet_line.h"
#include "quantity.h"

#include <string.h>

enum { EVERY_STANDARD = 10, SILENT_STANDARD = 300, EVERY_MAX = 3600 };

static int read_key(const struct node *n, unsigned char key[32], struct err *err)
{
    static const char digits[] = "0123456789abcdef";
    const char *hex;
    if (node_string(n, &hex, err) < 0)
        return -1;
    if (strlen(hex) != 64 || strspn(hex, digits) != 64)
        return node_fail(n, err,
                         "must be a public key of an audit log: 64 hex digits, as "
                         "`durward audit verify --json` says it");
    for (size_t i = 0; i < 32; i++)
        key[i] = (unsigned char)((strchr(digits, hex[2 * i]) - digits) << 4 |
                                 (strchr(digits, hex[2 * i + 1]) - digits));
    return 0;
}

static int read_logs(struct config *c, const struct node *n, struct config_fleet_logs *f,
                     struct err *err)
{
    const char *name;
    json_t *value;
    if (node_is_object(n, err) < 0)
        return -1;
    size_t count = json_object_size(n->value);
    if (count == 0 || count > FLEET_LINE_HOSTS)
        return node_fail(n, err, "takes 1 to %d hosts", FLEET_LINE_HOSTS);
    struct config_fleet_log *all = arena_zalloc(c->arena, count, sizeof *all);
    json_object_foreach(n->value, name, value)
    {
        struct node key;
        if (!node_get(n, name, &key) || !node_name_ok(name))
            return node_fail(n, err, "'%.80s' cannot be the name of a host", name);
        all[f->n].name = name;
        if (read_key(&key, all[f->n].key, err) < 0)
            return -1;
        for (size_t i = 0; i < f->n; i++)
            if (memcmp(all[i].key, all[f->n].key, sizeof all[i].key) == 0)
                return node_fail(&key, err, "'%.80s' has the same key", all[i].name);
        f->n++;
    }
    f->all = all;
    return 0;
}

static int read_seconds(const struct node *n, const char *key, unsigned *seconds, struct err *err)
{
    struct node at;
    if (!node_get(n, key, &at))
        return 0;
    return quantity_duration(&at, seconds, err);
}

int config_read_fleet_logs(struct config *c, const struct node *n, struct config_fleet_logs *f,
                           struct err *err)
{
    struct node at, logs;
    bool own = false;
    f->every = EVERY_STANDARD;
    f->silent = SILENT_STANDARD;
    if (node_get(n, "host", &at) != node_get(n, "logs", &logs))
        return node_fail(n, err, "'host' and 'logs' belong together");
    if (read_seconds(n, "every", &f->every, err) < 0 ||
        read_seconds(n, "silent", &f->silent, err) < 0)
        return -1;
    if (f->every < 1 || f->every > EVERY_MAX || f->silent < 3 * f->every)
        return node_fail(n, err, "'every' must be 1s to 1h, and 'silent' three times as long");
    if (logs.value == NULL)
        return 0;
    if (node_string(&at, &f->host, err) < 0 || read_logs(c, &logs, f, err) < 0)
        return -1;
    for (size_t i = 0; i < f->n; i++)
        own |= strcmp(f->all[i].name, f->host) == 0;
    return own ? 0 : node_fail(&at, err, "'%.80s' is none of 'logs'", f->host);
}
