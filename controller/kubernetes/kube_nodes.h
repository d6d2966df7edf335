/* Which nodes have a gate for a pod: those where the DaemonSet's pod is ready. */
#ifndef DURWARD_KUBE_NODES_H
#define DURWARD_KUBE_NODES_H

#include <jansson.h>

#include "err.h"

struct kube;

/* { NODE: true } of those pods that the DaemonSet with this uid has made. */
json_t *kube_nodes_ready(const json_t *pods, const char *uid);
/* { NODE: whether it is ready } of those nodes whose label says something else. */
json_t *kube_nodes_changed(const json_t *nodes, const json_t *ready);
/* Lists, labels, and waits until a pod of the DaemonSet (NS/NAME, which is its pods' label `app`)
 * has changed, or some minutes. */
int kube_nodes_turn(const struct kube *k, const char *daemonset, struct err *err);

#endif
