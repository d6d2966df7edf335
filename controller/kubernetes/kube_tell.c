/* Writes into each object's status what the compiler says of it and which pods it is of. What is
 * written every node hears, for the nodes watch these objects: so a status of which only a count
 * has changed waits its turn, and a round writes a bounded number of those. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kube_client.h"
#include "kube_mirror.h"
#include "kube_objects.h"
#include "kube_status.h"

enum { COUNTS_MAX = 32 }; /* statuses that say another count and nothing else */

/* ---- objects ---- */

json_t *kube_tell_keep(const json_t *object)
{
    const json_t *about = json_object_get(object, "metadata");
    return json_pack("{s:{s:O*, s:O*, s:O*}, s:O*, s:O*}", "metadata", "name",
                     json_object_get(about, "name"), "creationTimestamp",
                     json_object_get(about, "creationTimestamp"), "generation",
                     json_object_get(about, "generation"), "spec", json_object_get(object, "spec"),
                     "status", json_object_get(object, "status"));
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

static bool says(const json_t *object, const json_t *status)
{
    const json_t *own = json_object_get(object, "status");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)status, key, value)
    {
        if (!json_equal(json_object_get(own, key), value))
            return false;
    }
    return true;
}

static int write_status(struct kube_mirror *of, const struct kube *k, const char *plural,
                        const char *name, json_t *status, struct err *err)
{
    char path[512];
    json_t *body = json_pack("{s:O}", "status", status), *said = NULL;
    snprintf(path, sizeof path, KUBE_API "/%s/%.253s/status", plural, name);
    struct kube_request q = {"PATCH", path, "application/merge-patch+json", body, NULL};
    int r = kube_must(k, &q, &said, err);
    if (r == 0)
        kube_mirror_put(of, said);
    json_decref(said);
    json_decref(body);
    return r;
}

/* 1: it says another count, and there is no room for that in this round. */
static int tell(struct kube_teller *t, const struct kube *k, const json_t *verdict,
                json_t *const counts[2], struct err *err)
{
    const char *kind = json_string_value(json_object_get(verdict, "kind"));
    const char *name = json_string_value(json_object_get(verdict, "name"));
    bool policy = kind && strcmp(kind, "Policy") == 0;
    struct kube_mirror *of = policy ? t->policies : t->bindings;
    const json_t *object = name ? json_object_get(kube_mirror_items(of), name) : NULL;
    json_t *status = object ? status_of(object, verdict, policy) : NULL;
    json_t *count = name ? json_object_get(counts[policy], name) : NULL;
    int r = 0;
    bool urgent = status && !says(object, status);
    if (status && count)
        json_object_update(status, count);
    if (status && !says(object, status)) {
        if (!urgent && t->room == 0)
            r = 1;
        else
            r = write_status(of, k, policy ? "policies" : "policybindings", name, status, err);
        t->room -= !urgent && r == 0;
    }
    json_decref(status);
    return r;
}

/* Each once, beginning behind the last one whose count found room. */
static int tell_each(struct kube_teller *t, const struct kube *k, const json_t *verdicts,
                     json_t *const counts[2], struct err *err)
{
    size_t n = json_array_size(verdicts), first = n ? t->next % n : 0, waits = n;
    struct timespec now;
    int bad = 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (t->filled == 0 || now.tv_sec - t->filled >= t->every) {
        t->filled = now.tv_sec;
        t->room = COUNTS_MAX;
    }
    for (size_t i = 0; i < n; i++) {
        int r = tell(t, k, json_array_get(verdicts, (first + i) % n), counts, err);
        bad |= r < 0;
        if (r > 0 && waits == n)
            waits = i;
    }
    t->next = waits < n ? first + waits : 0;
    return bad ? -1 : 0;
}

static void lose_all(struct kube_count *c, const json_t *bindings, const json_t *verdicts)
{
    json_t *namespaces = kube_status_namespaces(bindings, verdicts);
    const json_t *one;
    size_t i;
    json_array_foreach(namespaces, i, one) kube_count_lost(c, json_string_value(one));
    json_decref(namespaces);
}

int kube_tell_all(struct kube_teller *t, const struct kube *k, const struct kube_base *base,
                  struct err *err)
{
    json_t *policies = kube_mirror_list(t->policies), *bindings = kube_mirror_list(t->bindings);
    json_t *verdicts = json_array(), *counts[2];
    json_t *objects = kube_objects(base, policies, bindings, NULL, verdicts);
    struct kube_count *c = objects ? kube_count_new(bindings, verdicts) : NULL;
    int r = c ? 0 : err_set(err, ERR_INTERNAL, "out of memory");
    if (c) {
        if (t->pods_known)
            kube_count_kept(c, kube_mirror_items(t->pods));
        else
            lose_all(c, bindings, verdicts);
        kube_count_end(c, &counts[0], &counts[1]);
        r = tell_each(t, k, verdicts, counts, err);
    }
    kube_count_free(c);
    json_decref(objects);
    json_decref(verdicts);
    json_decref(policies);
    json_decref(bindings);
    return r;
}
