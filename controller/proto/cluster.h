/* Sandboxes that are pods of a Kubernetes cluster (BACKEND_KUBERNETES).
 *
 * The launcher makes no network for one: its gate is that of the node that runs the pod
 * (controller/cni). It becomes durward-kubernetes, which has the cluster make the pod, stands for
 * its process 1 on the socket that durward-init has in other sandboxes, and takes the pod down. */
#ifndef DURWARD_CLUSTER_H
#define DURWARD_CLUSTER_H

#include "ipc_msg.h"

enum {
    CLUSTER_API_MAX = 300, /* HOST[:PORT] */
    CLUSTER_PATH_MAX = 255,
    CLUSTER_IMAGE_MAX = 255,
    CLUSTER_NAMESPACE_MAX = 63,
};

/* The cluster as the configuration has it. The builder is told of it once, with W_INIT, and by
 * nobody else: api:str ("": there is none) ca:str token:str image:str. */
struct cluster_place {
    char api[CLUSTER_API_MAX + 1];
    char ca[CLUSTER_PATH_MAX + 1], token[CLUSTER_PATH_MAX + 1]; /* files */
    char image[CLUSTER_IMAGE_MAX + 1]; /* one that has durward-init where Durward's own has it */
};
void cluster_place_put(const struct cluster_place *p, struct msg *m);
int cluster_place_get(struct cluster_place *p, struct msg *m) WUNUSED;

/* Where durward-kubernetes has its descriptors, beside 0 to 2, and its last word. */
enum cluster_fd {
    CLUSTER_INIT = 3, /* durward-init's end of its socket */
    CLUSTER_PLAN,     /* what pod, as JSON: controller/backends/cluster.c */
    CLUSTER_INFO,     /* takes {"child-pid": N} */
    CLUSTER_ERRORS,   /* takes what is wrong */
    CLUSTER_CHANNEL,  /* the builder: its end is the pod's */
    CLUSTER_LOCKS,    /* a directory of one locked file for each pod whose launcher lives */
    CLUSTER_FDS
};
#define CLUSTER_PROGRAM "durward-kubernetes"
#define CLUSTER_WORD    "sandbox"

#define CLUSTER_CONTAINER "sandbox" /* the pod's container */

#endif
