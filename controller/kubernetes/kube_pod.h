/* What the API server says of a pod, for the CNI plugin of this node: the pod itself is not asked,
 * so that nothing in it chooses its policy. */
#ifndef DURWARD_KUBE_POD_H
#define DURWARD_KUBE_POD_H

#include <jansson.h>

#include "err.h"
#include "pod.h"

struct kube;

/* Of a Pod object, which must be the one with this uid. pod_facts_done in either case. */
int kube_pod_facts(const json_t *pod, const char *uid, struct pod_facts *ret, struct err *err);

/* The Event that says what a pod is bound to. node: this one's name. A new reference, or NULL. */
json_t *kube_pod_event(const char *ns, const char *name, const char *uid, const char *what,
                       const char *node);

/* kube_pods.c: listens on a unix socket that only its owner and root open, answers W_POD_ASK and
 * makes events of W_POD_BOUND until something fails, in several processes: one that ends raises
 * SIGCHLD here. -1 with err. */
int kube_pods(const struct kube *k, const char *path, const char *node, struct err *err);

#endif
