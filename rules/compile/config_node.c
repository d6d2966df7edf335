/* Reads `node`: this daemon makes the way out of the pods of a Kubernetes node, asked by the CNI
 * plugin durward-cni. */
#include <string.h>

#include "cidr.h"
#include "config_tree.h"

enum { LABEL_MAX = 63 };

static const struct key node_section[] = {
    KEY("socket", AS(socket), "/run/durward/node.sock",
        "unix socket on which the plugin asks; only root opens it"),
    KEY("netns", AS(path), "/run/netns",
        "directory where the container runtime keeps the network namespaces of pods; the daemon "
        "opens namespaces there and nowhere else"),
    KEY("kubelet", AS(path), "/var/lib/kubelet", "the kubelet's root directory"),
    KEY("namespaces", OWN, "none",
        "mapping of the cluster's namespaces to policies: what the pods of a namespace may reach"),
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

/* The name of a namespace of the cluster: a label of DNS. */
static bool label_ok(const char *s)
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

static int add_namespace(struct config *c, struct config_node *s, const struct node *at,
                         const char *name, const char *policy, struct err *err)
{
    if (!label_ok(name))
        return node_fail(at, err, "'%.80s' is not the name of a namespace", name);
    for (size_t i = 0; i < s->n_namespaces; i++)
        if (strcmp(s->namespaces[i].name, name) == 0)
            return node_fail(at, err, "the namespace %s is named twice", name);
    if (s->n_namespaces == CONFIG_NODE_NAMESPACES_MAX)
        return node_fail(at, err, "more than %d namespaces", CONFIG_NODE_NAMESPACES_MAX);
    s->namespaces[s->n_namespaces++] =
        (struct config_node_namespace){arena_str(c->arena, name), policy};
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
        const char *policy;
        node_get(n, key, &at);
        if (node_string(&at, &policy, err) < 0)
            return -1;
        const struct config_policy *p = config_policy_find(c, policy);
        if (p == NULL)
            return node_fail(&at, err, "there is no policy '%.60s'; add it under 'policies'",
                             policy);
        if (add_namespace(c, s, &at, key, p->name, err) < 0)
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
        if (node_strings_at(n, i, &item, &name, err) < 0 ||
            add_namespace(c, s, &item, name, NULL, err) < 0)
            return -1;
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
