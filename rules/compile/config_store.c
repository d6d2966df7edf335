/* Where a secret is stored: what is read by opening a file, running a command, or from the
 * environment. Those behind an endpoint are in config_mint.c. */
#include <stdio.h>
#include <string.h>

#include "base64.h"
#include "config_tree.h"
#include "login.h"

static int read_command(struct config *c, const struct node *n, struct config_secret *s,
                        struct err *err)
{
    if (config_read_command(c, n, CONFIG_PROGRAM_PATH, &s->command, err) < 0)
        return -1;
    s->store = STORE_COMMAND;
    s->source = s->command[0];
    s->ttl = 300;
    return 0;
}

static int read_env(struct config *c, const struct node *n, struct config_secret *s,
                    struct err *err)
{
    s->store = STORE_ENV;
    if (node_string(n, &s->source, err) < 0)
        return -1;
    if (!config_env_name_ok(s->source))
        return node_fail(n, err,
                         "'%.60s' is not the name of an environment variable; the value "
                         "itself never stands here",
                         s->source);
    s->source = arena_str(c->arena, s->source);
    return 0;
}

static int read_file(struct config *c, const struct node *n, struct config_secret *s,
                     struct err *err)
{
    s->store = STORE_FILE;
    return config_file(c, n, &s->source, err);
}

/* One name in a folder; what begins with ".." is Kubernetes' own. */
static bool entry_name_ok(const char *s)
{
    return *s && strlen(s) <= 255 && strchr(s, '/') == NULL && strcmp(s, ".") != 0 &&
           strncmp(s, "..", 2) != 0;
}

static int read_systemd(struct config *c, const struct node *n, struct config_secret *s,
                        struct err *err)
{
    s->store = STORE_FILE;
    s->folder = "CREDENTIALS_DIRECTORY";
    if (node_string(n, &s->source, err) < 0)
        return -1;
    if (!entry_name_ok(s->source))
        return node_fail(n, err,
                         "'%.60s' is not the name of a credential (LoadCredential=NAME:... of the "
                         "unit)",
                         s->source);
    s->source = arena_str(c->arena, s->source);
    return 0;
}

static const struct key kubernetes_keys[] = {
    KEY("path", AS(path), "", ""),
    KEY("key", AS(entry), "", ""),
};

static int read_kubernetes(struct config *c, const struct node *n, struct config_secret *s,
                           struct err *err)
{
    struct node path, key;
    const char *folder, *name;
    if (node_keys(n, KEYS(kubernetes_keys), err) < 0)
        return -1;
    if (!node_get(n, "path", &path) || !node_get(n, "key", &key))
        return node_fail(n, err,
                         "'kubernetes' needs 'path', where the Secret is mounted, and 'key'");
    if (config_file(c, &path, &folder, err) < 0 || node_string(&key, &name, err) < 0)
        return -1;
    if (!entry_name_ok(name))
        return node_fail(&key, err, "'%.60s' is not a key of a Secret", name);
    size_t size = strlen(folder) + strlen(name) + 2;
    char *whole = arena_zalloc(c->arena, size, 1);
    snprintf(whole, size, "%s/%s", folder, name);
    s->store = STORE_FILE;
    s->source = whole;
    return 0;
}

static int read_login_part(struct config *c, const struct node *n, struct config_login *l,
                           struct err *err)
{
    struct node at;
    struct login_format *f = NULL;
    int r = node_get(n, "format", &at) ? node_string(&at, &l->format, err)
                                       : node_fail(n, err, "'login' needs 'format'");
    if (r == 0 && (f = login_format_new(l->format, err)) == NULL)
        r = node_fail(&at, err, "'%.60s' is not a format of logins", l->format);
    if (r == 0 && !node_get(n, "part", &at))
        r = node_fail(n, err, "'login' needs 'part': which of its secrets?");
    if (r == 0)
        r = node_string(&at, &l->part, err);
    bool session = r == 0 && login_is_session(f);
    if (r == 0 && (session ? strcmp(l->part, "session") != 0 : login_secret(f, l->part) == NULL))
        r = node_fail(&at, err,
                      session ? "of this format the part is 'session'"
                              : "the format has no such secret");
    l->entry = "";
    if (r == 0 && (login_entries(f) != NULL) != node_get(n, "entry", &at))
        r = node_fail(n, err,
                      login_entries(f) ? "'login' needs 'entry': of which host or profile?"
                                       : "this format has no entries");
    if (r == 0 && login_entries(f))
        r = node_string(&at, &l->entry, err);
    login_format_free(f);
    l->format = r == 0 ? arena_str(c->arena, l->format) : NULL;
    l->part = r == 0 ? arena_str(c->arena, l->part) : NULL;
    l->entry = r == 0 ? arena_str(c->arena, l->entry) : NULL;
    return r;
}

static const struct key login_keys[] = {
    KEY("format", OWN, "required", ""),
    KEY("file", AS(path), "required", ""),
    KEY("entry", AS(text), "", ""),
    KEY("part", AS(text), "required", ""),
};

static int read_login(struct config *c, const struct node *n, struct config_secret *s,
                      struct err *err)
{
    struct node file;
    struct config_login *l = arena_zalloc(c->arena, 1, sizeof *l);
    if (node_keys(n, KEYS(login_keys), err) < 0)
        return -1;
    if (!node_get(n, "file", &file))
        return node_fail(n, err, "'login' needs 'file'");
    s->store = STORE_LOGIN;
    s->login = l;
    return config_file(c, &file, &s->source, err) < 0 || read_login_part(c, n, l, err) < 0 ? -1 : 0;
}

/* Looked up by secret-tool of libsecret, which prints the value alone. */
static int read_secret_service(struct config *c, const struct node *n, struct config_secret *s,
                               struct err *err)
{
    enum { ATTRIBUTES_MAX = 16 };
    if (node_is_object(n, err) < 0)
        return -1;
    size_t count = json_object_size(n->value), at = 2;
    if (count == 0 || count > ATTRIBUTES_MAX)
        return node_fail(n, err, "'secret_service' is 1 to %d attributes, such as { service: x }",
                         ATTRIBUTES_MAX);
    const char **argv = arena_zalloc(c->arena, 2 * count + 3, sizeof *argv);
    argv[0] = "secret-tool";
    argv[1] = "lookup";
    for (void *it = json_object_iter(n->value); it; it = json_object_iter_next(n->value, it)) {
        struct node one;
        const char *name = json_object_iter_key(it), *value;
        node_get(n, name, &one);
        if (node_string(&one, &value, err) < 0)
            return -1;
        if (name[0] == '-' || name[0] == 0 || value[0] == '-' || strlen(value) > 1000)
            return node_fail(&one, err, "an attribute and its value do not begin with '-'");
        argv[at++] = arena_str(c->arena, name);
        argv[at++] = arena_str(c->arena, value);
    }
    s->store = STORE_COMMAND;
    s->command = argv;
    s->source = argv[0];
    s->ttl = 300;
    return 0;
}

static const struct key agent_keys[] = {
    KEY("key", AS(text), "required", ""),
    KEY("socket", AS(path), "", ""),
};

/* "SHA256:" and 43 characters, as `ssh-add -l` prints it, or TYPE BASE64, as `ssh-add -L` does. */
static bool agent_key_ok(struct slice s)
{
    static const char *const types[] = {"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384",
                                        "ecdsa-sha2-nistp521", "ssh-rsa"};
    unsigned char key[2048];
    ssize_t blank = slice_find(s, ' '), n;
    if (slice_starts(s, SLICE("SHA256:"))) {
        char whole[45];
        if (s.n != 7 + 43)
            return false;
        memcpy(whole, s.p + 7, 43);
        whole[43] = '=';
        return base64_read((struct slice){whole, 44}, key, sizeof key) == 32;
    }
    if (blank < 0)
        return false;
    n = base64_read((struct slice){s.p + blank + 1, s.n - (size_t)blank - 1}, key, sizeof key);
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (slice_eq_str((struct slice){s.p, (size_t)blank}, types[i]))
            return n > blank + 4 && key[3] == blank &&
                   memcmp(key + 4, types[i], (size_t)blank) == 0;
    return false;
}

/* The key is an agent's, on this host; of it there is no more here than the name. */
static int read_agent(struct config *c, const struct node *n, struct config_secret *s,
                      struct err *err)
{
    struct node key, socket;
    const char *text;
    if (node_keys(n, KEYS(agent_keys), err) < 0)
        return -1;
    if (!node_get(n, "key", &key))
        return node_fail(n, err, "'ssh_agent' needs 'key': which of the agent's keys?");
    if (node_string(&key, &text, err) < 0)
        return -1;
    struct slice named = slice_str(text);
    ssize_t blank = slice_find(named, ' '), next = -1;
    if (blank >= 0)
        next = slice_find((struct slice){text + blank + 1, named.n - (size_t)blank - 1}, ' ');
    if (next >= 0) /* a comment follows */
        named.n = (size_t)(blank + 1 + next);
    if (!agent_key_ok(named))
        return node_fail(&key, err,
                         "'%.80s' names no key: write its fingerprint, as `ssh-add -l` prints it "
                         "(SHA256:...), or its public half, as `ssh-add -L` does (ssh-ed25519, "
                         "ecdsa-sha2-nistp256, 384, 521 or ssh-rsa)",
                         text);
    s->store = STORE_AGENT;
    s->source = arena_slice(c->arena, named);
    s->ttl = 60;
    return node_get(n, "socket", &socket) ? config_file(c, &socket, &s->socket, err) : 0;
}

int config_read_store(struct config *c, const struct node *n, struct config_secret *s,
                      struct err *err)
{
    static const struct {
        const char *name;
        int (*read)(struct config *c, const struct node *n, struct config_secret *s,
                    struct err *err);
    } stores[] = {{"env", read_env},
                  {"file", read_file},
                  {"command", read_command},
                  {"systemd", read_systemd},
                  {"kubernetes", read_kubernetes},
                  {"secret_service", read_secret_service},
                  {"login", read_login},
                  {"ssh_agent", read_agent}};
    struct node at, found;
    size_t given = 0, which = 0;
    for (size_t i = 0; i < ARRAY_LEN(stores); i++)
        if (node_get(n, stores[i].name, &at)) {
            found = at;
            which = i;
            given++;
        }
    if (given != 1)
        return node_fail(
            n, err,
            "a secret has exactly one of 'env', 'file', 'command', 'systemd', "
            "'kubernetes', 'secret_service', 'login', 'ssh_agent', or is made of others ('oauth2', "
            "'github_app', 'aws_key', ...)");
    return stores[which].read(c, &found, s, err);
}
