/* A pod's interface, put out of the pod's reach.
 *
 *   the node ── eth0 ─┤ outer namespace ├─ dwpod ══ eth0 ─┤ the pod's namespace ├─ lo ── gate
 *
 * What the container runtime's plugins made for the pod goes, with its address and routes, into a
 * namespace of its own, the outer one. A second pair of interfaces joins the two. In the pod only
 * packets *from* its address, answers to who connected to it, are routed to that pair; all else is
 * local (rtnl_all_local) and so the gate's. The outer namespace passes on what others began, and
 * answers to it (nft_pod.h), so that routes, raw sockets or CAP_NET_ADMIN inside gain nothing. */
#ifndef DURWARD_POD_LINK_H
#define DURWARD_POD_LINK_H

#include <net/if.h>

#include "err.h"

#define POD_LINK "dwpod" /* our interface in the outer namespace */

struct pod_link {
    char name[IFNAMSIZ]; /* of the interface, in both namespaces */
    unsigned char ip[4]; /* the pod's */
};

/* All of these leave the process in the one or the other namespace. Both are descriptors. */

/* In a new outer namespace, which is the process's: it is this pod's. Kept by the kernel in that
 * namespace, where nobody but the node's root comes. */
int pod_link_tie(int pod, struct err *err);
/* -1 with err: this outer namespace is not that pod's. */
int pod_link_tied(int pod, int outer, struct err *err);
/* Which interface the pod has, and of which address: in the pod, or moved already. -1 with err:
 * none, or more than one. */
int pod_link_find(int pod, int outer, struct pod_link *ret, struct err *err);
/* Make it as above; what is so already stays. The rules must stand before. */
int pod_link_make(int pod, int outer, const struct pod_link *link, struct err *err);
/* Give the interface back to the pod, with its address, switched off: so that the plugins that made
 * it find it when they take it down. */
int pod_link_undo(int pod, int outer, struct err *err);
/* Nothing in either namespace but what pod_link_make says. */
int pod_link_check(int pod, int outer, const struct pod_link *link, struct err *err);

#endif
