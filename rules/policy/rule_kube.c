/* `kubernetes` of a rule: entries of verbs on resources, as roles of Kubernetes have them. */
#include "kube_rule.h"
#include "rule.h"

#include <string.h>

static const struct key entry_keys[] = {
    KEY("verbs", AS(strings), "required",
        "list or one of `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, "
        "`deletecollection`, or `*`"),
    KEY("resources", AS(strings), "required",
        "list or one of RESOURCE[.GROUP][/SUBRESOURCE], as kubectl writes them: `pods`, "
        "`pods/log`, `deployments.apps`; each part may be `*`"),
    KEY("namespaces", AS(strings), "any, and what has none",
        "list or one of patterns, in which `*` is any part of a name. What has no namespace, such "
        "as nodes or the pods of all namespaces, matches none"),
    KEY("names", AS(strings), "any",
        "the same of what the resources are called. A request without a name, such as one that "
        "makes something, matches none"),
    KEY("commands", AS(strings), "any",
        "of an entry of `create` on `pods/exec` alone: list or one of what may run, as *SSH* has "
        "them"),
};

/* A part of a resource's name, or "*". */
static bool part_ok(struct slice s, bool dots)
{
    if (slice_eq_str(s, "*"))
        return true;
    for (size_t i = 0; i < s.n; i++)
        if (!ascii_is_alnum(s.p[i]) && s.p[i] != '-' && !(dots && s.p[i] == '.'))
            return false;
    return s.n > 0 && s.n <= KUBE_WORD_MAX;
}

static int read_resource(struct arena *a, const struct node *n, const char *text,
                         struct kube_resource *ret, struct err *err)
{
    struct slice s = slice_str(text), group = {"", 0}, sub = {"", 0};
    ssize_t slash = slice_find(s, '/');
    if (slash >= 0) {
        sub = (struct slice){s.p + slash + 1, s.n - (size_t)slash - 1};
        s.n = (size_t)slash;
    }
    ssize_t dot = slice_find(s, '.');
    if (dot >= 0) {
        group = (struct slice){s.p + dot + 1, s.n - (size_t)dot - 1};
        s.n = (size_t)dot;
    }
    if (!part_ok(s, false) || (slash >= 0 && !part_ok(sub, false)) ||
        (dot >= 0 && !part_ok(group, true)))
        return node_fail(n, err,
                         "'%.100s' is not RESOURCE[.GROUP][/SUBRESOURCE], such as pods, pods/log "
                         "or deployments.apps",
                         text);
    ret->resource = arena_slice(a, s);
    ret->group = dot < 0 && slice_eq_str(s, "*") ? "*" : arena_slice(a, group);
    ret->subresource = arena_slice(a, sub);
    return 0;
}

static int read_verbs(const struct node *entry, uint32_t *ret, struct err *err)
{
    struct node n, item;
    size_t count;
    const char *text;
    if (!node_get(entry, "verbs", &n))
        return node_fail(entry, err, "'kubernetes' needs 'verbs' and 'resources'");
    if (node_strings(&n, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        unsigned v = 0;
        if (node_strings_at(&n, i, &item, &text, err) < 0)
            return -1;
        while (v < KUBE_VERBS && strcmp(kube_verb_name((enum kube_verb)v), text) != 0)
            v++;
        if (v == KUBE_VERBS && strcmp(text, "*") != 0)
            return node_fail(&item, err,
                             "'%.40s' is not a verb of Kubernetes: get, list, watch, create, "
                             "update, patch, delete, deletecollection, or *",
                             text);
        *ret |= v == KUBE_VERBS ? (1u << KUBE_VERBS) - 1 : 1u << v;
    }
    return 0;
}

static int read_resources(struct arena *a, const struct node *entry, struct kube_entry *e,
                          struct err *err)
{
    struct node n, item;
    size_t count;
    const char *text;
    if (!node_get(entry, "resources", &n))
        return node_fail(entry, err, "'kubernetes' needs 'verbs' and 'resources'");
    if (node_strings(&n, &count, err) < 0)
        return -1;
    if (count > KUBE_WORDS_MAX)
        return node_fail(&n, err, "at most %d resources", KUBE_WORDS_MAX);
    struct kube_resource *list = arena_zalloc(a, count, sizeof *list);
    for (size_t i = 0; i < count; i++)
        if (node_strings_at(&n, i, &item, &text, err) < 0 ||
            read_resource(a, &item, text, &list[i], err) < 0)
            return -1;
    e->resources = list;
    e->n_resources = count;
    return 0;
}

/* No list: any. */
static int read_patterns(struct arena *a, const struct node *entry, const char *key,
                         const char *const **ret, size_t *n_ret, struct err *err)
{
    struct node n, item;
    size_t count;
    const char *text;
    if (!node_get(entry, key, &n))
        return 0;
    if (node_strings(&n, &count, err) < 0)
        return -1;
    if (count > KUBE_WORDS_MAX)
        return node_fail(&n, err, "at most %d of them", KUBE_WORDS_MAX);
    const char **list = arena_zalloc(a, count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        if (node_strings_at(&n, i, &item, &text, err) < 0)
            return -1;
        if (*text == 0 || strlen(text) > KUBE_WORD_MAX || strpbrk(text, "/% "))
            return node_fail(&item, err, "'%.60s' is the name of nothing in Kubernetes", text);
        list[i] = arena_str(a, text);
    }
    *ret = list;
    *n_ret = count;
    return 0;
}

/* Patterns of what an exec may run. */
static int read_commands(struct arena *a, const struct node *entry, struct kube_entry *e,
                         struct err *err)
{
    struct node n;
    if (!node_get(entry, "commands", &n))
        return 0;
    for (size_t i = 0; i < e->n_resources; i++)
        if (e->verbs != 1u << KUBE_CREATE || e->resources[i].group[0] ||
            strcmp(e->resources[i].resource, "pods") != 0 ||
            strcmp(e->resources[i].subresource, "exec") != 0)
            return node_fail(&n, err,
                             "'commands' stands in an entry of 'create' on 'pods/exec' alone");
    return rule_commands_read(a, &n, &e->commands, &e->n_commands, err);
}

static int read_entry(struct arena *a, const struct node *n, struct kube_entry *e, struct err *err)
{
    return node_is_object(n, err) < 0 || node_keys(n, entry_keys, ARRAY_LEN(entry_keys), err) < 0 ||
                   read_verbs(n, &e->verbs, err) < 0 || read_resources(a, n, e, err) < 0 ||
                   read_patterns(a, n, "namespaces", &e->spaces, &e->n_spaces, err) < 0 ||
                   read_patterns(a, n, "names", &e->names, &e->n_names, err) < 0
               ? -1
               : read_commands(a, n, e, err);
}

/* Verbs say what methods do, and what an entry allows stands whatever the path. */
static int check_beside(const struct node *rule, struct err *err)
{
    static const char *const others[] = {"access",  "methods", "git", "query",
                                         "graphql", "mcp",     "llm", "tunnel"};
    struct node n;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (node_get(rule, others[i], &n))
            return node_fail(&n, err, "'%s' does not stand beside 'kubernetes'", others[i]);
    return 0;
}

int rule_kube_read(struct arena *a, const struct node *rule, struct rule *ret, struct err *err)
{
    struct node n;
    if (!node_get(rule, "kubernetes", &n))
        return 0;
    bool list = json_is_array(n.value);
    size_t count = list ? json_array_size(n.value) : 1;
    if (check_beside(rule, err) < 0)
        return -1;
    if (count == 0 || count > KUBE_ENTRIES_MAX)
        return node_fail(&n, err, "1 to %d entries", KUBE_ENTRIES_MAX);
    struct kube_terms *t = arena_zalloc(a, 1, sizeof *t);
    struct kube_entry *entries = arena_zalloc(a, count, sizeof *entries);
    for (size_t i = 0; i < count; i++) {
        struct node one = list ? node_item(&n, i) : n;
        if (read_entry(a, &one, &entries[i], err) < 0)
            return -1;
    }
    t->entries = entries;
    t->n_entries = count;
    ret->kubernetes = t;
    ret->method_scoped = true; /* no other method may be named in a field or in the query */
    return 0;
}
