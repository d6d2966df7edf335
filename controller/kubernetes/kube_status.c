/* Counts each pod that has not ended for the bindings that are of it. */
#include "kube_status.h"

#include <stdbool.h>
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

static bool is_accepted(const json_t *binding, const json_t *verdicts)
{
    const char *name = text_in(binding, "metadata", "name");
    const json_t *one;
    size_t i;
    json_array_foreach(verdicts, i, one)
    {
        const char *kind = json_string_value(json_object_get(one, "kind"));
        const char *own = json_string_value(json_object_get(one, "name"));
        if (kind && own && strcmp(kind, "PolicyBinding") == 0 && strcmp(own, name) == 0)
            return json_is_true(json_object_get(one, "accepted"));
    }
    return false;
}

json_t *kube_status_namespaces(const json_t *bindings, const json_t *verdicts)
{
    json_t *found = json_array(), *ns;
    const json_t *one;
    size_t i, k;
    json_array_foreach(bindings, i, one)
    {
        const json_t *own = json_object_get(json_object_get(one, "spec"), "namespaces");
        if (!is_accepted(one, verdicts))
            continue;
        json_array_foreach(own, k, ns)
        {
            const char *name = json_string_value(ns);
            if (name && !lists(found, name))
                json_array_append(found, ns);
        }
    }
    return found;
}

/* ---- of one pod ---- */

static bool is_whole(const json_t *spec)
{
    return !json_object_get(spec, "labels") && !json_object_get(spec, "serviceAccounts");
}

/* As config_node.c has it. */
static bool is_of(const json_t *spec, const json_t *pod)
{
    const json_t *labels = json_object_get(json_object_get(pod, "metadata"), "labels");
    const json_t *accounts = json_object_get(spec, "serviceAccounts");
    const char *key;
    json_t *value;
    if (!lists(json_object_get(spec, "namespaces"), text_in(pod, "metadata", "namespace")))
        return false;
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
static json_t *bindings_of(const json_t *pod, const json_t *bindings, const json_t *verdicts)
{
    json_t *narrow = json_array(), *whole = json_array(), *one;
    size_t i;
    json_array_foreach(bindings, i, one)
    {
        const json_t *spec = json_object_get(one, "spec");
        if (is_accepted(one, verdicts) && is_of(spec, pod))
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

static void count_pod(json_t *of, json_t *nodes, const json_t *pod, bool agreed)
{
    const char *node = text_in(pod, "spec", "nodeName");
    json_t *some = json_object_get(of, "some");
    if (!agreed) {
        add_one(of, "refused");
        return;
    }
    add_one(of, "pods");
    if (node[0] && !json_object_get(nodes, node)) {
        json_object_set_new(nodes, node, json_true());
        add_one(of, "nodes");
    }
    if (json_array_size(some) < KUBE_STATUS_SOME)
        json_array_append_new(some, json_pack("{s:s, s:s, s:s}", "namespace",
                                              text_in(pod, "metadata", "namespace"), "name",
                                              text_in(pod, "metadata", "name"), "node", node));
}

/* ---- of all ---- */

static json_t *begun(const json_t *bindings, const json_t *verdicts)
{
    json_t *counts = json_object();
    const json_t *one;
    size_t i;
    json_array_foreach(bindings, i, one)
    {
        if (is_accepted(one, verdicts))
            json_object_set_new(
                counts, text_in(one, "metadata", "name"),
                json_pack("{s:i, s:i, s:i, s:[]}", "pods", 0, "nodes", 0, "refused", 0, "some"));
    }
    return counts;
}

json_t *kube_status_count(const json_t *bindings, const json_t *verdicts, const json_t *pods)
{
    json_t *counts = begun(bindings, verdicts), *nodes = json_object(), *one;
    const json_t *pod;
    size_t i, k;
    json_array_foreach(pods, i, pod)
    {
        if (has_ended(pod))
            continue;
        json_t *found = bindings_of(pod, bindings, verdicts);
        json_array_foreach(found, k, one)
        {
            const char *name = text_in(one, "metadata", "name");
            if (json_object_get(nodes, name) == NULL)
                json_object_set_new(nodes, name, json_object());
            count_pod(json_object_get(counts, name), json_object_get(nodes, name), pod,
                      do_agree(found));
        }
        json_decref(found);
    }
    json_decref(nodes);
    return counts;
}
