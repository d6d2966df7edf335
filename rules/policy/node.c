/* Walks configuration values, checks their types and keys, and writes messages with file and line
 * and the nearest known key. */
#include "node.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "nearest.h"

enum { PATH_TEXT_MAX = 512 };

struct node node_root(const struct source *s, json_t *value)
{
    return (struct node){.source = s, .value = value};
}

bool node_get(const struct node *n, const char *key, struct node *ret)
{
    *ret = (struct node){n->source, n, key, 0, json_object_get(n->value, key)};
    return ret->value != NULL;
}

struct node node_item(const struct node *array, size_t i)
{
    return (struct node){array->source, array, NULL, i, json_array_get(array->value, i)};
}

void node_path(const struct node *n, char *buf, size_t size)
{
    if (size == 0)
        return;
    if (n == NULL || n->up == NULL) {
        buf[0] = 0;
        return;
    }
    node_path(n->up, buf, size);
    size_t used = strlen(buf);
    if (n->key)
        snprintf(buf + used, size - used, "%s%s", used ? "." : "", n->key);
    else
        snprintf(buf + used, size - used, "[%zu]", n->index);
}

void node_where(const struct node *n, char *buf, size_t size)
{
    char path[PATH_TEXT_MAX];
    for (const struct node *at = n; n->source->lines && at; at = at->up) {
        node_path(at, path, sizeof path);
        const json_t *line = json_object_get(n->source->lines, path);
        if (json_is_integer(line)) {
            snprintf(buf, size, "%s:%lld", n->source->name, (long long)json_integer_value(line));
            return;
        }
        if (json_is_string(line)) {
            snprintf(buf, size, "%s", json_string_value(line));
            return;
        }
    }
    node_path(n, path, sizeof path);
    snprintf(buf, size, "%s%s%s", n->source->name, path[0] ? ": " : "", path);
}

int node_fail(const struct node *n, struct err *err, const char *fmt, ...)
{
    if (err == NULL)
        return -1;
    char where[PATH_TEXT_MAX], text[sizeof err->text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (char *c = text; *c; c++) /* a terminal may read this */
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    node_where(n, where, sizeof where);
    return err_set(err, ERR_PARSE, "%s: %s", where, text);
}

/* What a message calls this value. */
static const char *node_label(const struct node *n)
{
    while (n->up && n->key == NULL)
        n = n->up;
    return n->key ? n->key : "the file";
}

static const char *kind_name(const json_t *v)
{
    if (v == NULL)
        return "nothing";
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "a mapping";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        return "empty";
    }
    return "something else";
}

static int node_kind(const struct node *n, const char *want, struct err *err)
{
    if (n->up == NULL)
        return node_fail(n, err, "the file must be %s, not %s", want, kind_name(n->value));
    return node_fail(n, err, "'%s' must be %s, not %s", node_label(n), want, kind_name(n->value));
}

int node_is_object(const struct node *n, struct err *err)
{
    return json_is_object(n->value) ? 0 : node_kind(n, "a mapping", err);
}

int node_is_array(const struct node *n, struct err *err)
{
    return json_is_array(n->value) ? 0 : node_kind(n, "a list ([] for none)", err);
}

static const char *key_word(size_t i, const void *arg)
{
    return ((const struct key *)arg + i)->name;
}

static int unknown_key(const struct node *n, const char *name, const struct key *keys,
                       size_t n_keys, struct err *err)
{
    struct node at;
    node_get(n, name, &at);
    ssize_t best = nearest(name, n_keys, key_word, keys);
    if (best >= 0)
        return node_fail(&at, err, "unknown key '%.60s'; did you mean '%s'?", name,
                         keys[best].name);
    char list[560] = "";
    for (size_t i = 0; i < n_keys; i++) {
        size_t used = strlen(list);
        if (used + strlen(keys[i].name) + 8 > sizeof list) {
            snprintf(list + used, sizeof list - used, ", ...");
            break;
        }
        snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", keys[i].name);
    }
    return node_fail(&at, err, "unknown key '%.60s'; known here: %s", name, list);
}

int node_keys(const struct node *n, const struct key *keys, size_t n_keys, struct err *err)
{
    if (node_is_object(n, err) < 0)
        return -1;
    for (void *it = json_object_iter(n->value); it; it = json_object_iter_next(n->value, it)) {
        const char *name = json_object_iter_key(it);
        size_t i = 0;
        while (i < n_keys && strcmp(keys[i].name, name) != 0)
            i++;
        if (i == n_keys)
            return unknown_key(n, name, keys, n_keys, err);
    }
    return 0;
}

int node_text(const struct node *n, const char **ret, struct err *err)
{
    if (!json_is_string(n->value)) {
        bool scalar = n->value && !json_is_object(n->value) && !json_is_array(n->value);
        return node_kind(n, scalar ? "a string (put it in quotes)" : "a string", err);
    }
    *ret = json_string_value(n->value);
    return 0;
}

int node_string(const struct node *n, const char **ret, struct err *err)
{
    if (node_text(n, ret, err) < 0)
        return -1;
    if ((*ret)[0] == 0)
        return node_fail(n, err, "'%s' is empty", node_label(n));
    return 0;
}

int node_bool(const struct node *n, bool *ret, struct err *err)
{
    if (!json_is_boolean(n->value))
        return node_fail(n, err, "'%s' must be true or false, not %s; yes, no, on and off are text",
                         node_label(n), kind_name(n->value));
    *ret = json_is_true(n->value);
    return 0;
}

int node_uint(const struct node *n, unsigned min, unsigned max, unsigned *ret, struct err *err)
{
    if (!json_is_integer(n->value))
        return node_kind(n, "a whole decimal number", err);
    json_int_t v = json_integer_value(n->value);
    if (min == max && v != (json_int_t)min)
        return node_fail(n, err, "'%s' is %lld; it must be %u", node_label(n), (long long)v, min);
    if (v < (json_int_t)min || v > (json_int_t)max)
        return node_fail(n, err, "'%s' is %lld; it must be %u to %u", node_label(n), (long long)v,
                         min, max);
    *ret = (unsigned)v;
    return 0;
}

int node_word(const struct node *n, const char *const *words, size_t n_words, size_t *ret,
              struct err *err)
{
    const char *s;
    char list[256] = "";
    for (size_t i = 0; i < n_words; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", words[i]);
    }
    if (json_is_object(n->value) || json_is_array(n->value))
        return node_fail(n, err, "'%s' must be %s%s, not %s", node_label(n),
                         n_words == 1 ? "" : "one of: ", list, kind_name(n->value));
    if (node_string(n, &s, err) < 0)
        return -1;
    for (size_t i = 0; i < n_words; i++)
        if (strcmp(words[i], s) == 0) {
            *ret = i;
            return 0;
        }
    if (n_words == 1)
        return node_fail(n, err, "'%s' cannot be '%.60s'; the only word here is '%s'",
                         node_label(n), s, words[0]);
    return node_fail(n, err, "'%s' cannot be '%.60s'; it is one of: %s", node_label(n), s, list);
}

const struct key *node_key(const struct key *table, const char *name)
{
    while (strcmp(table->name, name) != 0)
        table++;
    return table;
}

int node_key_bool(const struct node *n, const char *name, bool *ret, struct err *err)
{
    struct node at;
    return node_get(n, name, &at) ? node_bool(&at, ret, err) : 0;
}

int node_key_uint(const struct node *n, const struct key *table, const char *name, unsigned *ret,
                  struct err *err)
{
    const struct key *k = node_key(table, name);
    struct node at;
    return node_get(n, name, &at) ? node_uint(&at, (unsigned)k->least, (unsigned)k->most, ret, err)
                                  : 0;
}

int node_key_word(const struct node *n, const struct key *table, const char *name, size_t *ret,
                  struct err *err)
{
    const struct key *k = node_key(table, name);
    struct node at;
    return node_get(n, name, &at) ? node_word(&at, k->words, k->n_words, ret, err) : 0;
}

int node_strings(const struct node *n, size_t *count, struct err *err)
{
    *count = 1;
    if (!json_is_array(n->value)) {
        const char *s;
        return node_string(n, &s, err);
    }
    *count = json_array_size(n->value);
    if (*count == 0)
        return node_fail(n, err, "'%s' is an empty list", node_label(n));
    return 0;
}

int node_strings_at(const struct node *n, size_t i, struct node *item, const char **ret,
                    struct err *err)
{
    *item = json_is_array(n->value) ? node_item(n, i) : *n;
    return node_string(item, ret, err);
}

bool node_name_ok(const char *s)
{
    size_t n = strlen(s);
    if (n == 0 || n > 64 || s[0] == '.' || s[0] == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!ascii_is_alnum(s[i]) && s[i] != '_' && s[i] != '-' && s[i] != '.')
            return false;
    return true;
}
