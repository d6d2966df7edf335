/* Counts each pod that has not ended for the bindings that are of it. */
#include "kube_status.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *text_in(const json_t *v, const char *section, const char *key)
{
    const char *s = json_string_value(json_object_get(json_object_get(v, section), key));
    return s ? s : "";
}

static bool lists(const json_t *list, const char *word)
{
    const json_t *one;
    size_t i;
    json_array_foreach(list, i, one)
    {
        const char *s = json_string_value(one);
        if (s && strcmp(s, word) == 0)
            return true;
    }
    return false;
}

/* { NAME: true } of the bindings that are accepted. */
static json_t *accepted_of(const json_t *verdicts)
{
    json_t *found = json_object();
    const json_t *one;
    size_t i;
    json_array_foreach(verdicts, i, one)
    {
        const char *kind = json_string_value(json_object_get(one, "kind"));
        const char *name = json_string_value(json_object_get(one, "name"));
        if (kind && name && strcmp(kind, "PolicyBinding") == 0 &&
            json_is_true(json_object_get(one, "accepted")))
            json_object_set_new(found, name, json_true());
    }
    return found;
}

static bool is_accepted(const json_t *binding, const json_t *accepted)
{
    return json_object_get(accepted, text_in(binding, "metadata", "name")) != NULL;
}

json_t *kube_status_namespaces(const json_t *bindings, const json_t *verdicts)
{
    json_t *found = json_array(), *known = json_object(), *accepted = accepted_of(verdicts), *ns;
    const json_t *one;
    size_t i, k;
    json_array_foreach(bindings, i, one)
    {
        const json_t *own = json_object_get(json_object_get(one, "spec"), "namespaces");
        if (!is_accepted(one, accepted))
            continue;
        json_array_foreach(own, k, ns)
        {
            const char *name = json_string_value(ns);
            if (name == NULL || json_object_get(known, name))
                continue;
            json_object_set_new(known, name, json_true());
            json_array_append(found, ns);
        }
    }
    json_decref(known);
    json_decref(accepted);
    return found;
}

/* ---- of one pod ---- */

static bool is_whole(const json_t *spec)
{
    return !json_object_get(spec, "labels") && !json_object_get(spec, "serviceAccounts");
}

/* As config_node.c has it, of a binding of the pod's namespace. */
static bool is_of(const json_t *spec, const json_t *pod)
{
    const json_t *labels = json_object_get(json_object_get(pod, "metadata"), "labels");
    const json_t *accounts = json_object_get(spec, "serviceAccounts");
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(spec, "labels"), key, value)
    {
        const json_t *own = json_object_get(labels, key);
        if (own == NULL || !json_equal(own, value))
            return false;
    }
    return accounts == NULL || lists(accounts, text_in(pod, "spec", "serviceAccountName"));
}

static bool has_ended(const json_t *pod)
{
    const char *phase = text_in(pod, "status", "phase");
    return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

/* The bindings that are of it: those that say more than the namespace, or else the one that does
 * not. */
static json_t *bindings_of(const json_t *pod, const json_t *by_namespace)
{
    const json_t *bindings = json_object_get(by_namespace, text_in(pod, "metadata", "namespace"));
    json_t *narrow = json_array(), *whole = json_array(), *one;
    size_t i;
    json_array_foreach(bindings, i, one)
    {
        const json_t *spec = json_object_get(one, "spec");
        if (is_of(spec, pod))
            json_array_append(is_whole(spec) ? whole : narrow, one);
    }
    json_t *found = json_array_size(narrow) ? narrow : whole;
    json_decref(found == narrow ? whole : narrow);
    return found;
}

static bool do_agree(const json_t *bindings)
{
    const char *first = text_in(json_array_get(bindings, 0), "spec", "policy");
    const json_t *one;
    size_t i;
    json_array_foreach(bindings, i, one)
    {
        if (strcmp(text_in(one, "spec", "policy"), first) != 0)
            return false;
    }
    return true;
}

static void add_one(json_t *v, const char *key)
{
    json_object_set_new(v, key, json_integer(json_integer_value(json_object_get(v, key)) + 1));
}

/* One more node of what has this name, unless it is known already. */
static void count_node(json_t *of, json_t *nodes, const char *name, const json_t *pod)
{
    const char *node = text_in(pod, "spec", "nodeName");
    json_t *known = json_object_get(nodes, name);
    if (known == NULL && json_object_set_new(nodes, name, known = json_object()) < 0)
        return;
    if (node[0] == '\0' || json_object_get(known, node))
        return;
    json_object_set_new(known, node, json_true());
    add_one(of, "nodes");
}

static void count_binding(json_t *of, const json_t *pod, bool agreed)
{
    json_t *some = json_object_get(of, "some");
    if (!agreed) {
        add_one(of, "refused");
        return;
    }
    add_one(of, "pods");
    if (json_array_size(some) < KUBE_STATUS_SOME)
        json_array_append_new(some, json_pack("{s:s, s:s, s:s}", "namespace",
                                              text_in(pod, "metadata", "namespace"), "name",
                                              text_in(pod, "metadata", "name"), "node",
                                              text_in(pod, "spec", "nodeName")));
}

/* ---- of all ---- */

struct kube_count {
    json_t *bindings;   /* those that count */
    json_t *namespaces; /* NAME: those of them that are of it */
    json_t *of, *nodes; /* NAME of a binding: its status; { NODE: true } */
    json_t *policies, *policy_nodes;
    json_t *lost; /* namespaces */
};

static int begin_in(struct kube_count *c, json_t *binding)
{
    const json_t *ns;
    size_t i;
    int bad = 0;
    json_array_foreach(json_object_get(json_object_get(binding, "spec"), "namespaces"), i, ns)
    {
        const char *name = json_string_value(ns);
        json_t *list = name ? json_object_get(c->namespaces, name) : NULL;
        if (name && list == NULL)
            bad |= json_object_set_new(c->namespaces, name, list = json_array());
        if (list && json_array_get(list, json_array_size(list) - 1) != binding)
            bad |= json_array_append(list, binding);
    }
    return bad;
}

static int begin_one(struct kube_count *c, json_t *binding)
{
    return json_array_append(c->bindings, binding) | begin_in(c, binding) |
           json_object_set_new(
               c->of, text_in(binding, "metadata", "name"),
               json_pack("{s:i, s:i, s:i, s:[]}", "pods", 0, "nodes", 0, "refused", 0, "some"));
}

static int begin_policy(struct kube_count *c, const char *name)
{
    return json_object_set_new(c->policies, name,
                               json_pack("{s:i, s:i, s:i}", "bindings", 0, "pods", 0, "nodes", 0));
}

static int begin_all(struct kube_count *c, const json_t *bindings, const json_t *verdicts)
{
    json_t *one, *accepted = accepted_of(verdicts);
    size_t i;
    int bad = 0;
    json_array_foreach(verdicts, i, one)
    {
        const char *kind = json_string_value(json_object_get(one, "kind"));
        const char *name = json_string_value(json_object_get(one, "name"));
        if (kind && name && strcmp(kind, "Policy") == 0)
            bad |= begin_policy(c, name);
    }
    json_array_foreach(bindings, i, one)
    {
        if (!is_accepted(one, accepted))
            continue;
        bad |= begin_one(c, one);
        json_t *policy = json_object_get(c->policies, text_in(one, "spec", "policy"));
        if (policy) /* else it is one of the daemons' configuration */
            add_one(policy, "bindings");
    }
    json_decref(accepted);
    return bad;
}

struct kube_count *kube_count_new(const json_t *bindings, const json_t *verdicts)
{
    struct kube_count *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    *c = (struct kube_count){json_array(),  json_object(), json_object(), json_object(),
                             json_object(), json_object(), json_array()};
    if (begin_all(c, bindings, verdicts) == 0)
        return c;
    kube_count_free(c);
    return NULL;
}

void kube_count_free(struct kube_count *c)
{
    if (c == NULL)
        return;
    json_t *const all[] = {c->bindings, c->namespaces,   c->of,  c->nodes,
                           c->policies, c->policy_nodes, c->lost};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        json_decref(all[i]);
    free(c);
}

static void count_pod(struct kube_count *c, const json_t *pod)
{
    json_t *found = bindings_of(pod, c->namespaces), *one;
    bool agreed = do_agree(found);
    const char *policy = text_in(json_array_get(found, 0), "spec", "policy");
    json_t *of = json_object_get(c->policies, policy);
    size_t i;
    json_array_foreach(found, i, one)
    {
        const char *name = text_in(one, "metadata", "name");
        count_binding(json_object_get(c->of, name), pod, agreed);
        if (agreed)
            count_node(json_object_get(c->of, name), c->nodes, name, pod);
    }
    if (of && agreed) {
        add_one(of, "pods");
        count_node(of, c->policy_nodes, policy, pod);
    }
    json_decref(found);
}

void kube_count_pods(struct kube_count *c, const json_t *pods)
{
    const json_t *pod;
    size_t i;
    json_array_foreach(pods, i, pod) if (!has_ended(pod)) count_pod(c, pod);
}

json_t *kube_status_pod(const json_t *pod)
{
    if (has_ended(pod))
        return NULL;
    json_t *labels = json_object_get(json_object_get(pod, "metadata"), "labels");
    json_t *v =
        json_pack("{s:{s:s, s:s, s:O*}, s:{s:s, s:s}}", "metadata", "namespace",
                  text_in(pod, "metadata", "namespace"), "name", text_in(pod, "metadata", "name"),
                  "labels", labels, "spec", "nodeName", text_in(pod, "spec", "nodeName"),
                  "serviceAccountName", text_in(pod, "spec", "serviceAccountName"));
    char *text = v ? json_dumps(v, JSON_COMPACT) : NULL;
    json_t *kept = text ? json_string(text) : NULL;
    free(text);
    json_decref(v);
    return kept;
}

void kube_count_kept(struct kube_count *c, const json_t *kept)
{
    const char *key;
    json_t *text;
    json_object_foreach((json_t *)(uintptr_t)kept, key, text)
    {
        json_t *pod = json_loads(json_string_value(text), 0, NULL);
        count_pod(c, pod);
        json_decref(pod);
    }
}

void kube_count_lost(struct kube_count *c, const char *ns)
{
    json_array_append_new(c->lost, json_string(ns));
}

static bool is_lost(const struct kube_count *c, const json_t *binding)
{
    const json_t *own = json_object_get(json_object_get(binding, "spec"), "namespaces"), *ns;
    size_t i;
    json_array_foreach(own, i, ns)
    {
        const char *name = json_string_value(ns);
        if (name && lists(c->lost, name))
            return true;
    }
    return false;
}

/* What is not known is left as it was said last. */
void kube_count_end(struct kube_count *c, json_t **bindings, json_t **policies)
{
    const json_t *one;
    size_t i;
    json_array_foreach(c->bindings, i, one)
    {
        if (!is_lost(c, one))
            continue;
        json_object_del(c->of, text_in(one, "metadata", "name"));
        json_object_del(c->policies, text_in(one, "spec", "policy"));
    }
    *bindings = c->of;
    *policies = c->policies;
}
