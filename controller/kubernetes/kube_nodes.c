/* Labels the nodes whose daemon is ready, so that pods that are bound go to no other: a kubelet may
 * not give itself that label. Pods are listed and then watched, as objects are. */
#include <stdio.h>
#include <string.h>

#include "kube_client.h"
#include "kube_nodes.h"

#define LABEL "node-restriction.kubernetes.io/durward"

enum { WATCH_S = 240, UID_BYTES = 64, VERSION_BYTES = 32 };

static json_t *in(const json_t *v, const char *section, const char *key)
{
    return json_object_get(json_object_get(v, section), key);
}

static bool is_ready(const json_t *pod)
{
    const json_t *one;
    size_t i;
    if (in(pod, "metadata", "deletionTimestamp"))
        return false;
    json_array_foreach(in(pod, "status", "conditions"), i, one)
    {
        const char *type = json_string_value(json_object_get(one, "type"));
        const char *status = json_string_value(json_object_get(one, "status"));
        if (type && status && strcmp(type, "Ready") == 0)
            return strcmp(status, "True") == 0;
    }
    return false;
}

/* A label alone is nothing: a kubelet makes mirrors of its static pods, with any. Who owns a pod
 * the API server lets no kubelet say. */
static bool is_of(const json_t *pod, const char *uid)
{
    const json_t *one;
    size_t i;
    if (json_object_get(in(pod, "metadata", "annotations"), "kubernetes.io/config.mirror"))
        return false;
    json_array_foreach(in(pod, "metadata", "ownerReferences"), i, one)
    {
        const char *own = json_string_value(json_object_get(one, "uid"));
        if (own && strcmp(own, uid) == 0 && json_is_true(json_object_get(one, "controller")))
            return true;
    }
    return false;
}

json_t *kube_nodes_ready(const json_t *pods, const char *uid)
{
    json_t *found = json_object();
    const json_t *one;
    size_t i;
    json_array_foreach(pods, i, one)
    {
        const char *node = json_string_value(in(one, "spec", "nodeName"));
        if (node && is_of(one, uid) && is_ready(one))
            json_object_set_new(found, node, json_true());
    }
    return found;
}

json_t *kube_nodes_changed(const json_t *nodes, const json_t *ready)
{
    json_t *found = json_object();
    const json_t *one;
    size_t i;
    json_array_foreach(nodes, i, one)
    {
        const char *name = json_string_value(in(one, "metadata", "name"));
        const char *is = json_string_value(json_object_get(in(one, "metadata", "labels"), LABEL));
        bool has = is && strcmp(is, "ready") == 0;
        bool wants = name && json_object_get(ready, name);
        if (name && has != wants)
            json_object_set_new(found, name, json_boolean(wants));
    }
    return found;
}

static int label(const struct kube *k, const char *node, bool ready, struct err *err)
{
    char path[320];
    json_t *said = NULL;
    json_t *body = json_pack("{s:{s:{s:o}}}", "metadata", "labels", LABEL,
                             ready ? json_string("ready") : json_null());
    snprintf(path, sizeof path, "/api/v1/nodes/%.253s", node);
    struct kube_request q = {"PATCH", path, "application/merge-patch+json", body};
    int r = kube_must(k, &q, &said, err);
    if (r == 0)
        fprintf(stderr, "durward-kubernetes: node %s is %s\n", node, ready ? "ready" : "not ready");
    json_decref(said);
    json_decref(body);
    return r;
}

struct look {
    const struct kube *kube;
    const char *uid;
    json_t *ready;
    char version[VERSION_BYTES]; /* of the list of pods */
    struct err err;              /* of the last node that could not be labelled */
};

static int look_at_pods(const json_t *page, void *arg, struct err *err)
{
    struct look *l = arg;
    const char *version = json_string_value(in(page, "metadata", "resourceVersion"));
    json_t *ready = kube_nodes_ready(json_object_get(page, "items"), l->uid);
    int bad = json_object_update(l->ready, ready);
    json_decref(ready);
    if (version == NULL || strlen(version) >= VERSION_BYTES ||
        strspn(version, "0123456789") != strlen(version))
        return err_set(err, ERR_UPSTREAM, "the list of pods is malformed");
    snprintf(l->version, sizeof l->version, "%s", version);
    return bad ? err_set(err, ERR_INTERNAL, "out of memory") : 0;
}

/* One that fails keeps no other from its label. */
static int label_page(const json_t *page, void *arg, struct err *err UNUSED)
{
    struct look *l = arg;
    json_t *value, *changed = kube_nodes_changed(json_object_get(page, "items"), l->ready);
    const char *name;
    json_object_foreach(changed, name, value)(void)
        label(l->kube, name, json_is_true(value), &l->err);
    json_decref(changed);
    return 0;
}

static int label_all(struct look *l, const char *pods, struct err *err)
{
    int r = kube_pages(l->kube, pods, look_at_pods, l, err);
    if (r == 0)
        r = kube_pages(l->kube, "/api/v1/nodes", label_page, l, err);
    if (r < 0 || l->err.code == ERR_NONE)
        return r;
    *err = l->err;
    return -1;
}

/* Its uid; "": it is not there. */
static int daemonset_uid(const struct kube *k, const char *ns_name, char uid[UID_BYTES],
                         struct err *err)
{
    char path[512];
    int status;
    json_t *said;
    const char *slash = strchr(ns_name, '/');
    snprintf(path, sizeof path, "/apis/apps/v1/namespaces/%.*s/daemonsets/%.253s",
             (int)(slash - ns_name), ns_name, slash + 1);
    struct kube_request q = {.method = "GET", .path = path};
    if (kube_ask(k, &q, &status, &said, err) < 0)
        return -1;
    const char *own = json_string_value(in(said, "metadata", "uid"));
    int n = status == 404 ? 0 : status == 200 && own ? (int)strlen(own) : -1;
    snprintf(uid, UID_BYTES, "%s", n > 0 ? own : "");
    json_decref(said);
    return n < 0 || n >= UID_BYTES
               ? err_set(err, ERR_UPSTREAM, "GET %s: %d, and no uid", path, status)
               : 0;
}

int kube_nodes_turn(const struct kube *k, const char *daemonset, struct err *err)
{
    char path[512], watch[640], uid[UID_BYTES];
    const char *slash = strchr(daemonset, '/');
    struct kube_stream s = {.fd = -1};
    if (slash == NULL)
        return err_set(err, ERR_PARSE, "'%.100s' is not NAMESPACE/NAME", daemonset);
    if (daemonset_uid(k, daemonset, uid, err) < 0)
        return -1;
    snprintf(path, sizeof path, "/api/v1/namespaces/%.*s/pods?labelSelector=app%%3D%.63s",
             (int)(slash - daemonset), daemonset, slash + 1);
    struct look l = {.kube = k, .uid = uid, .ready = json_object()};
    int r = label_all(&l, path, err);
    json_decref(l.ready);
    if (r < 0)
        return -1;
    snprintf(watch, sizeof watch, "%s&watch=1&timeoutSeconds=%d&resourceVersion=%s", path, WATCH_S,
             l.version);
    r = kube_watch(k, watch, &s, err);
    if (r == 0)
        (void)kube_wait(&s, 1, WATCH_S);
    kube_unwatch(&s);
    return r;
}
