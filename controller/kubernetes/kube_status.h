/* What PolicyBindings are of, for their status: the pods that the API server has, sorted as a node
 * sorts them. */
#ifndef DURWARD_KUBE_STATUS_H
#define DURWARD_KUBE_STATUS_H

#include <jansson.h>

enum {
    KUBE_STATUS_SOME = 20,    /* pods that a status names */
    KUBE_STATUS_LISTED = 500, /* pods of a namespace that are looked at */
};

/* The namespaces that accepted bindings name, as an array without repetition. */
json_t *kube_status_namespaces(const json_t *bindings, const json_t *verdicts);

/* { NAME: { pods, nodes, refused, some: [{ namespace, name, node }] } } of each accepted binding.
 * pods: lists' items, of one namespace after the other. refused: pods that another binding gives
 * another policy. NULL: out of memory. */
json_t *kube_status_count(const json_t *bindings, const json_t *verdicts, const json_t *pods);

#endif
