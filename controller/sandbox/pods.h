/* Pods of a Kubernetes node, as managed sandboxes that somebody else makes: the CNI plugin asks on
 * the node's socket (controller/proto/pod.h), the configuration says which policy a namespace has,
 * and the builder opens a pod's listeners. What is known of a pod is in its row, so it is given its
 * listeners again whenever they ended: with the daemon, the builder, or its keeper. Until then the
 * pod has no way out.
 *
 * json_t `pod` of a managed sandbox: { netns, container, uid, namespace, name }, texts as in struct
 * pod_request. */
#ifndef DURWARD_PODS_H
#define DURWARD_PODS_H

#include <jansson.h>

#include "controller_internal.h"
#include "sandbox_spec.h"

struct pods;

/* Takes over the listening socket; -1: this daemon has no node's pods. */
struct pods *pods_new(struct controller *c, int fd, struct err *err);
void pods_free(struct pods *p); /* NULL is fine */

/* What the builder is told of one. */
void pods_spec(const json_t *pod, struct sandbox_spec *ret);
/* The sandbox of a pod is STOPPED: it is begun again, or its row goes with the pod. */
void pods_ended(struct pods *p, struct managed_sandbox *r);
/* The configuration is another one: pods whose namespace has another policy now begin again by
 * that, and one whose namespace has none ends without a way out. */
void pods_reloaded(struct pods *p);
/* W_POD_INBOUND of a keeper. */
int pods_said(struct pods *p, struct sandbox *s, struct msg *m);

#endif
