/* Which nodes have a gate for a pod: those where the DaemonSet's pod is ready. */
#ifndef DURWARD_KUBE_NODES_H
#define DURWARD_KUBE_NODES_H

#include <jansson.h>

#include "err.h"

struct kube;
struct kube_nodes;

/* What is kept of a pod of the DaemonSet, and of a node: whether it has the label. */
json_t *kube_nodes_pod(const json_t *pod);
json_t *kube_nodes_node(const json_t *node);
/* { NODE: true } of those kept pods that the DaemonSet with this uid has made. */
json_t *kube_nodes_ready(const json_t *pods, const char *uid);
/* { NODE: whether it is ready } of those kept nodes whose label says something else. */
json_t *kube_nodes_changed(const json_t *nodes, const json_t *ready);

/* daemonset: NAMESPACE/NAME, which is its pods' label `app`. */
struct kube_nodes *kube_nodes_new(const char *daemonset, struct err *err);
void kube_nodes_free(struct kube_nodes *n);
/* Labels what has to be, and waits until a pod of the DaemonSet or a label has changed. */
int kube_nodes_turn(struct kube_nodes *n, const struct kube *k, struct err *err);

#endif
