/* Reads `mcp_servers`: programs that speak MCP over standard input and output, each started in a
 * sandbox of its own for whoever's policy names it. */
#include <string.h>

#include "config_tree.h"
#include "mcp_host.h"
#include "quantity.h"

enum { SERVERS_MAX = 64, IDLE_STANDARD = 600, IDLE_MAX = 86400, FILES_BYTES = 32 * 1024 };

static const struct key server_keys[] = {
    KEY("command", AS(command), "required",
        "the program and its arguments, as they are inside of its sandbox; no shell runs it"),
    KEY("policy", AS(name), "required",
        "what the server itself may reach, with which credentials (`rules`), which variables it "
        "has (`env`, where a credential is a placeholder), and what it may use (`sandbox`)"),
    KEY("image", AS(image), "the host's /usr",
        "an imported image (`durward image`) that it runs in, or `host`"),
    KEY("files", OWN, "none",
        "list of mappings: `path` of the host, `at` inside (default: the same path), `writable` "
        "(default `false`). It sees no other file of the host's but /usr, and none of the "
        "sandboxes that use it"),
    KEY("idle_stop", AS(lasting), "`10m`",
        "how long after its last use it is ended; the next use starts it again"),
};

static const struct key file_keys[] = {
    KEY("path", AS(path), "", ""),
    KEY("at", AS(path), "", ""),
    KEY("writable", AS(bool), "", ""),
};

/* Absolute and canonical: it is compared, and mounted on. */
static int read_path(struct config *c, const struct node *n, const char **ret, struct err *err)
{
    const char *text;
    if (node_string(n, &text, err) < 0)
        return -1;
    size_t len = strlen(text);
    bool bad = text[0] != '/' || len < 2 || text[len - 1] == '/' || strstr(text, "//") ||
               strstr(text, "/./") || strstr(text, "/../") ||
               (len > 1 && strcmp(text + len - 2, "/.") == 0) ||
               (len > 2 && strcmp(text + len - 3, "/..") == 0);
    if (bad || len >= CONFIG_MCP_PATH_MAX)
        return node_fail(n, err, "'%.100s' is not an absolute path in its plain form", text);
    *ret = arena_str(c->arena, text);
    return 0;
}

static int read_file(struct config *c, const struct node *n, struct config_mcp_file *f,
                     struct err *err)
{
    struct node at;
    if (node_is_object(n, err) < 0 || node_keys(n, KEYS(file_keys), err) < 0)
        return -1;
    if (!node_get(n, "path", &at))
        return node_fail(n, err, "a file of an MCP server needs a 'path'");
    if (read_path(c, &at, &f->path, err) < 0)
        return -1;
    f->at = f->path;
    if (node_get(n, "at", &at) && read_path(c, &at, &f->at, err) < 0)
        return -1;
    return node_key_bool(n, "writable", &f->writable, err);
}

static int read_files(struct config *c, const struct node *n, struct config_mcp_server *s,
                      struct err *err)
{
    if (node_is_array(n, err) < 0)
        return -1;
    size_t count = json_array_size(n->value);
    if (count > CONFIG_MCP_FILES_MAX)
        return node_fail(n, err, "more than %d files", CONFIG_MCP_FILES_MAX);
    struct config_mcp_file *list = arena_zalloc(c->arena, count + 1, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        struct node item = node_item(n, i);
        if (read_file(c, &item, &list[i], err) < 0)
            return -1;
    }
    s->files = list;
    s->n_files = count;
    return 0;
}

static int read_policy(struct config *c, const struct node *n, struct config_mcp_server *s,
                       struct err *err)
{
    const struct config_policy *p;
    if (config_policy_named(c, n, &p, err) < 0)
        return -1;
    s->policy = p->name;
    return 0;
}

static int read_image(struct config *c, const struct node *n, struct config_mcp_server *s,
                      struct err *err)
{
    const char *text;
    if (node_string(n, &text, err) < 0)
        return -1;
    if (strlen(text) > CONFIG_IMAGE_MAX || !config_engine_image_ok(text) || strpbrk(text, "/:@"))
        return node_fail(n, err,
                         "must be the name of an imported image (durward image ls), or host");
    s->image = arena_str(c->arena, text);
    return 0;
}

static int read_server(struct config *c, const struct node *n, struct config_mcp_server *s,
                       struct err *err)
{
    struct node at;
    if (!mcp_host_name_ok(slice_str(n->key)))
        return node_fail(n, err,
                         "'%.60s' is not an MCP server's name (a-z, 0-9, '-' inside; at most %d)",
                         n->key, MCP_HOST_NAME_MAX);
    if (node_is_object(n, err) < 0 || node_keys(n, KEYS(server_keys), err) < 0)
        return -1;
    s->name = arena_str(c->arena, n->key);
    s->image = "host";
    s->idle = IDLE_STANDARD;
    if (!node_get(n, "command", &at))
        return node_fail(n, err, "an MCP server needs a 'command'");
    if (config_read_command(c, &at, CONFIG_PROGRAM_INSIDE, &s->command, err) < 0)
        return -1;
    if (!node_get(n, "policy", &at))
        return node_fail(n, err,
                         "an MCP server needs a 'policy': what it may reach itself; "
                         "'rules: []' there is nothing");
    if (read_policy(c, &at, s, err) < 0)
        return -1;
    if (node_get(n, "image", &at) && read_image(c, &at, s, err) < 0)
        return -1;
    if (node_get(n, "files", &at) && read_files(c, &at, s, err) < 0)
        return -1;
    if (node_get(n, "idle_stop", &at) && quantity_long_duration(&at, IDLE_MAX, &s->idle, err) < 0)
        return -1;
    return s->idle > 0 ? 0 : node_fail(&at, err, "'idle_stop' must be at least 1s");
}

int config_read_mcp(struct config *c, const struct node *n, struct err *err)
{
    if (node_is_object(n, err) < 0)
        return -1;
    if (json_object_size(n->value) > SERVERS_MAX)
        return node_fail(n, err, "more than %d MCP servers", SERVERS_MAX);
    size_t bytes = 0;
    c->mcp = arena_zalloc(c->arena, json_object_size(n->value) + 1, sizeof *c->mcp);
    for (void *it = json_object_iter(n->value); it; it = json_object_iter_next(n->value, it)) {
        struct node at;
        node_get(n, json_object_iter_key(it), &at);
        struct config_mcp_server *s = &c->mcp[c->n_mcp++];
        if (read_server(c, &at, s, err) < 0)
            return -1;
        for (size_t i = 0; i < s->n_files; i++)
            bytes += strlen(s->files[i].path) + CONFIG_ENTRY_BYTES;
    }
    return bytes <= FILES_BYTES ? 0 : node_fail(n, err, "the files of all servers are too many");
}

const struct config_mcp_server *config_mcp_servers(const struct config *c, size_t *n)
{
    *n = c->n_mcp;
    return c->mcp;
}

const struct config_mcp_server *config_mcp_server(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->n_mcp; i++)
        if (strcmp(c->mcp[i].name, name) == 0)
            return &c->mcp[i];
    return NULL;
}

bool config_mcp_allowed(const struct config *c, const char *policy, const char *name)
{
    struct authority a;
    const struct policy *p = config_policy(c, policy);
    mcp_host_authority(slice_str(name), &a);
    return p && config_mcp_server(c, name) && policy_host(p, &a) != 0;
}
