/* Tells of every error of a configuration: builds it, and where that fails puts a harmless value in
 * the place that the error names and builds again, so that what follows is read too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "config_tree.h"
#include "yaml_tree.h"

enum { ERRORS_MAX = 100, KEY_MAX = 256, WHERE_MAX = 1200 };

/* Before each place in an error's text: which of the paths it is, between two of these. */
#define MARK '\x1f'

struct places {
    json_t *lines;     /* path → "MARK number MARK FILE:LINE", for node_where */
    const char **path; /* by number; borrowed */
    size_t n;
};

static int mark_places(struct places *p, const char *name, json_t *lines)
{
    char text[WHERE_MAX];
    const char *path;
    json_t *line;
    p->lines = json_object();
    p->path = calloc(json_object_size(lines) + 1, sizeof *p->path);
    if (p->lines == NULL || p->path == NULL)
        return -1;
    json_object_foreach(lines, path, line)
    {
        snprintf(text, sizeof text, "%c%zu%c%.1000s:%lld", MARK, p->n, MARK, name,
                 (long long)json_integer_value(line));
        p->path[p->n++] = path;
        json_object_set_new(p->lines, path, json_string(text));
    }
    return 0;
}

/* The path that an error names first, and the error's text without marks: it may name others, too.
 * NULL: it begins with none. */
static const char *place_of(const struct places *p, char *text)
{
    const char *first = NULL;
    char *to = text, *end;
    for (char *from = text; *from;) {
        if (*from != MARK) {
            *to++ = *from++;
            continue;
        }
        unsigned long i = strtoul(from + 1, &end, 10);
        if (from == text && *end == MARK && i < p->n)
            first = p->path[i];
        from = end + (*end == MARK);
    }
    *to = '\0';
    return first;
}

/* The member of `in` that the path goes on with; *rest is what follows. Keys may hold dots: the
 * longest that fits. */
static const char *next_key(json_t *in, const char *path, const char **rest)
{
    const char *key, *best = NULL;
    size_t most = 0;
    json_t *v;
    path += *path == '.';
    json_object_foreach(in, key, v)
    {
        size_t n = strlen(key);
        if (n >= most && strncmp(path, key, n) == 0 && strchr(".[", path[n])) {
            best = key;
            most = n;
        }
    }
    *rest = path + most;
    return best;
}

/* An object in `in` becomes `good`, or goes where it was that already. */
static bool replace(json_t *in, const char *key, json_t *good)
{
    char name[KEY_MAX];
    if (snprintf(name, sizeof name, "%s", key) >= (int)sizeof name) {
        json_decref(good);
        return json_object_del(in, key) == 0;
    }
    bool same = json_equal(json_object_get(in, name), good);
    if (same)
        json_decref(good);
    return same ? json_object_del(in, name) == 0 : json_object_set_new(in, name, good) == 0;
}

/* A rule that is alike to no other; it goes by its index, which must not change for the others. */
static bool mend_rule(json_t *rules, const char *at)
{
    size_t i = (size_t)strtoul(at + 1, NULL, 10);
    json_t *good = json_pack("{s:o}", "allow", json_sprintf("error-%zu.durward.invalid", i));
    bool same = json_equal(json_array_get(rules, i), good);
    if (same)
        json_decref(good);
    return !same && json_array_set_new(rules, i, good) == 0;
}

static bool mend_policy(json_t *policies, const char *name, const char *rest)
{
    json_t *policy = json_object_get(policies, name);
    const char *key = next_key(policy, rest, &rest);
    json_t *v = json_object_get(policy, key ? key : "");
    if (key == NULL)
        return replace(policies, name, json_pack("{s:[]}", "rules"));
    if (strcmp(key, "rules") == 0 && rest[0] == '[')
        return mend_rule(v, rest);
    if (strcmp(key, "rules") == 0)
        return replace(policy, key, json_array());
    const char *inner = json_is_object(v) ? next_key(v, rest, &rest) : NULL;
    if (strncmp(key, "rule", 4) == 0) /* another spelling of it, which is then not missing */
        json_object_set_new(policy, "rules", json_array());
    return inner ? json_object_del(v, inner) == 0 : json_object_del(policy, key) == 0;
}

/* Each part is judged by itself: a secret stays declared, a section of a section goes whole. */
static bool mend(json_t *root, const char *path)
{
    const char *rest = path, *key = next_key(root, path, &rest), *name;
    json_t *section = json_object_get(root, key ? key : "");
    if (key == NULL)
        return json_object_get(root, "version") == NULL &&
               json_object_set_new(root, "version", json_integer(1)) == 0;
    if (strcmp(key, "version") == 0)
        return replace(root, key, json_integer(1));
    name = json_is_object(section) ? next_key(section, rest, &rest) : NULL;
    if (name == NULL)
        return json_object_del(root, key) == 0;
    if (strcmp(key, "secrets") == 0)
        return replace(section, name, json_pack("{s:s}", "env", "DURWARD_CHECK"));
    return strcmp(key, "policies") == 0 ? mend_policy(section, name, rest)
                                        : json_object_del(section, name) == 0;
}

struct config *config_check(const char *path, void (*fn)(void *arg, const char *text), void *arg)
{
    struct places p = {0};
    struct err err = {0};
    struct config *c = NULL;
    json_t *root = NULL, *lines = NULL, *found = json_object();
    const char *at = NULL;
    char *base;
    size_t n = 0;
    struct buf b;
    const char *name = config_text(path, &b, &base, &err);
    bool ok = name && yaml_tree_parse(buf_slice(&b), name, &root, &lines, &err) == 0 &&
              config_fill_hosts(root, found, &err) == 0 && mark_places(&p, name, lines) == 0;
    if (ok && config_fill_devices(root, lines, name, &err) < 0) {
        fn(arg, err.text);
        ok = n++ > 0;
    }
    while (ok && n < ERRORS_MAX) {
        err = (struct err){0};
        c = config_build(name, base, json_deep_copy(root), json_incref(p.lines), &err);
        if (c)
            break;
        at = place_of(&p, err.text);
        fn(arg, err.text);
        n++;
        ok = at && mend(root, at);
    }
    if (name == NULL || root == NULL)
        fn(arg, err.text);
    if (c) { /* with marks; and with errors it is not what is in the file */
        config_unref(c);
        c = n > 0 ? NULL : config_build(name, base, json_incref(root), json_incref(lines), &err);
    }
    if (c)
        c->found = json_incref(found);
    json_decref(found);
    json_decref(root);
    json_decref(lines);
    json_decref(p.lines);
    free(p.path);
    free(base);
    buf_free(&b);
    return c;
}
