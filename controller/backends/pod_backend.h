/* A pod of a Kubernetes node as a backend: the container runtime makes it, the launcher gives it
 * its listeners (pod.c) and stays as its keeper (pod_keeper.c). */
#ifndef DURWARD_POD_BACKEND_H
#define DURWARD_POD_BACKEND_H

#include "backend.h"
#include "launcher_internal.h"
#include "pod_link.h"

/* What a keeper is left with. */
struct pod_keeper {
    int inbound, refused; /* logs of the outer namespace (nft_pod.h) */
    int signals;          /* a signalfd of SIGTERM */
};

/* In the place of durward-init: says that the pod is as it should be, answers what a controller
 * asks of it, and tells who connected. Gives up all rights first. Returns when the pod is not to
 * be served any more, -1 with err when it could not begin. */
int pod_keep(const struct pod_keeper *k, struct err *err);

#endif
