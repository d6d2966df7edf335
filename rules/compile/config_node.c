/* Reads `node`: this daemon makes the way out of the pods of a Kubernetes node, asked by the CNI
 * plugin durward-cni. */
#include <string.h>

#include "cidr.h"
#include "config_tree.h"

enum { LABEL_MAX = 63, PREFIX_MAX = 253 };

static const struct key node_section[] = {
    KEY("socket", AS(socket), "/run/durward/node.sock",
        "unix socket on which the plugin asks; only root opens it"),
    KEY("netns", AS(path), "/run/netns",
        "directory where the container runtime keeps the network namespaces of pods; the daemon "
        "opens namespaces there and nowhere else"),
    KEY("kubelet", AS(path), "/var/lib/kubelet", "the kubelet's root directory"),
    KEY("namespaces", OWN, "none",
        "mapping of the cluster's namespaces to policies: what the pods of a namespace may reach. "
        "In "
        "place of a policy a list of bindings, see below"),
    KEY("unbound", AS(strings), "none",
        "one or a list of namespaces whose pods Durward leaves as they are. A pod of a namespace "
        "that is named in neither does not start"),
    KEY("objects", AS(path), "none",
        "file of policies and namespaces that durward-kubernetes writes, by the objects of the "
        "cluster; they count beside those of the configuration, and a change of the file counts "
        "within a second"),
    KEY("inbound", AS(ranges), "none",
        "one or a list of address ranges that may connect to the pods by TCP, beside the node's "
        "own "
        "addresses, from which the kubelet probes; at most 64"),
};

static const struct key binding_keys[] = {
    KEY("policy", OWN, "required", "the policy of the pods that this binding is of"),
    KEY("labels", OWN, "none",
        "mapping of labels that such a pod has, all of them; at most 16. Without `labels` and "
        "`accounts` the binding is of all pods that no other one of the namespace is of"),
    KEY("accounts", AS(strings), "none",
        "one or a list of service accounts, one of which such a pod has; at most 64"),
};

/* The name of a namespace of the cluster: a label of DNS. */
bool config_namespace_ok(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n <= LABEL_MAX && s[0] != '-' && s[n - 1] != '-' &&
           strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

static int read_place(struct config *c, const struct node *n, const char *key, const char **ret,
                      struct err *err)
{
    struct node at;
    const char *text;
    if (!node_get(n, key, &at))
        return 0;
    if (node_string(&at, &text, err) < 0)
        return -1;
    size_t len = strlen(text);
    if (len > CONFIG_SOCKET_MAX || !config_volume_path_ok(text))
        return node_fail(&at, err, "must be an absolute path in its plain form, at most %d bytes",
                         CONFIG_SOCKET_MAX);
    *ret = arena_str(c->arena, text);
    return 0;
}

static struct config_node_namespace *add_namespace(struct config *c, struct config_node *s,
                                                   const struct node *at, const char *name,
                                                   struct err *err)
{
    bool twice = false;
    for (size_t i = 0; i < s->n_namespaces; i++)
        if (strcmp(s->namespaces[i].name, name) == 0)
            twice = true;
    if (!config_namespace_ok(name))
        node_fail(at, err, "'%.80s' is not the name of a namespace", name);
    else if (twice)
        node_fail(at, err, "the namespace %s is named twice", name);
    else if (s->n_namespaces == CONFIG_NODE_NAMESPACES_MAX)
        node_fail(at, err, "more than %d namespaces", CONFIG_NODE_NAMESPACES_MAX);
    else {
        struct config_node_namespace *ns = &s->namespaces[s->n_namespaces++];
        ns->name = arena_str(c->arena, name);
        return ns;
    }
    return NULL;
}

/* ---- whose pods have which policy ---- */

static int read_policy(struct config *c, const struct node *at, const char **ret, struct err *err)
{
    const char *policy;
    if (node_string(at, &policy, err) < 0)
        return -1;
    const struct config_policy *p = config_policy_find(c, policy);
    if (p == NULL)
        return node_fail(at, err, "there is no policy '%.60s'; add it under 'policies'", policy);
    *ret = p->name;
    return 0;
}

static bool word_ok(const char *s, size_t n, size_t max)
{
    return n > 0 && n <= max && ascii_is_alnum(s[0]) && ascii_is_alnum(s[n - 1]) &&
           strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") >= n;
}

/* A label of an object of the cluster: [PREFIX/]NAME, and a value that may be empty. */
static bool pod_label_ok(const char *key, const char *value)
{
    const char *slash = strchr(key, '/');
    const char *name = slash ? slash + 1 : key;
    return (slash == NULL || word_ok(key, (size_t)(slash - key), PREFIX_MAX)) &&
           word_ok(name, strlen(name), LABEL_MAX) &&
           (value[0] == '\0' || word_ok(value, strlen(value), LABEL_MAX));
}

static int read_labels(const struct node *n, struct config_node_binding *b, struct err *err)
{
    const char *key, *text;
    json_t *value;
    if (node_is_object(n, err) < 0)
        return -1;
    size_t count = json_object_size(n->value);
    if (count == 0 || count > CONFIG_NODE_LABELS_MAX)
        return node_fail(n, err, "must have 1 to %d labels", CONFIG_NODE_LABELS_MAX);
    json_object_foreach(n->value, key, value)
    {
        struct node at;
        node_get(n, key, &at);
        if (node_string(&at, &text, err) < 0)
            return -1;
        if (!pod_label_ok(key, text))
            return node_fail(&at, err, "'%.80s: %.80s' is not a label of Kubernetes", key, text);
    }
    b->labels = n->value; /* as long as the configuration's root */
    return 0;
}

static int read_accounts(struct config *c, const struct node *n, struct config_node_binding *b,
                         struct err *err)
{
    size_t count;
    if (node_strings(n, &count, err) < 0)
        return -1;
    if (count == 0 || count > CONFIG_NODE_ACCOUNTS_MAX)
        return node_fail(n, err, "must name 1 to %d accounts", CONFIG_NODE_ACCOUNTS_MAX);
    const char **list = arena_zalloc(c->arena, count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *name;
        if (node_strings_at(n, i, &item, &name, err) < 0)
            return -1;
        if (!word_ok(name, strlen(name), PREFIX_MAX))
            return node_fail(&item, err, "'%.80s' is not the name of a service account", name);
        list[i] = arena_str(c->arena, name);
    }
    b->accounts = list;
    b->n_accounts = count;
    return 0;
}

static int read_binding(struct config *c, const struct node *n, struct config_node_namespace *ns,
                        struct err *err)
{
    struct node at;
    struct config_node_binding b = {NULL};
    if (node_is_object(n, err) < 0 || node_keys(n, KEYS(binding_keys), err) < 0)
        return -1;
    if (!node_get(n, "policy", &at))
        return node_fail(n, err, "'policy' is missing");
    if (read_policy(c, &at, &b.policy, err) < 0 ||
        (node_get(n, "labels", &at) && read_labels(&at, &b, err) < 0) ||
        (node_get(n, "accounts", &at) && read_accounts(c, &at, &b, err) < 0))
        return -1;
    if (b.labels || b.n_accounts) {
        ns->bindings[ns->n_bindings++] = b;
        return 0;
    }
    if (ns->policy)
        return node_fail(n, err, "a second binding of the namespace %s without labels and accounts",
                         ns->name);
    ns->policy = b.policy;
    return 0;
}

static int read_bindings(struct config *c, const struct node *n, struct config_node_namespace *ns,
                         struct err *err)
{
    size_t count = json_array_size(n->value);
    if (count == 0 || count > CONFIG_NODE_BINDINGS_MAX)
        return node_fail(n, err, "must have 1 to %d bindings", CONFIG_NODE_BINDINGS_MAX);
    ns->bindings = arena_zalloc(c->arena, count, sizeof *ns->bindings);
    for (size_t i = 0; i < count; i++) {
        const struct node item = node_item(n, i);
        if (read_binding(c, &item, ns, err) < 0)
            return -1;
    }
    return 0;
}

static int read_namespaces(struct config *c, const struct node *n, struct config_node *s,
                           struct err *err)
{
    const char *key;
    json_t *value;
    if (node_is_object(n, err) < 0)
        return -1;
    json_object_foreach(n->value, key, value)
    {
        struct node at;
        node_get(n, key, &at);
        struct config_node_namespace *ns = add_namespace(c, s, &at, key, err);
        if (ns == NULL || (json_is_array(value) ? read_bindings(c, &at, ns, err)
                                                : read_policy(c, &at, &ns->policy, err)) < 0)
            return -1;
    }
    return 0;
}

static int read_unbound(struct config *c, const struct node *n, struct config_node *s,
                        struct err *err)
{
    size_t count;
    if (node_strings(n, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *name;
        struct config_node_namespace *ns;
        if (node_strings_at(n, i, &item, &name, err) < 0 ||
            (ns = add_namespace(c, s, &item, name, err)) == NULL)
            return -1;
        ns->unbound = true;
    }
    return 0;
}

static int read_inbound(struct config *c, const struct node *n, struct config_node *s,
                        struct err *err)
{
    size_t count;
    struct cidr range;
    if (node_strings(n, &count, err) < 0)
        return -1;
    if (count > CONFIG_NODE_RANGES_MAX)
        return node_fail(n, err, "more than %d ranges", CONFIG_NODE_RANGES_MAX);
    const char **list = arena_zalloc(c->arena, count + 1, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *text;
        if (node_strings_at(n, i, &item, &text, err) < 0)
            return -1;
        if (cidr_parse(&range, slice_str(text)) < 0 || range.kind != HOST_IPV4)
            return node_fail(&item, err, "'%.80s' is not a range of IPv4 addresses: 10.0.0.0/8",
                             text);
        list[i] = arena_str(c->arena, text);
    }
    s->inbound = list;
    s->n_inbound = count;
    return 0;
}

int config_read_node(struct config *c, const struct node *n, struct err *err)
{
    struct node at;
    if (node_is_object(n, err) < 0 || node_keys(n, KEYS(node_section), err) < 0)
        return -1;
    struct config_node *s = arena_zalloc(c->arena, 1, sizeof *s);
    s->namespaces = arena_zalloc(c->arena, CONFIG_NODE_NAMESPACES_MAX, sizeof *s->namespaces);
    s->socket = "/run/durward/node.sock";
    s->netns = "/run/netns";
    s->kubelet = "/var/lib/kubelet";
    if (read_place(c, n, "socket", &s->socket, err) < 0 ||
        read_place(c, n, "netns", &s->netns, err) < 0 ||
        read_place(c, n, "kubelet", &s->kubelet, err) < 0 ||
        read_place(c, n, "objects", &s->objects, err) < 0)
        return -1;
    if (node_get(n, "namespaces", &at) && read_namespaces(c, &at, s, err) < 0)
        return -1;
    if (node_get(n, "unbound", &at) && read_unbound(c, &at, s, err) < 0)
        return -1;
    if (node_get(n, "inbound", &at) && read_inbound(c, &at, s, err) < 0)
        return -1;
    c->node = s;
    return 0;
}

const struct config_node *config_node(const struct config *c)
{
    return c->node;
}

/* A copy without what a reload may change; NULL: there is no node. */
static json_t *fixed_part(const struct config *c)
{
    json_t *v = json_copy(json_object_get(c->root, "node"));
    json_object_del(v, "namespaces");
    json_object_del(v, "unbound");
    return v;
}

bool config_node_same(const struct config *a, const struct config *b)
{
    json_t *x = fixed_part(a), *y = fixed_part(b);
    bool same = x == y || (x && y && json_equal(x, y));
    json_decref(x);
    json_decref(y);
    return same;
}

const struct config_node_namespace *config_node_namespace(const struct config *c, const char *name)
{
    const struct config_node *s = c->node;
    for (size_t i = 0; s && i < s->n_namespaces; i++)
        if (strcmp(s->namespaces[i].name, name) == 0)
            return &s->namespaces[i];
    return NULL;
}

/* ---- a pod's ---- */

static bool has_labels(const json_t *wanted, const json_t *labels)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)wanted, key, value)
    {
        const json_t *own = json_object_get(labels, key);
        if (own == NULL || !json_equal(own, value))
            return false;
    }
    return true;
}

static bool has_account(const struct config_node_binding *b, const char *account)
{
    for (size_t i = 0; i < b->n_accounts; i++)
        if (strcmp(b->accounts[i], account) == 0)
            return true;
    return b->n_accounts == 0;
}

/* Of bindings that say more than the namespace all count that are of the pod, and they must say the
 * same: which of them is the narrower one depends on who reads them. */
enum config_node_choice config_node_choose(const struct config_node_namespace *n,
                                           const struct config_node_pod *pod, const char *two[2])
{
    two[0] = two[1] = NULL;
    if (n == NULL || n->unbound)
        return n ? CONFIG_NODE_UNBOUND : CONFIG_NODE_NONE;
    if (n->n_bindings && pod->account == NULL)
        return CONFIG_NODE_UNKNOWN;
    for (size_t i = 0; i < n->n_bindings; i++) {
        const struct config_node_binding *b = &n->bindings[i];
        if (!has_labels(b->labels, pod->labels) || !has_account(b, pod->account))
            continue;
        if (two[0] && strcmp(two[0], b->policy) != 0) {
            two[1] = b->policy;
            return CONFIG_NODE_AMBIGUOUS;
        }
        two[0] = b->policy;
    }
    if (two[0] == NULL)
        two[0] = n->policy;
    return two[0] ? CONFIG_NODE_BOUND : CONFIG_NODE_NONE;
}
