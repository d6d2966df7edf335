/* Hands each section of a configuration to its reader (config_*.c), counts references to the
 * result, and writes it as JSON. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "config_tree.h"
#include "yaml_tree.h"

static const struct key root_keys[] = {
    KEY("version", UINT(1, 1), "required", "`1`"),
    KEY("secrets", OWN, "none", "mapping of names, see *Secrets*"),
    KEY("policies", OWN, "none", "mapping of names, see *Policies*"),
    KEY("mcp_servers", OWN, "none", "mapping of names, see *MCP servers*"),
    KEY("templates", OWN, "none", "mapping of names, see *Templates*"),
    KEY("node", OWN, "none", "see *Pods of a node*"),
    KEY("cluster", OWN, "none", "see *Pods of a cluster*"),
    KEY("fleet", OWN, "none", "see *Fleet*"),
    KEY("upstream", OWN, "", "see *Upstream*"),
    KEY("listen", OWN, "none", "list, see *Listeners*"),
    KEY("audit", OWN, "", "see *Audit*"),
    KEY("ca", OWN, "", "see *Certificate authority*"),
    KEY("controller", OWN, "", "see *Controller*"),
    KEY("limits", OWN, "", "see *Limits*"),
    KEY("tracing", OWN, "", "see *Tracing*"),
    KEY("prices", OWN, "", "what models cost, see *Calls to models*"),
    KEY("injectors", UINT(1, CONFIG_INJECTORS_MAX), "1",
        "how many injector processes a policy may have, 1 to 16. Each sandbox, and each "
        "listener, has one of them for as long as it lives; another is started when "
        "each has one already, and one that dies is missed by its own sandboxes only. "
        "Several are had only by a policy all of whose secrets come from the "
        "environment (`env`), and which captures none: other values can change, and "
        "what one injector learns the others would not look for. What `limits` says of "
        "an injector counts for each. A policy that may have several is changed by a "
        "restart only, as this key is"),
    KEY("log_level", OWN, "`info`",
        "mapping of roles (`gate`, `injector`, `dialer`, `vault`) to `info` or `debug`: with "
        "`debug` the role says each step of each request in the daemon's log, at most 256 lines a "
        "second: names, sizes and codes, as `durward trace`. Counts from the start of the role on"),
};

static int read_tree(struct config *c, struct err *err)
{
    struct node root = node_root(&c->source, c->root), n;
    unsigned version = 0;
    if (json_is_null(c->root))
        return node_fail(&root, err, "this is empty; it begins with 'version: 1'");
    if (node_keys(&root, KEYS(root_keys), err) < 0)
        return -1;
    if (node_key_uint(&root, root_keys, "version", &version, err) < 0)
        return -1;
    if (version == 0)
        return node_fail(&root, err, "'version: 1' is missing");
    if (node_get(&root, "secrets", &n) && config_read_secrets(c, &n, err) < 0)
        return -1;
    c->prices = json_object_get(c->root, "prices");
    if (node_get(&root, "policies", &n) && config_read_policies(c, &n, err) < 0)
        return -1;
    if (node_get(&root, "mcp_servers", &n) && config_read_mcp(c, &n, err) < 0)
        return -1;
    if (node_get(&root, "templates", &n) && config_read_templates(c, &n, err) < 0)
        return -1;
    if (node_get(&root, "node", &n) && config_read_node(c, &n, err) < 0)
        return -1;
    if (node_get(&root, "cluster", &n) && config_read_cluster(c, &n, err) < 0)
        return -1;
    if (node_get(&root, "fleet", &n) && config_read_fleet(c, &n, err) < 0)
        return -1;
    if (config_check_fleet(c, &root, err) < 0)
        return -1;
    if (config_check_cluster(c, &root, err) < 0)
        return -1;
    if (node_get(&root, "upstream", &n) && config_read_upstream(c, &n, err) < 0)
        return -1;
    if (node_get(&root, "listen", &n) && config_read_listen(c, &n, err) < 0)
        return -1;
    if (node_get(&root, "audit", &n) && config_read_audit(c, &n, err) < 0)
        return -1;
    if (node_get(&root, "ca", &n) && config_read_ca(c, &n, err) < 0)
        return -1;
    if (node_get(&root, "controller", &n) && config_read_controller(c, &n, err) < 0)
        return -1;
    if (node_get(&root, "tracing", &n) && config_read_tracing(c, &n, err) < 0)
        return -1;
    if (node_get(&root, "log_level", &n) && config_read_levels(c, &n, err) < 0)
        return -1;
    if (node_key_uint(&root, root_keys, "injectors", &c->injectors, err) < 0)
        return -1;
    if (c->injectors > 1 && c->node && c->node->objects && node_get(&root, "injectors", &n))
        return node_fail(
            &n, err,
            "with node.objects a policy has one injector: those of several are changed "
            "by a restart only");
    return node_get(&root, "limits", &n) ? limits_read(&c->limits, &n, err) : 0;
}

struct config *config_build(const char *name, const char *base, json_t *root, json_t *lines,
                            struct err *err)
{
    struct arena *a = arena_new();
    struct config *c = arena_zalloc(a, 1, sizeof *c);
    c->arena = a;
    c->refs = 1;
    c->source = (struct source){arena_str(a, name), lines};
    c->base = arena_str(a, base);
    c->root = root;
    c->upstream_ca = arena_zalloc(a, 1, sizeof *c->upstream_ca);
    limits_default(&c->limits);
    config_audit_default(&c->audit);
    if (read_tree(c, err) == 0)
        return c;
    config_unref(c);
    return NULL;
}

struct config *config_ref(struct config *c)
{
    c->refs++;
    return c;
}

void config_unref(struct config *c)
{
    if (c == NULL || --c->refs > 0)
        return;
    for (size_t i = 0; i < c->n_policies; i++) {
        json_decref(c->policies[i].rules);
        policy_free(c->policies[i].compiled);
    }
    json_decref(c->root);
    json_decref(c->found);
    json_decref(c->source.lines);
    arena_free(c->arena);
}

struct config *config_from_json(const char *json, size_t n, struct err *err)
{
    json_error_t why;
    json_t *root = json_loadb(json, n, JSON_REJECT_DUPLICATES, &why);
    if (root == NULL) {
        err_set(err, ERR_PARSE, "configuration:%d: %s", why.line, why.text);
        return NULL;
    }
    return config_build("configuration", NULL, root, NULL, err);
}

char *config_json(const struct config *c)
{
    return json_dumps(c->root, JSON_COMPACT);
}

const json_t *config_found(const struct config *c)
{
    return c->found;
}
