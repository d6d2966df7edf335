/* Reads a configuration's text, hands each section to its reader (config_*.c), and counts
 * references to the result; writes it as JSON and finds the default file. */
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
    json_decref(c->source.lines);
    arena_free(c->arena);
}

/* The directory of a file's name, absolute; malloc'd. */
static char *directory_of(const char *name, struct err *err)
{
    const char *slash = strrchr(name, '/');
    size_t n = slash ? (size_t)(slash - name) : 0;
    if (slash == name)
        return strdup("/");
    if (name[0] == '/')
        return strndup(name, n);
    char *here = getcwd(NULL, 0), *whole = NULL;
    if (here == NULL) {
        err_sys(err, "the current directory");
        return NULL;
    }
    if (asprintf(&whole, "%s%s%.*s", here, n ? "/" : "", (int)n, name) < 0)
        whole = NULL;
    free(here);
    return whole;
}

struct config *config_parse(struct slice text, const char *name, struct err *err)
{
    json_t *root, *lines;
    char *base = directory_of(name, err);
    struct config *c = NULL;
    if (base && yaml_tree_parse(text, name, &root, &lines, err) == 0)
        c = config_build(name, base, root, lines, err);
    free(base);
    return c;
}

static int read_all(int fd, const char *name, struct buf *b, struct err *err)
{
    for (;;) {
        unsigned char *to = buf_reserve(b, 65536);
        if (to == NULL)
            return err_set(err, ERR_LIMIT, "%s: larger than 1 MiB", name);
        ssize_t n = read(fd, to, 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "%s", name);
        if (n == 0)
            return 0;
        buf_commit(b, (size_t)n);
    }
}

const char *config_text(const char *path, struct buf *b, char **base, struct err *err)
{
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    struct stat st;
    int r = -1, fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    *base = NULL;
    buf_init(b, YAML_TREE_MAX + 65536 + 1);
    if (fd < 0) {
        err_sys(err, "%s", path);
        return NULL;
    }
    if (fstat(fd, &st) < 0)
        err_sys(err, "%s", name);
    else if (!standard && !S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
        err_set(err, ERR_PARSE, "%s: not a file", path);
    else if (read_all(fd, name, b, err) == 0 && (*base = directory_of(name, err)) != NULL)
        r = 0;
    if (!standard)
        close(fd);
    return r == 0 ? name : NULL;
}

struct config *config_load(const char *path, struct err *err)
{
    struct buf b;
    char *base;
    const char *name = config_text(path, &b, &base, err);
    struct config *c = name ? config_parse(buf_slice(&b), name, err) : NULL;
    buf_free(&b);
    free(base);
    return c;
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

static char *existing(char *path)
{
    if (path && access(path, F_OK) == 0)
        return path;
    free(path);
    return NULL;
}

char *config_find(struct err *err)
{
    const char *named = getenv("DURWARD_CONFIG"), *xdg = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    char *path = NULL;
    if (named && named[0]) {
        if (named[0] != '/')
            err_set(err, ERR_PARSE, "DURWARD_CONFIG is '%.200s'; it must be an absolute path",
                    named);
        else if ((path = existing(strdup(named))) == NULL)
            err_set(err, ERR_UNREADY, "DURWARD_CONFIG names '%.200s', which is not there", named);
        return path;
    }
    if (xdg && xdg[0] == '/') {
        if (asprintf(&path, "%s/durward/durward.yaml", xdg) < 0)
            path = NULL;
    } else if (home && home[0] == '/') {
        if (asprintf(&path, "%s/.config/durward/durward.yaml", home) < 0)
            path = NULL;
    }
    path = existing(path);
    if (path == NULL)
        path = existing(strdup("/etc/durward/durward.yaml"));
    if (path == NULL)
        err_set(err, ERR_UNREADY,
                "no configuration: write ~/.config/durward/durward.yaml or "
                "/etc/durward/durward.yaml, or name one with -c FILE");
    return path;
}
