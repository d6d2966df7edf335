/* Policies and namespaces that are objects of a cluster: durward-kubernetes writes them into the
 * file that `node.objects` names, and they count as if they stood in the configuration. What writes
 * that file is trusted with policies, and with nothing else of the configuration. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_tree.h"
#include "yaml_tree.h"

/* What a policy of pods may say. Limits of a local sandbox, paths of this host among them, are not
 * for an object. */
static const char *const policy_words[] = {"rules", "env", "budget", "identity", "names", "guide"};
static const char *const object_words[] = {"policies", "namespaces"};

static bool is_one_of(const char *word, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(words[i], word) == 0)
            return true;
    return false;
}

/* The member of this name, an object; it is made where there is none. */
static json_t *member(json_t *of, const char *key)
{
    json_t *v = json_object_get(of, key);
    if (v == NULL && json_object_set_new(of, key, v = json_object()) < 0)
        return NULL;
    return v;
}

/* ---- where errors are ---- */

static int say(json_t *lines, const char *path, const char *text)
{
    return lines ? json_object_set_new(lines, path, json_string(text)) : 0;
}

static int say_policy(json_t *lines, const char *name, const json_t *policy)
{
    char path[160], text[160];
    int bad = 0;
    snprintf(path, sizeof path, "policies.%s", name);
    snprintf(text, sizeof text, "Policy %s", name);
    bad |= say(lines, path, text);
    for (size_t i = 0; i < ARRAY_LEN(policy_words); i++) {
        snprintf(path, sizeof path, "policies.%s.%s", name, policy_words[i]);
        snprintf(text, sizeof text, "Policy %s: spec.%s", name, policy_words[i]);
        bad |= say(lines, path, text);
    }
    for (size_t i = 0; i < json_array_size(json_object_get(policy, "rules")); i++) {
        snprintf(path, sizeof path, "policies.%s.rules[%zu]", name, i);
        snprintf(text, sizeof text, "Policy %s: spec.rules[%zu]", name, i);
        bad |= say(lines, path, text);
    }
    return bad;
}

/* ---- adding them ---- */

/* A preset that captures declares a secret, and a daemon that runs takes no new one: what it cannot
 * take is refused here, lest it refuse all that comes after, too. */
static int check_presets(const json_t *secrets, const char *name, const json_t *policy,
                         struct err *err)
{
    char word[PRESET_WORD_MAX];
    const json_t *rule;
    size_t i;
    json_array_foreach(json_object_get(policy, "rules"), i, rule)
    {
        const char *use = json_string_value(json_object_get(rule, "use"));
        if (use && !json_object_get(rule, "secret") && !json_object_get(secrets, use) &&
            preset_says(use, "captured", word))
            return err_set(err, ERR_PARSE,
                           "Policy %s: spec.rules[%zu]: the preset '%s' captures a secret: declare "
                           "'%s: { captured: {} }' in the configuration",
                           name, i, use, use);
    }
    return 0;
}

static int add_policy(json_t *policies, json_t *lines, const char *name, json_t *policy,
                      struct err *err)
{
    const char *key;
    json_t *value;
    if (!node_name_ok(name))
        return err_set(err, ERR_PARSE, "Policy %.80s: not a policy's name (letters, digits, _ . -)",
                       name);
    if (json_object_get(policies, name))
        return err_set(err, ERR_PARSE, "Policy %s: the configuration has a policy of that name",
                       name);
    if (!json_is_object(policy))
        return err_set(err, ERR_PARSE, "Policy %s: it is not a mapping", name);
    json_object_foreach(
        policy, key,
        value) if (!is_one_of(key, policy_words,
                              ARRAY_LEN(
                                  policy_words))) return err_set(err, ERR_PARSE,
                                                                 "Policy %s: '%.60s' is nothing "
                                                                 "that an object may say",
                                                                 name, key);
    return json_object_set(policies, name, policy) < 0 || say_policy(lines, name, policy) < 0
               ? err_set(err, ERR_INTERNAL, "out of memory")
               : 0;
}

static bool is_unbound(const json_t *node, const char *name)
{
    const json_t *said = json_object_get(node, "unbound"), *one;
    size_t i;
    if (json_is_string(said))
        return strcmp(json_string_value(said), name) == 0;
    json_array_foreach(said, i, one) if (json_is_string(one) &&
                                         strcmp(json_string_value(one), name) == 0) return true;
    return false;
}

static int add_namespace(json_t *node, json_t *lines, const char *name, json_t *policy,
                         struct err *err)
{
    char path[160], text[160];
    json_t *namespaces = member(node, "namespaces");
    if (json_object_get(namespaces, name) || is_unbound(node, name))
        return err_set(err, ERR_PARSE, "the namespace %.80s is one of the configuration's", name);
    snprintf(path, sizeof path, "node.namespaces.%s", name);
    snprintf(text, sizeof text, "the namespace %s", name);
    return json_object_set(namespaces, name, policy) < 0 || say(lines, path, text) < 0
               ? err_set(err, ERR_INTERNAL, "out of memory")
               : 0;
}

int config_add_objects(json_t *root, json_t *lines, const json_t *objects, struct err *err)
{
    json_t *node = json_object_get(root, "node"), *policies = member(root, "policies");
    const char *key;
    json_t *value;
    if (!json_is_object(objects))
        return err_set(err, ERR_PARSE, "node.objects: the file holds no mapping");
    json_object_foreach(
        (json_t *)(uintptr_t)objects, key,
        value) if (!is_one_of(key, object_words, ARRAY_LEN(object_words)) ||
                   !json_is_object(
                       value)) return err_set(err, ERR_PARSE,
                                              "node.objects: '%.60s' is nothing that it may hold",
                                              key);
    json_object_foreach(
        json_object_get(objects, "policies"), key,
        value) if (check_presets(json_object_get(root, "secrets"), key, value, err) < 0 ||
                   add_policy(policies, lines, key, value, err) < 0) return -1;
    json_object_foreach(json_object_get(objects, "namespaces"), key,
                        value) if (add_namespace(node, lines, key, value, err) < 0) return -1;
    return 0;
}

/* ---- the file ---- */

static int read_file(int fd, const char *path, struct buf *b, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(err, ERR_PARSE, "node.objects: %s is not a file", path);
    for (;;) {
        unsigned char *to = buf_reserve(b, 65536);
        ssize_t n = to ? read(fd, to, 65536) : 0;
        if (to == NULL)
            return err_set(err, ERR_LIMIT, "node.objects: %s is larger than 1 MiB", path);
        if (n < 0 && errno != EINTR)
            return err_sys(err, "node.objects: %s", path);
        if (n == 0)
            return 0;
        if (n > 0)
            buf_commit(b, (size_t)n);
    }
}

json_t *config_load_objects(const char *path, struct err *err)
{
    struct buf b;
    json_error_t why;
    json_t *v = NULL;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return json_object(); /* none was written yet */
    if (fd < 0) {
        err_sys(err, "node.objects: %s", path);
        return NULL;
    }
    buf_init(&b, YAML_TREE_MAX + 65536);
    if (read_file(fd, path, &b, err) == 0) {
        v = json_loadb((const char *)buf_data(&b), buf_len(&b), JSON_REJECT_DUPLICATES, &why);
        if (v == NULL)
            err_set(err, ERR_PARSE, "node.objects: %s:%d: %s", path, why.line, why.text);
    }
    buf_free(&b);
    close(fd);
    return v;
}

int config_read_objects(json_t *root, json_t *lines, struct err *err)
{
    const char *path = json_string_value(json_object_get(json_object_get(root, "node"), "objects"));
    if (path == NULL || path[0] != '/')
        return 0; /* config_node.c says what is wrong with it */
    json_t *objects = config_load_objects(path, err);
    int r = objects ? config_add_objects(root, lines, objects, err) : -1;
    json_decref(objects);
    return r;
}
