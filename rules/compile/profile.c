/* Reads a profile and checks each of its keys; what its rules say is checked by compiling a policy
 * of them (profile_apply.c). */
#include "profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "built_in.h"
#include "config_tree.h"
#include "login.h"
#include "profile_tree.h"
#include "yaml_tree.h"

const char *profile_builtin(size_t i)
{
    return built_in_name(profile_files, i);
}

const char *profile_text(const char *name)
{
    return built_in_text(profile_files, name);
}

/* ---- its keys ---- */

/* Nothing that could lead out of the home. */
static int path_ok(const struct node *n, const char *path, struct err *err)
{
    bool ok = path[0] && strlen(path) < 1000;
    for (const char *at = path; ok && at; at = strchr(at, '/')) {
        at += at > path;
        size_t len = strcspn(at, "/");
        ok = len > 0 && len <= 255 && !(len == 1 && at[0] == '.') &&
             !(len == 2 && at[0] == '.' && at[1] == '.');
    }
    for (const char *c = path; ok && *c; c++)
        ok = (unsigned char)*c >= 0x20 && *c != 0x7f;
    return ok ? 0
              : node_fail(n, err,
                          "'%.100s' is not a path below the home: write it without '/' in front, "
                          "'.' or '..', as in .config/agent/settings.json",
                          path);
}

/* Of a text of a file, each "{{" opens a template that we know. */
static int templates_ok(const struct node *n, const char *text, struct err *err)
{
    for (const char *at = text; (at = strstr(at, "{{")) != NULL; at += 2) {
        char name[80];
        unsigned last = 0;
        int end = 0;
        if (strncmp(at, "{{project}}", 11) == 0 || strncmp(at, "{{mcp_servers json}}", 20) == 0 ||
            strncmp(at, "{{mcp_servers toml}}", 20) == 0)
            continue;
        if (sscanf(at, "{{placeholder %79[A-Za-z0-9_.-]}}%n", name, &end) == 1 && end > 0)
            continue;
        if (sscanf(at, "{{placeholder %79[A-Za-z0-9_.-] last %3u}}%n", name, &last, &end) == 2 &&
            end > 0 && last > 0)
            continue;
        return node_fail(n, err,
                         "'{{' begins {{placeholder SECRET}}, {{placeholder SECRET last N}} or "
                         "{{project}} or {{mcp_servers json}} (or toml) here");
    }
    return 0;
}

static int read_files(const struct node *n, struct err *err)
{
    if (node_is_object(n, err) < 0)
        return -1;
    if (json_object_size(n->value) > PROFILE_FILES_MAX)
        return node_fail(n, err, "more than %d files", PROFILE_FILES_MAX);
    for (void *it = json_object_iter(n->value); it; it = json_object_iter_next(n->value, it)) {
        struct node at;
        const char *text;
        node_get(n, json_object_iter_key(it), &at);
        if (path_ok(&at, at.key, err) < 0 || node_text(&at, &text, err) < 0)
            return -1;
        if (strlen(text) > PROFILE_FILE_MAX)
            return node_fail(&at, err, "this file is longer than %d bytes", PROFILE_FILE_MAX);
        if (templates_ok(&at, text, err) < 0)
            return -1;
    }
    return 0;
}

static int read_forget(const struct node *n, struct err *err)
{
    size_t count;
    if (node_strings(n, &count, err) < 0)
        return -1;
    if (count > PROFILE_FILES_MAX)
        return node_fail(n, err, "more than %d paths", PROFILE_FILES_MAX);
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *text;
        if (node_strings_at(n, i, &item, &text, err) < 0 || path_ok(&item, text, err) < 0)
            return -1;
    }
    return 0;
}

static int read_command(const struct node *n, struct err *err)
{
    size_t count;
    if (node_strings(n, &count, err) < 0)
        return -1;
    return count <= PROFILE_WORDS_MAX ? 0
                                      : node_fail(n, err, "more than %d words", PROFILE_WORDS_MAX);
}

static bool variable_ok(const char *s)
{
    return strlen(s) <= 200 && config_env_name_ok(s);
}

static int read_variables(const struct node *n, struct err *err)
{
    size_t count;
    if (node_strings(n, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *text;
        if (node_strings_at(n, i, &item, &text, err) < 0)
            return -1;
        if (!variable_ok(text))
            return node_fail(&item, err, "'%.60s' is not the name of an environment variable",
                             text);
    }
    return 0;
}

static int rules_ok(const struct node *n, struct err *err)
{
    if (node_is_array(n, err) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(n->value); i++) {
        struct node item = node_item(n, i);
        if (!json_is_object(item.value))
            return node_fail(&item, err, "a rule is a mapping such as { allow: HOST/PATH }");
    }
    return 0;
}

static const struct key source_keys[] = {
    KEY("use", AS(text), "", "a preset. `preset_hosts` beside it names other hosts, as in a rule"),
    KEY("preset_hosts", OWN, "", ""),
    KEY("secret", AS(name), "the preset's", "the secret's name"),
    KEY("env", REF(names), "required",
        "a variable, or several. On the host they may hold the key; inside each of them "
        "holds its placeholder"),
    KEY("from", REF(names), "none", "further variables that may hold the key on the host"),
    KEY("kind", WORDS_OF(secret_kinds), "the preset's",
        "the shape of the placeholder, as of a secret in durward.yaml(5)"),
    KEY("rules", REF(rules), "",
        "rules of its own, beside the preset's or in its place; `\"{{secret}}\"` in them is the "
        "secret's name"),
};

/* { use: PRESET, preset_hosts, secret, env, from, rules } or { secret, env, from, kind, rules } */
static int read_source(const struct node *n, struct err *err)
{
    struct node use, rules, secret, env, from;
    const char *text;
    if (node_keys(n, KEYS(source_keys), err) < 0)
        return -1;
    bool preset = node_get(n, "use", &use), own = node_get(n, "rules", &rules);
    if (!preset && !own)
        return node_fail(n, err, "'use: PRESET', or 'rules' of its own");
    if (!preset && json_object_get(n->value, "preset_hosts"))
        return node_fail(n, err, "'preset_hosts' goes with 'use'");
    if (!node_get(n, "secret", &secret) && !preset)
        return node_fail(n, err, "'secret': by which name does the configuration declare it?");
    if (secret.value && node_string(&secret, &text, err) < 0)
        return -1;
    if (secret.value && !node_name_ok(text))
        return node_fail(&secret, err, "'%.60s' is not a secret's name (letters, digits, _ . -)",
                         text);
    if ((preset && node_string(&use, &text, err) < 0) || (own && rules_ok(&rules, err) < 0))
        return -1;
    if (!node_get(n, "env", &env))
        return node_fail(n, err,
                         "'env': which variables hold the key on the host, and its placeholder "
                         "inside?");
    if (read_variables(&env, err) < 0)
        return -1;
    return node_get(n, "from", &from) ? read_variables(&from, err) : 0;
}

static int read_model(const struct node *n, struct err *err)
{
    if (node_is_array(n, err) < 0)
        return -1;
    if (json_array_size(n->value) == 0 || json_array_size(n->value) > PROFILE_SOURCES_MAX)
        return node_fail(n, err, "'model' has 1 to %d places", PROFILE_SOURCES_MAX);
    for (size_t i = 0; i < json_array_size(n->value); i++) {
        struct node item = node_item(n, i);
        if (read_source(&item, err) < 0)
            return -1;
    }
    return 0;
}

static int read_texts(const struct node *n, struct err *err)
{
    if (node_is_object(n, err) < 0)
        return -1;
    for (void *it = json_object_iter(n->value); it; it = json_object_iter_next(n->value, it)) {
        struct node at;
        const char *text;
        node_get(n, json_object_iter_key(it), &at);
        if (!variable_ok(at.key))
            return node_fail(&at, err, "'%.60s' is not the name of an environment variable",
                             at.key);
        if (node_text(&at, &text, err) < 0)
            return -1;
    }
    return 0;
}

static const struct key telemetry_keys[] = {
    KEY("rules", REF(rules), "", ""),
    KEY("quiet", REF(variables), "", ""),
};

static int read_telemetry(const struct node *n, struct err *err)
{
    struct node rules, quiet;
    if (node_keys(n, KEYS(telemetry_keys), err) < 0 ||
        (node_get(n, "rules", &rules) && rules_ok(&rules, err) < 0))
        return -1;
    return node_get(n, "quiet", &quiet) ? read_texts(&quiet, err) : 0;
}

static int read_about(const struct node *n, struct err *err)
{
    const char *text;
    if (node_string(n, &text, err) < 0)
        return -1;
    return strlen(text) <= 200 && !strchr(text, '\n') ? 0 : node_fail(n, err, "one short line");
}

static int read_login(const struct node *n, struct err *err)
{
    const char *name;
    struct err unknown = {0};
    if (node_string(n, &name, err) < 0)
        return -1;
    struct login_format *f = login_format_new(name, &unknown);
    login_format_free(f);
    return f ? 0 : node_fail(n, err, "%s", unknown.text);
}

/* Names and what they are: captured ones, for nothing else comes to be inside. */
static int read_captured(const struct node *n, struct err *err)
{
    if (node_is_object(n, err) < 0)
        return -1;
    for (void *it = json_object_iter(n->value); it; it = json_object_iter_next(n->value, it)) {
        struct node at;
        node_get(n, json_object_iter_key(it), &at);
        if (!node_name_ok(at.key))
            return node_fail(&at, err, "'%.60s' is not a secret's name (letters, digits, _ . -)",
                             at.key);
        if (!json_is_object(at.value) || !json_object_get(at.value, "captured"))
            return node_fail(&at, err, "'%.60s' is { captured: { keep: home } } here", at.key);
    }
    return 0;
}

static const struct key inside_keys[] = {
    KEY("secrets", OWN, "required",
        "mapping of a secret's name to `{ captured: … }`, as in "
        "durward.yaml(5)"),
    KEY("login", REF(rules), "required",
        "where the program logs in and refreshes, with `--login-inside`"),
    KEY("kept", REF(rules), "required",
        "where it refreshes alone, with `--login-kept`: no other login can be made by these"),
    KEY("rules", REF(rules), "required", "where it uses the login"),
    KEY("files", OWN, "", "as those of the profile, which count first"),
};

static int read_inside(const struct node *n, struct err *err)
{
    static const char *const lists[] = {"login", "kept", "rules"};
    struct node secrets, rules, files;
    if (node_keys(n, KEYS(inside_keys), err) < 0)
        return -1;
    if (!node_get(n, "secrets", &secrets))
        return node_fail(n, err, "'inside' needs 'secrets' that are captured");
    if (read_captured(&secrets, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        if (!node_get(n, lists[i], &rules))
            return node_fail(n, err, "'inside' needs '%s', a list of rules", lists[i]);
        if (rules_ok(&rules, err) < 0)
            return -1;
    }
    return node_get(n, "files", &files) ? read_files(&files, err) : 0;
}

static const struct key profile_keys[] = {
    KEY("about", OWN, "", "a line for `durward profile ls`"),
    KEY("command", REF(texts), "required",
        "needed. The program, or a list: the program and the words that stand before the user's"),
    KEY("model", OWN, "",
        "a list of places, each with a key. One of them at least has to have its key, or nothing "
        "is started. What belongs to a place without one is left out"),
    KEY("login", OWN, "",
        "the login file that may stand for the keys of `model`, by its name in `durward login ls`"),
    KEY("inside", OWN, "",
        "what a login needs that the program makes by itself in the sandbox, with "
        "`--login-inside` and `--login-kept`, in place of `model`"),
    KEY("rules", REF(rules), "", "further rules, as in a policy of durward.yaml(5)"),
    KEY("env", REF(variables), "",
        "variables inside. A policy's own win over these, and `-e` over both"),
    KEY("telemetry", OWN, "",
        "`rules`: where it reports to, allowed with `--telemetry`. `quiet`: variables that keep it "
        "quiet, set without `--telemetry`"),
    KEY("files", OWN, "",
        "path below the home: text. Written when nothing has that name, and anew once after "
        "`durward home renew`; mode 0600. At most 32 files of 16 KiB"),
    KEY("forget", REF(texts), "",
        "paths below the home that are removed before each run. All else is kept"),
};

static int read_keys(const struct node *n, struct err *err)
{
    static int (*const readers[])(const struct node *n, struct err *err) = {
        read_about, read_command, read_model,     read_login, read_inside,
        rules_ok,   read_texts,   read_telemetry, read_files, read_forget};
    struct node at;
    _Static_assert(ARRAY_LEN(readers) == ARRAY_LEN(profile_keys), "a reader each");
    if (node_keys(n, KEYS(profile_keys), err) < 0)
        return -1;
    if (!node_get(n, "command", &at))
        return node_fail(n, err, "'command': which program does it start?");
    for (size_t i = 0; i < ARRAY_LEN(readers); i++)
        if (node_get(n, profile_keys[i].name, &at) && readers[i](&at, err) < 0)
            return -1;
    return 0;
}

/* ---- the whole ---- */

struct profile *profile_read(const char *name, struct slice text, const char *where,
                             struct err *err)
{
    struct profile *p = calloc(1, sizeof *p);
    if (p == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    p->name = strdup(name);
    p->where = strdup(where);
    if (p->name == NULL || p->where == NULL)
        abort(); /* memory is out */
    int r = text.n > PROFILE_MAX
                ? err_set(err, ERR_LIMIT, "%s: longer than %d bytes", where, PROFILE_MAX)
            : !node_name_ok(name)
                ? err_set(err, ERR_PARSE,
                          "'%.60s' is not a profile's name (letters, digits, _ . -)", name)
                : yaml_tree_parse(text, p->where, &p->root, &p->lines, err);
    if (r == 0) {
        p->source = (struct source){p->where, p->lines};
        struct node root = node_root(&p->source, p->root);
        r = read_keys(&root, err);
    }
    if (r == 0)
        r = profile_check(p, err);
    if (r == 0)
        return p;
    profile_free(p);
    return NULL;
}

void profile_free(struct profile *p)
{
    if (p == NULL)
        return;
    json_decref(p->root);
    json_decref(p->lines);
    free(p->name);
    free(p->where);
    free(p);
}

const char *profile_name(const struct profile *p)
{
    return p->name;
}

const char *profile_about(const struct profile *p)
{
    const char *text = json_string_value(json_object_get(p->root, "about"));
    return text ? text : "";
}

const char *profile_login(const struct profile *p)
{
    return json_string_value(json_object_get(p->root, "login"));
}

/* The i-th of a list, or of one text that stands for a list. */
static const char *item_text(const json_t *v, size_t i)
{
    if (json_is_string(v))
        return i == 0 ? json_string_value(v) : NULL;
    return json_string_value(json_array_get(v, i));
}

const char *profile_word(const struct profile *p, size_t i)
{
    return item_text(json_object_get(p->root, "command"), i);
}

const char *profile_forgotten(const struct profile *p, size_t i)
{
    return item_text(json_object_get(p->root, "forget"), i);
}

bool profile_inside(const struct profile *p)
{
    return json_object_get(p->root, "inside") != NULL;
}

static bool file_of(const json_t *holder, size_t i, const char **path, const char **text)
{
    json_t *files = json_object_get(holder, "files");
    void *it = json_object_iter(files);
    while (it && i-- > 0)
        it = json_object_iter_next(files, it);
    if (it == NULL)
        return false;
    *path = json_object_iter_key(it);
    *text = json_string_value(json_object_iter_value(it));
    return true;
}

bool profile_file(const struct profile *p, size_t i, const char **path, const char **text)
{
    return file_of(p->root, i, path, text);
}

bool profile_inside_file(const struct profile *p, size_t i, const char **path, const char **text)
{
    return file_of(json_object_get(p->root, "inside"), i, path, text);
}
