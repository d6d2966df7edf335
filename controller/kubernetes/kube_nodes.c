/* Labels the nodes whose daemon is ready, so that pods that are bound go to no other: a kubelet may
 * not give itself that label. The DaemonSet, its pods and the labels of nodes are each a mirror, so
 * that one pod that becomes ready costs one event and one label, however many nodes there are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kube_client.h"
#include "kube_mirror.h"
#include "kube_nodes.h"

#define LABEL "node-restriction.kubernetes.io/durward"

enum { WATCH_S = 240, SETTLE_MS = 50, PATH_MAX_BYTES = 512 };

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
 * the API server lets no kubelet say. "": nobody. */
static const char *owner_of(const json_t *pod)
{
    const json_t *one;
    size_t i;
    if (json_object_get(in(pod, "metadata", "annotations"), "kubernetes.io/config.mirror"))
        return "";
    json_array_foreach(in(pod, "metadata", "ownerReferences"), i, one)
    {
        const char *uid = json_string_value(json_object_get(one, "uid"));
        if (uid && json_is_true(json_object_get(one, "controller")))
            return uid; /* there is at most one */
    }
    return "";
}

/* ---- what is kept ---- */

json_t *kube_nodes_pod(const json_t *pod)
{
    const char *node = json_string_value(in(pod, "spec", "nodeName"));
    return node ? json_pack("{s:s, s:s, s:b}", "node", node, "owner", owner_of(pod), "ready",
                            is_ready(pod))
                : NULL;
}

json_t *kube_nodes_node(const json_t *node)
{
    const char *is = json_string_value(json_object_get(in(node, "metadata", "labels"), LABEL));
    return json_boolean(is && strcmp(is, "ready") == 0);
}

static json_t *keep_uid(const json_t *daemonset)
{
    json_t *uid = in(daemonset, "metadata", "uid");
    return json_is_string(uid) ? json_incref(uid) : NULL;
}

/* ---- what they come to ---- */

json_t *kube_nodes_ready(const json_t *pods, const char *uid)
{
    json_t *found = json_object(), *one;
    const char *key;
    json_object_foreach((json_t *)(uintptr_t)pods, key, one)
    {
        const char *owner = json_string_value(json_object_get(one, "owner"));
        const char *node = json_string_value(json_object_get(one, "node"));
        if (node && owner && owner[0] && strcmp(owner, uid) == 0 &&
            json_is_true(json_object_get(one, "ready")))
            json_object_set_new(found, node, json_true());
    }
    return found;
}

json_t *kube_nodes_changed(const json_t *nodes, const json_t *ready)
{
    json_t *found = json_object(), *has;
    const char *name;
    json_object_foreach((json_t *)(uintptr_t)nodes, name, has)
    {
        bool wants = json_object_get(ready, name) != NULL;
        if (json_is_true(has) != wants)
            json_object_set_new(found, name, json_boolean(wants));
    }
    return found;
}

/* ---- labels ---- */

static int label(const struct kube *k, struct kube_mirror *nodes, const char *node, bool ready,
                 struct err *err)
{
    char path[320];
    json_t *said = NULL;
    json_t *body = json_pack("{s:{s:{s:o}}}", "metadata", "labels", LABEL,
                             ready ? json_string("ready") : json_null());
    snprintf(path, sizeof path, "/api/v1/nodes/%.253s", node);
    struct kube_request q = {"PATCH", path, "application/merge-patch+json", body,
                             "PartialObjectMetadata;g=meta.k8s.io;v=v1"};
    int r = kube_must(k, &q, &said, err);
    if (r == 0) {
        fprintf(stderr, "durward-kubernetes: node %s is %s\n", node, ready ? "ready" : "not ready");
        kube_mirror_put(nodes, said);
    }
    json_decref(said);
    json_decref(body);
    return r;
}

enum { DAEMONSET, PODS, NODES, MIRRORS };

/* One that fails keeps no other from its label. */
static int label_all(const struct kube *k, struct kube_mirror *const m[MIRRORS], struct err *err)
{
    const char *name = "", *uid = "";
    json_t *value;
    int r = 0;
    json_object_foreach((json_t *)(uintptr_t)kube_mirror_items(m[DAEMONSET]), name, value) uid =
        json_string_value(value);
    json_t *ready = kube_nodes_ready(kube_mirror_items(m[PODS]), uid);
    json_t *changed = kube_nodes_changed(kube_mirror_items(m[NODES]), ready);
    json_object_foreach(changed, name, value) r |=
        label(k, m[NODES], name, json_is_true(value), err);
    json_decref(changed);
    json_decref(ready);
    return r;
}

static int turn(const struct kube *k, struct kube_mirror *const m[MIRRORS], struct err *err)
{
    static const struct timespec settle = {0, SETTLE_MS * 1000000};
    for (int i = 0; i < MIRRORS; i++)
        if (kube_mirror_sync(m[i], k, err) < 0)
            return -1;
    if (label_all(k, m, err) < 0)
        return -1;
    if (kube_mirror_wait(m, MIRRORS, WATCH_S))
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &settle, NULL);
    return 0;
}

struct kube_nodes {
    char pods[PATH_MAX_BYTES], daemonset[PATH_MAX_BYTES];
    struct kube_mirror *mirrors[MIRRORS];
};

struct kube_nodes *kube_nodes_new(const char *daemonset, struct err *err)
{
    const char *slash = strchr(daemonset, '/');
    struct kube_nodes *n = slash ? calloc(1, sizeof *n) : NULL;
    if (n == NULL) {
        err_set(err, ERR_PARSE, "'%.100s' is not NAMESPACE/NAME", daemonset);
        return NULL;
    }
    snprintf(n->daemonset, sizeof n->daemonset,
             "/apis/apps/v1/namespaces/%.*s/daemonsets?fieldSelector=metadata.name%%3D%.253s",
             (int)(slash - daemonset), daemonset, slash + 1);
    snprintf(n->pods, sizeof n->pods, "/api/v1/namespaces/%.*s/pods?labelSelector=app%%3D%.63s",
             (int)(slash - daemonset), daemonset, slash + 1);
    const struct kube_mirror_of of[MIRRORS] = {
        [DAEMONSET] = {n->daemonset, keep_uid, .names_only = true, .wakes = true},
        [PODS] = {n->pods, kube_nodes_pod, .wakes = true},
        [NODES] = {"/api/v1/nodes", kube_nodes_node, .names_only = true, .wakes = true},
    };
    bool bad = false;
    for (int i = 0; i < MIRRORS; i++) {
        n->mirrors[i] = kube_mirror_new(&of[i]);
        bad = bad || n->mirrors[i] == NULL;
    }
    if (!bad)
        return n;
    kube_nodes_free(n);
    err_set(err, ERR_INTERNAL, "out of memory");
    return NULL;
}

void kube_nodes_free(struct kube_nodes *n)
{
    for (int i = 0; n && i < MIRRORS; i++)
        kube_mirror_free(n->mirrors[i]);
    free(n);
}

int kube_nodes_turn(struct kube_nodes *n, const struct kube *k, struct err *err)
{
    return turn(k, n->mirrors, err);
}
