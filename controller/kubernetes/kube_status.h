/* What Policies and PolicyBindings are of, for their status: the pods that the API server has,
 * sorted as a node sorts them. */
#ifndef DURWARD_KUBE_STATUS_H
#define DURWARD_KUBE_STATUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

enum { KUBE_STATUS_SOME = 20 }; /* pods that a status names */

/* The namespaces that accepted bindings name, as an array without repetition. */
json_t *kube_status_namespaces(const json_t *bindings, const json_t *verdicts);

/* A count that goes on while pods are listed. NULL: out of memory. */
struct kube_count;
struct kube_count *kube_count_new(const json_t *bindings, const json_t *verdicts);
void kube_count_free(struct kube_count *c);
/* pods: items of a list. */
void kube_count_pods(struct kube_count *c, const json_t *pods);
/* Not all pods of this namespace are known: who is bound there, and the policies, get no count. */
void kube_count_lost(struct kube_count *c, const char *ns);
/* Of each accepted binding { NAME: { pods, nodes, refused, some: [{ namespace, name, node }] } };
 * of each policy { NAME: { bindings, pods, nodes } }. refused: pods that another binding gives
 * another policy. Both are the count's. */
void kube_count_end(struct kube_count *c, json_t **bindings, json_t **policies);

/* What is kept of a pod that has not ended, as one text: there may be hundreds of thousands. NULL:
 * it counts for nothing. */
json_t *kube_status_pod(const json_t *pod);
/* kept: { KEY: such a text }. */
void kube_count_kept(struct kube_count *c, const json_t *kept);

struct kube;
struct kube_base;
struct kube_mirror;
struct kube_teller {
    struct kube_mirror *policies, *bindings; /* kept by kube_tell_keep */
    struct kube_mirror *pods;                /* by kube_status_pod */
    bool pods_known;                         /* else no count is said */
    unsigned every; /* seconds in which a bounded number of counts is said */
    unsigned room;  /* of those that number leaves, */
    int64_t filled; /* and since when */
    size_t next;    /* whose counts come first */
};
/* kube_tell.c: counts, and tells each object what became of it. */
json_t *kube_tell_keep(const json_t *object);
int kube_tell_all(struct kube_teller *t, const struct kube *k, const struct kube_base *base,
                  struct err *err);

#endif
