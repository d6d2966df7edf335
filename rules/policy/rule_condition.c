/* `query` and `headers` of a rule. */
#include "header_name.h"
#include "rule.h"

#include <string.h>

enum { CONDITIONS_MAX = 64, VALUES_MAX = 256 };

/* "*" is any value; else the value, or a list of them. */
static int read_values(struct arena *a, const struct node *n, struct condition *c, struct err *err)
{
    size_t count;
    if (json_is_string(n->value) && strcmp(json_string_value(n->value), "*") == 0)
        return 0;
    if (json_is_integer(n->value) || json_is_boolean(n->value))
        return node_fail(n, err, "'%s' is text; write it in quotes", n->key);
    if (node_strings(n, &count, err) < 0)
        return -1;
    if (count > VALUES_MAX)
        return node_fail(n, err, "more than %d values", VALUES_MAX);
    const char **values = arena_zalloc(a, count, sizeof *values);
    for (size_t i = 0; i < count; i++) {
        struct node item;
        if (node_strings_at(n, i, &item, &values[i], err) < 0)
            return -1;
        if (strcmp(values[i], "*") == 0)
            return node_fail(&item, err, "'*' is any value, and stands alone");
        values[i] = arena_str(a, values[i]);
    }
    c->values = values;
    c->n_values = count;
    return 0;
}

static int header_key(struct arena *a, const struct node *at, struct condition *c, struct err *err)
{
    struct slice s = slice_str(at->key);
    if (!header_name_ok(s))
        return node_fail(at, err, "'%.60s' is not a header's name", at->key);
    if (header_name_is_reserved(s) || header_name_is_credential(s))
        return node_fail(at, err,
                         "'%s' frames the message or carries a credential; no condition "
                         "can be on it",
                         at->key);
    char *own = arena_str(a, at->key);
    for (char *p = own; *p; p++)
        *p = ascii_lower(*p);
    c->name = own;
    return 0;
}

static int read_list(struct arena *a, const struct node *n, bool headers,
                     const struct condition **ret, size_t *count, struct err *err)
{
    if (node_is_object(n, err) < 0)
        return -1;
    size_t size = json_object_size(n->value);
    if (size > CONDITIONS_MAX)
        return node_fail(n, err, "more than %d names", CONDITIONS_MAX);
    struct condition *list = arena_zalloc(a, size + 1, sizeof *list);
    *ret = list;
    for (void *it = json_object_iter(n->value); it; it = json_object_iter_next(n->value, it)) {
        struct node at;
        struct condition *c = &list[(*count)++];
        node_get(n, json_object_iter_key(it), &at);
        if (headers && header_key(a, &at, c, err) < 0)
            return -1;
        if (!headers)
            c->name = arena_str(a, at.key);
        if (read_values(a, &at, c, err) < 0)
            return -1;
    }
    return 0;
}

int rule_conditions_read(struct arena *a, const struct node *rule, struct rule *ret,
                         struct err *err)
{
    struct node n;
    ret->query_limited = node_get(rule, "query", &n);
    if (ret->query_limited && read_list(a, &n, false, &ret->query, &ret->n_query, err) < 0)
        return -1;
    if (node_get(rule, "headers", &n) &&
        read_list(a, &n, true, &ret->headers, &ret->n_headers, err) < 0)
        return -1;
    return 0;
}
