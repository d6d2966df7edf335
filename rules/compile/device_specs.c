/* A policy's `devices`: names of the Container Device Interface (CDI), each looked up in the
 * specifications of this host when the configuration is read. What comes of it takes the names'
 * place in the tree, so that whoever gets the configuration from us opens no file. */
#define _GNU_SOURCE 1 /* scandirat */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "config_tree.h"
#include "device.h"
#include "yaml_tree.h"

enum { SPECS_MAX = 64, FOLDERS_MAX = 4 };

/* Of one policy. found: { "names", "nodes": [{host, path}], "mounts": the same, "env": [TEXT] } */
struct search {
    json_t *found;
    unsigned parts, variables;
    const struct node *asked; /* where the policy names it */
    const char *name;         /* the device */
    const char *file;         /* that has it */
};

static int refuse(const struct search *s, struct err *err, const char *what, const char *of)
{
    return node_fail(s->asked, err, "%s: '%s' cannot be had: %s%.120s", s->file, s->name, what, of);
}

/* ---- containerEdits ---- */

static bool known(const json_t *object, const char *const *keys, const char **unknown)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        unsigned i = 0;
        while (keys[i] && strcmp(keys[i], key) != 0)
            i++;
        if (keys[i] == NULL) {
            *unknown = key;
            return false;
        }
    }
    return true;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static int keep(struct search *s, const char *list, const char *host, const char *path,
                struct err *err)
{
    size_t i;
    json_t *had, *to = json_object_get(s->found, list);
    json_array_foreach(to, i, had)
    {
        if (strcmp(text_of(had, "path"), path) != 0)
            continue;
        if (strcmp(text_of(had, "host"), host) == 0)
            return 0; /* of two devices of one vendor the same library */
        return refuse(s, err, "two devices want different things at ", path);
    }
    if (s->parts++ >= DEVICE_PARTS_MAX)
        return refuse(s, err, "it is made of too many parts", "");
    json_array_append_new(to, json_pack("{s:s, s:s}", "host", host, "path", path));
    return 0;
}

/* A number that the specification says must be the node's: another device has come to its place. */
static bool number_is(const json_t *node, const char *key, unsigned is)
{
    const json_t *v = json_object_get(node, key);
    return v == NULL || (json_is_integer(v) && json_integer_value(v) == (json_int_t)is);
}

static int read_device_node(struct search *s, const json_t *v, struct err *err)
{
    static const char *const keys[] = {"path",     "hostPath",    "type", "major", "minor",
                                       "fileMode", "permissions", "uid",  "gid",   NULL};
    const char *unknown, *path = text_of(v, "path"), *host = text_of(v, "hostPath");
    const char *type = text_of(v, "type"), *may = text_of(v, "permissions");
    struct stat st;
    if (!json_is_object(v) || path == NULL)
        return refuse(s, err, "a device node has no path", "");
    if (!known(v, keys, &unknown))
        return refuse(s, err, "a device node says what is not known: ", unknown);
    if (host == NULL)
        host = path;
    if (!device_host_ok(host) || !device_path_ok(path))
        return refuse(s, err, "a device node is below /dev, and none of a sandbox's own: ", path);
    if ((type && strcmp(type, "c") != 0 && strcmp(type, "u") != 0) || stat(host, &st) < 0 ||
        !S_ISCHR(st.st_mode))
        return refuse(s, err, "there is no character device (others are never given): ", host);
    if (!device_number_ok(st.st_rdev))
        return refuse(s, err, "raw memory, consoles and raw disks are the host itself: ", host);
    if (!number_is(v, "major", major(st.st_rdev)) || !number_is(v, "minor", minor(st.st_rdev)))
        return refuse(s, err, "its number is not the one that the specification says: ", host);
    if (may && (strchr(may, 'r') == NULL || strchr(may, 'w') == NULL))
        return refuse(s, err, "a device cannot be given for less than reading and writing: ", host);
    return keep(s, "nodes", host, path, err);
}

static int read_mount(struct search *s, const json_t *v, struct err *err)
{
    static const char *const keys[] = {"hostPath", "containerPath", "options", "type", NULL};
    const char *unknown, *host = text_of(v, "hostPath"), *path = text_of(v, "containerPath");
    bool readonly = false;
    json_t *option;
    size_t i;
    struct stat st;
    if (!json_is_object(v) || host == NULL || path == NULL)
        return refuse(s, err, "a mount has no path", "");
    if (!known(v, keys, &unknown))
        return refuse(s, err, "a mount says what is not known: ", unknown);
    if (!device_mount_host_ok(host) || !device_mount_path_ok(path))
        return refuse(s, err, "only programs and libraries below /usr, /opt and /lib are mounted: ",
                      device_mount_host_ok(host) ? path : host);
    json_array_foreach(json_object_get(v, "options"), i, option) readonly =
        readonly || (json_is_string(option) && strcmp(json_string_value(option), "ro") == 0);
    if (!readonly)
        return refuse(s, err, "what is mounted is read-only, its options must say ro: ", host);
    if (stat(host, &st) < 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
        return refuse(s, err, "there is no such file or directory: ", host);
    return keep(s, "mounts", host, path, err);
}

static int read_variable(struct search *s, const json_t *v, struct err *err)
{
    const char *text = json_string_value(v);
    if (text == NULL || !device_variable_ok(text))
        return refuse(s, err, "a variable may not be set by a device: ", text ? text : "(no text)");
    if (s->variables++ >= DEVICE_VARIABLES_MAX)
        return refuse(s, err, "it has too many variables", "");
    json_array_append(json_object_get(s->found, "env"), (json_t *)v);
    return 0;
}

static int read_each(struct search *s, const json_t *edits, const char *key,
                     int (*fn)(struct search *, const json_t *, struct err *), struct err *err)
{
    size_t i;
    json_t *list = json_object_get(edits, key), *item;
    if (list && !json_is_array(list))
        return refuse(s, err, "is no list: ", key);
    json_array_foreach(list, i, item) if (fn(s, item, err) < 0) return -1;
    return 0;
}

static int read_edits(struct search *s, const json_t *edits, struct err *err)
{
    static const char *const keys[] = {"env",      "deviceNodes", "mounts",         "hooks",
                                       "intelRdt", "netDevices",  "additionalGids", NULL};
    static const struct {
        const char *key, *why;
    } never[] = {
        {"hooks", "a hook is a program of the host that would run with its rights for a sandbox"},
        {"intelRdt", "intelRdt sets what is the host's"},
        {"netDevices", "a network device would be a way out beside the proxy"},
        {"additionalGids", "additionalGids are groups of the host"},
    };
    const char *unknown;
    if (edits == NULL)
        return 0;
    if (!json_is_object(edits) || !known(edits, keys, &unknown))
        return refuse(s, err, "containerEdits that are not known", "");
    for (size_t i = 0; i < ARRAY_LEN(never); i++) {
        const json_t *v = json_object_get(edits, never[i].key);
        if (v && !json_is_null(v) && json_array_size(v) + json_object_size(v) > 0)
            return refuse(s, err, never[i].why, "");
    }
    return read_each(s, edits, "deviceNodes", read_device_node, err) < 0 ||
                   read_each(s, edits, "mounts", read_mount, err) < 0 ||
                   read_each(s, edits, "env", read_variable, err) < 0
               ? -1
               : 0;
}

/* ---- specifications ---- */

/* 1 when it has the device: its edits are kept. */
static int read_spec(struct search *s, const json_t *root, struct err *err)
{
    static const char *const keys[] = {"cdiVersion", "kind",           "annotations",
                                       "devices",    "containerEdits", NULL};
    const char *unknown, *version = text_of(root, "cdiVersion"), *kind = text_of(root, "kind");
    size_t i, n = strcspn(s->name, "=");
    json_t *device;
    if (kind == NULL || strlen(kind) != n || strncmp(kind, s->name, n) != 0)
        return 0;
    json_array_foreach(json_object_get(root, "devices"), i, device)
    {
        const char *name = text_of(device, "name");
        if (name == NULL || strcmp(name, s->name + n + 1) != 0)
            continue;
        if (version == NULL || (strncmp(version, "0.", 2) != 0 && strncmp(version, "1.", 2) != 0))
            return refuse(s, err, "its cdiVersion is not known: ", version ? version : "none");
        if (!known(root, keys, &unknown))
            return refuse(s, err, "the specification says what is not known: ", unknown);
        return read_edits(s, json_object_get(root, "containerEdits"), err) < 0 ||
                       read_edits(s, json_object_get(device, "containerEdits"), err) < 0
                   ? -1
                   : 1;
    }
    return 0;
}

/* Who writes it decides what of the host a sandbox gets. */
static bool is_trusted(int fd, mode_t type)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type &&
           (st.st_uid == 0 || st.st_uid == geteuid()) && (st.st_mode & 022) == 0;
}

/* What was judged is what is read. */
static int read_spec_file(struct search *s, int folder, const char *path, const char *name,
                          struct err *err)
{
    struct buf b;
    json_t *root, *lines;
    int r = -1, fd = openat(folder, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    s->file = path;
    if (fd < 0 || !is_trusted(fd, S_IFREG)) {
        if (fd >= 0)
            close(fd);
        return node_fail(
            s->asked, err,
            "%s: a specification must be root's or yours, and nobody else may write it", path);
    }
    buf_init(&b, YAML_TREE_MAX + 1);
    if (config_read_all(fd, path, &b, err) == 0 &&
        yaml_tree_parse(buf_slice(&b), path, &root, &lines, err) == 0) {
        r = read_spec(s, root, err);
        json_decref(root);
        json_decref(lines);
    }
    buf_free(&b);
    close(fd);
    return r;
}

static int is_spec(const struct dirent *e)
{
    const char *dot = strrchr(e->d_name, '.');
    return dot && e->d_name[0] != '.' &&
           (strcmp(dot, ".json") == 0 || strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

/* In one folder a device has one specification; -1 with err, else how many have it. */
static int search_opened(struct search *s, int fd, const char *folder, struct err *err)
{
    struct dirent **names;
    char path[PATH_MAX];
    int n = scandirat(fd, ".", &names, is_spec, alphasort), had = 0;
    if (n < 0)
        return err_sys(err, "%s", folder);
    if (n > SPECS_MAX)
        had = node_fail(s->asked, err, "%s: more than %d specifications", folder, SPECS_MAX);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        int r = had < 0 ? had : read_spec_file(s, fd, path, names[i]->d_name, err);
        had = r < 0 ? -1 : had + r;
        if (had > 1)
            had = node_fail(s->asked, err, "%s: two specifications have '%s'", folder, s->name);
        free(names[i]);
    }
    free(names);
    return had;
}

static int search_folder(struct search *s, const char *folder, struct err *err)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : err_sys(err, "%s", folder);
    int had = is_trusted(fd, S_IFDIR) ? search_opened(s, fd, folder, err)
                                      : node_fail(s->asked, err,
                                                  "%s: a directory of specifications must be "
                                                  "root's or yours, and nobody else may write it",
                                                  folder);
    close(fd);
    return had;
}

/* The folder that is named last wins, as the interface's document has it. */
static int search_folders(struct search *s, const char *const *folders, size_t n, struct err *err)
{
    for (size_t i = n; i > 0; i--) {
        int had = search_folder(s, folders[i - 1], err);
        if (had)
            return had < 0 ? -1 : 0;
    }
    return node_fail(s->asked, err, "no specification on this host (%s%s) has '%s'", folders[0],
                     n > 1 ? " and others" : "", s->name);
}

static int read_folders(const struct node *sandbox, const char **folders, size_t *n,
                        struct err *err)
{
    struct node at, item;
    folders[0] = "/etc/cdi";
    folders[1] = "/var/run/cdi";
    *n = 2;
    if (!node_get(sandbox, "device_specs", &at))
        return 0;
    if (node_strings(&at, n, err) < 0)
        return -1;
    if (*n == 0 || *n > FOLDERS_MAX)
        return node_fail(&at, err, "must be 1 to %d directories", FOLDERS_MAX);
    for (size_t i = 0; i < *n; i++)
        if (node_strings_at(&at, i, &item, &folders[i], err) < 0)
            return -1;
        else if (folders[i][0] != '/')
            return node_fail(&item, err, "must be the absolute path of a directory");
    return 0;
}

static int find_all(const struct node *sandbox, const struct node *list, json_t *found,
                    struct err *err)
{
    const char *folders[FOLDERS_MAX];
    size_t n, n_folders;
    struct node item;
    struct search s = {.found = found, .asked = &item};
    if (read_folders(sandbox, folders, &n_folders, err) < 0 || node_strings(list, &n, err) < 0)
        return -1;
    if (n > DEVICE_NAMES_MAX)
        return node_fail(list, err, "a sandbox has at most %d devices", DEVICE_NAMES_MAX);
    for (size_t i = 0; i < n; i++) {
        if (node_strings_at(list, i, &item, &s.name, err) < 0)
            return -1;
        if (!device_name_ok(s.name))
            return node_fail(&item, err, "a device is named as in vendor.com/class=name");
        json_array_append_new(json_object_get(found, "names"), json_string(s.name));
        if (search_folders(&s, folders, n_folders, err) < 0)
            return -1;
    }
    return 0;
}

/* One policy's. */
static int fill_policy(const struct node *sandbox, struct err *err)
{
    struct node list;
    if (!json_is_object(sandbox->value) || !node_get(sandbox, "devices", &list))
        return 0;
    if (json_is_object(list.value))
        return node_fail(&list, err,
                         "this is not a device of this host: name it as its "
                         "specification does, vendor.com/class=name");
    json_t *found = json_pack("{s:[], s:[], s:[], s:[]}", "names", "nodes", "mounts", "env");
    if (find_all(sandbox, &list, found, err) < 0) {
        json_decref(found);
        return -1;
    }
    json_object_set_new(sandbox->value, "devices", found);
    return 0;
}

int config_fill_devices(json_t *root, json_t *lines, const char *name, struct err *err)
{
    struct source source = {name, lines};
    struct node top = node_root(&source, root), policies, policy, sandbox;
    const char *key;
    json_t *value;
    if (!json_is_object(root) || !node_get(&top, "policies", &policies))
        return 0;
    json_object_foreach(policies.value, key, value) if (json_is_object(value) &&
                                                        node_get(&policies, key, &policy) &&
                                                        node_get(&policy, "sandbox", &sandbox) &&
                                                        fill_policy(&sandbox, err) < 0) return -1;
    return 0;
}
