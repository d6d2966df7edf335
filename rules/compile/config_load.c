/* Reads configurations from files, finds the default one, and asks the configuration of package
 * managers on this host for what presets leave to it. Roles that get a configuration from the
 * parent have none of this. */
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
#include "registries.h"
#include "yaml_tree.h"

/* ---- presets that take their hosts from this host ---- */

static void set(json_t *object, const char *key, json_t *value)
{
    if (value == NULL || json_object_set_new(object, key, value) < 0)
        abort(); /* memory is out */
}

/* The hosts that `preset_hosts` does not say: { ROLE: [PLACE, ...] }. */
static void set_hosts(json_t *rule, const char *role, const struct registries *r)
{
    json_t *given = json_object_get(rule, "preset_hosts");
    if (json_array_size(r->places) == 0)
        return; /* preset_hosts_check says what to write */
    if (given == NULL)
        set(rule, "preset_hosts", json_pack("{s:O}", role, r->places));
    else
        set(given, role, json_incref(r->places));
}

/* What the run lays into the home, and the paths that no sandbox may write, where a file is or
 * could be: once a preset, with the
 * policies that use it. */
static void keep_found(json_t *found, const char *policy, const char *preset, const char *client,
                       const struct registries *r)
{
    struct buf text;
    char file[PRESET_WORD_MAX] = "";
    json_t *had = json_object_get(found, preset);
    if (had) {
        set(json_object_get(had, "policies"), policy, json_true());
        return;
    }
    buf_init(&text, REGISTRY_TEXT_MAX);
    preset_says(preset, "file", file);
    int bad = registries_text(client, r, &text); /* too long: the client's own affair */
    set(found, preset,
        json_pack("{s:s, s:s%, s:O, s:O, s:{s:b}}", "file", bad ? "" : file, "text",
                  buf_len(&text) ? (const char *)buf_data(&text) : "", bad ? 0 : buf_len(&text),
                  "looked", r->looked, "notes", r->notes, "policies", policy, true));
    buf_free(&text);
}

static int fill_rule(json_t *rule, const char *policy, json_t *found, struct err *err)
{
    const char *name = json_string_value(json_object_get(rule, "use"));
    json_t *given = json_object_get(rule, "preset_hosts");
    char client[PRESET_WORD_MAX], role[PRESET_WORD_MAX];
    struct registries r;
    if (name == NULL || !preset_says(name, "found", client))
        return 0;
    preset_first_role(name, role);
    if (given && (!json_is_object(given) || json_object_get(given, role)))
        return 0; /* the user's word */
    int bad = registries_find(client, &r, err);
    if (bad == 0) {
        set_hosts(rule, role, &r);
        keep_found(found, policy, name, client, &r);
    }
    registries_done(&r);
    return bad;
}

/* Tokens that come in replies need a name; where nobody declares one it is the preset's. */
static void declare_captured(json_t *root, const json_t *rule)
{
    const char *name = json_string_value(json_object_get(rule, "use"));
    json_t *secrets = json_object_get(root, "secrets");
    char word[PRESET_WORD_MAX];
    if (name == NULL || json_object_get(rule, "secret") || !preset_says(name, "captured", word))
        return;
    if (secrets == NULL)
        set(root, "secrets", secrets = json_object());
    if (json_is_object(secrets) && json_object_get(secrets, name) == NULL)
        set(secrets, name, json_pack("{s:{}}", "captured"));
}

int config_fill_hosts(json_t *root, json_t *found, struct err *err)
{
    const char *key;
    json_t *policy, *rule;
    size_t i;
    int bad = 0;
    json_object_foreach(json_object_get(root, "policies"), key, policy)
        json_array_foreach(json_object_get(policy, "rules"), i, rule)
    {
        if (!json_is_object(rule))
            continue; /* told by whoever reads the rules */
        declare_captured(root, rule);
        bad = bad ? bad : fill_rule(rule, key, found, err);
    }
    return bad;
}

/* ---- files ---- */

/* The directory of a file's name, absolute; malloc'd. */
static char *directory_of(const char *name, struct err *err)
{
    const char *slash = strrchr(name, '/');
    size_t n = slash ? (size_t)(slash - name) : 0;
    if (slash == name)
        return strdup("/");
    if (name[0] == '/')
        return slice_dup((struct slice){name, n});
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
    return config_parse_with(text, name, NULL, err);
}

struct config *config_parse_with(struct slice text, const char *name, const json_t *objects,
                                 struct err *err)
{
    json_t *root, *lines;
    char *base = directory_of(name, err);
    struct config *c = NULL;
    json_t *found = json_object();
    if (base && yaml_tree_parse(text, name, &root, &lines, err) == 0) {
        int bad = objects ? config_add_objects(root, lines, objects, err)
                          : config_read_objects(root, lines, err);
        if (bad == 0 && config_fill_hosts(root, found, err) == 0 &&
            config_fill_devices(root, lines, name, err) == 0) {
            c = config_build(name, base, root, lines, err);
        } else {
            json_decref(root);
            json_decref(lines);
        }
    }
    if (c)
        c->found = json_incref(found);
    json_decref(found);
    free(base);
    return c;
}

int config_read_all(int fd, const char *name, struct buf *b, struct err *err)
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
    else if (config_read_all(fd, name, b, err) == 0 && (*base = directory_of(name, err)) != NULL)
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
