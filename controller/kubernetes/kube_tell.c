/* Writes into each object's status what the compiler says of it and which pods it is of. Pods are
 * listed a page at a time, so that no number of them is too many; a namespace whose list fails
 * takes the counts of its own bindings and no others. */
#include <stdio.h>
#include <string.h>

#include "kube_client.h"
#include "kube_objects.h"
#include "kube_status.h"

/* ---- pods ---- */

static int count_page(const json_t *page, void *arg, struct err *err UNUSED)
{
    kube_count_pods(arg, json_object_get(page, "items"));
    return 0;
}

static int count_namespace(const struct kube *k, const char *ns, struct kube_count *c,
                           struct err *err)
{
    char path[256];
    snprintf(path, sizeof path,
             "/api/v1/namespaces/%.63s/pods?fieldSelector=status.phase!%%3DSucceeded,"
             "status.phase!%%3DFailed",
             ns);
    return kube_pages(k, path, count_page, c, err);
}

/* err: the first that failed. */
static void count_all(const struct kube *k, const json_t *namespaces, struct kube_count *c,
                      struct err *err)
{
    const json_t *one;
    size_t i;
    json_array_foreach(namespaces, i, one)
    {
        struct err own = {0};
        const char *ns = json_string_value(one);
        if (count_namespace(k, ns, c, &own) == 0)
            continue;
        kube_count_lost(c, ns);
        if (err->code == ERR_NONE)
            *err = own;
    }
}

/* ---- objects ---- */

static const json_t *named(const json_t *items, const char *name)
{
    const json_t *one;
    size_t i;
    json_array_foreach(items, i, one)
    {
        const char *own =
            json_string_value(json_object_get(json_object_get(one, "metadata"), "name"));
        if (own && strcmp(own, name) == 0)
            return one;
    }
    return NULL;
}

/* A binding that is not accepted is of nobody. */
static json_t *status_of(const json_t *object, const json_t *verdict, bool policy)
{
    bool good = json_is_true(json_object_get(verdict, "accepted"));
    json_t *v = json_pack("{s:s, s:O, s:O}", "accepted", good ? "True" : "False", "message",
                          json_object_get(verdict, "message"), "observedGeneration",
                          json_object_get(json_object_get(object, "metadata"), "generation"));
    json_t *none = policy || good ? NULL
                                  : json_pack("{s:i, s:i, s:i, s:[]}", "pods", 0, "nodes", 0,
                                              "refused", 0, "some");
    if (v && none)
        json_object_update(v, none);
    json_decref(none);
    return v;
}

static bool says(const json_t *object, json_t *status)
{
    const json_t *own = json_object_get(object, "status");
    const char *key;
    json_t *value;
    json_object_foreach(status, key, value)
    {
        if (!json_equal(json_object_get(own, key), value))
            return false;
    }
    return true;
}

static int tell(const struct kube *k, const char *plural, const json_t *object,
                const json_t *verdict, json_t *count, struct err *err)
{
    bool policy = strcmp(plural, "policies") == 0;
    json_t *status = object ? status_of(object, verdict, policy) : NULL, *said = NULL;
    char path[512];
    int r = 0;
    if (status && count)
        json_object_update(status, count);
    if (status && !says(object, status)) {
        json_t *body = json_pack("{s:O}", "status", status);
        snprintf(path, sizeof path, KUBE_API "/%s/%.253s/status", plural,
                 json_string_value(json_object_get(verdict, "name")));
        struct kube_request q = {"PATCH", path, "application/merge-patch+json", body};
        r = kube_must(k, &q, &said, err);
        json_decref(said);
        json_decref(body);
    }
    json_decref(status);
    return r;
}

static int tell_each(const struct kube *k, const json_t *policies, const json_t *bindings,
                     const json_t *verdicts, json_t *const counts[2], struct err *err)
{
    const json_t *one;
    size_t i;
    int r = 0;
    json_array_foreach(verdicts, i, one)
    {
        const char *kind = json_string_value(json_object_get(one, "kind"));
        const char *name = json_string_value(json_object_get(one, "name"));
        bool policy = kind && strcmp(kind, "Policy") == 0;
        if (name)
            r |= tell(k, policy ? "policies" : "policybindings",
                      named(policy ? policies : bindings, name), one,
                      json_object_get(counts[policy], name), err);
    }
    return r;
}

int kube_tell_all(const struct kube *k, const struct kube_base *base, const json_t *policies,
                  const json_t *bindings, struct err *err)
{
    json_t *verdicts = json_array(), *counts[2];
    json_t *objects = kube_objects(base, policies, bindings, NULL, verdicts);
    struct kube_count *c = objects ? kube_count_new(bindings, verdicts) : NULL;
    int r = c ? 0 : err_set(err, ERR_INTERNAL, "out of memory");
    if (c) {
        json_t *namespaces = kube_status_namespaces(bindings, verdicts);
        count_all(k, namespaces, c, err);
        json_decref(namespaces);
        kube_count_end(c, &counts[0], &counts[1]);
        r = tell_each(k, policies, bindings, verdicts, counts, err);
    }
    kube_count_free(c);
    json_decref(objects);
    json_decref(verdicts);
    return r;
}
