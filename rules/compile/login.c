/* Reads a built-in format of login files and tells what it says. They are part of the program: what
 * is wrong with one is a fault of ours, which tests/unit/test_login.c finds. */
#include "login.h"

#include <stdlib.h>
#include <string.h>

#include "built_in.h"
#include "login_tree.h"
#include "nearest.h"
#include "yaml_tree.h"

const char *login_builtin(size_t i)
{
    return built_in_name(login_files, i);
}

static const char *name_at(size_t i, const void *arg UNUSED)
{
    return login_files[i].name;
}

/* Places are written as one name or as a list: always a list from here on. */
static void listed(json_t *object, const char *key)
{
    json_t *v = json_object_get(object, key);
    if (json_is_string(v) && json_object_set_new(object, key, json_pack("[O]", v)) < 0)
        abort(); /* memory is out */
}

static void all_listed(json_t *object)
{
    const char *key;
    json_t *v;
    void *next;
    json_object_foreach_safe(object, next, key, v) listed(object, key);
}

struct login_format *login_format_new(const char *name, struct err *err)
{
    size_t i = 0, n = 0;
    json_t *lines = NULL;
    while (login_files[n].name)
        n++;
    while (i < n && strcmp(login_files[i].name, name) != 0)
        i++;
    if (i == n) {
        ssize_t best = nearest(name, n, name_at, NULL);
        err_set(err, ERR_PARSE, "there is no login '%.60s'; %s%s%s'durward login ls' lists them",
                name, best < 0 ? "" : "did you mean '", best < 0 ? "" : login_files[best].name,
                best < 0 ? "" : "'? ");
        return NULL;
    }
    struct login_format *f = calloc(1, sizeof *f);
    if (f == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    f->name = login_files[i].name;
    if (yaml_tree_parse(slice_str(login_files[i].text), name, &f->root, &lines, err) < 0) {
        free(f);
        return NULL;
    }
    json_decref(lines);
    listed(f->root, "entries");
    all_listed(json_object_get(f->root, "secrets"));
    all_listed(json_object_get(f->root, "kept"));
    listed(json_object_get(f->root, "session"), "refresh");
    listed(json_object_get(f->root, "session"), "expires");
    listed(json_object_get(f->root, "session"), "stamp");
    listed(json_object_get(f->root, "session"), "client");
    return f;
}

void login_format_free(struct login_format *f)
{
    if (f == NULL)
        return;
    json_decref(f->root);
    free(f);
}

const char *login_word(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

const char *login_name(const struct login_format *f)
{
    return f->name;
}

const char *login_about(const struct login_format *f)
{
    return login_word(f->root, "about");
}

const char *login_path(const struct login_format *f)
{
    return login_word(f->root, "file");
}

bool login_is_many(const struct login_format *f)
{
    return strchr(login_path(f), '*') != NULL;
}

enum login_syntax login_syntax(const struct login_format *f)
{
    static const char *const words[LOGIN_SYNTAXES] = {
        [LOGIN_JSON] = "json",   [LOGIN_YAML] = "yaml",     [LOGIN_INI] = "ini",
        [LOGIN_NETRC] = "netrc", [LOGIN_NPMRC] = "npmrc",   [LOGIN_PIP] = "pip",
        [LOGIN_CARGO] = "cargo", [LOGIN_DOCKER] = "docker", [LOGIN_KUBE] = "kubeconfig",
        [LOGIN_AZURE] = "msal",
    };
    const char *word = login_word(f->root, "syntax");
    size_t i = 0;
    while (i + 1 < LOGIN_SYNTAXES && strcmp(word, words[i]) != 0)
        i++;
    return (enum login_syntax)i;
}

login_place login_entries(const struct login_format *f)
{
    return json_object_get(f->root, "entries");
}

login_place login_secret(const struct login_format *f, const char *part)
{
    const json_t *at = json_object_get(json_object_get(f->root, "secrets"), part);
    return at ? at : json_object_get(json_object_get(f->root, "session"), part);
}

login_place login_beside(const struct login_format *f, const char *part)
{
    return json_object_get(json_object_get(f->root, "kept"), part);
}

bool login_is_session(const struct login_format *f)
{
    return json_object_get(f->root, "session") != NULL;
}

static bool has_unit(const struct login_format *f, const char *unit)
{
    const char *word = login_word(json_object_get(f->root, "session"), "unit");
    return word && strcmp(word, unit) == 0;
}

bool login_is_ms(const struct login_format *f)
{
    return has_unit(f, "ms");
}

bool login_is_jwt(const struct login_format *f)
{
    return has_unit(f, "jwt");
}

const char *login_lock(const struct login_format *f, size_t i)
{
    const json_t *locks = json_object_get(json_object_get(f->root, "session"), "locks");
    return json_string_value(json_array_get(locks, i));
}

const char *login_own(const struct login_format *f)
{
    return login_word(json_object_get(f->root, "session"), "own");
}

login_place login_stamp(const struct login_format *f)
{
    return json_object_get(json_object_get(f->root, "session"), "stamp");
}

const char *login_one(const struct login_format *f)
{
    return login_word(f->root, "one");
}

static bool is_optional(const struct login_format *f, const char *part)
{
    json_t *v;
    size_t i;
    json_array_foreach(json_object_get(f->root, "optional"), i,
                       v) if (strcmp(json_string_value(v), part) == 0) return true;
    return false;
}

void login_each_part(const struct login_format *f,
                     void (*fn)(void *arg, const char *part, login_place at, bool secret,
                                bool needed),
                     void *arg)
{
    const char *part;
    json_t *at;
    json_object_foreach(json_object_get(f->root, "secrets"), part, at)
        fn(arg, part, at, true, !is_optional(f, part));
    json_object_foreach(json_object_get(f->root, "kept"), part, at) fn(arg, part, at, false, false);
}
