/* A pod's interface, put out of the pod's reach.
 *
 *   the node ── eth0 ─┤ outer namespace ├─ dwpod ══ eth0 ─┤ the pod's namespace ├─ lo ── gate
 *
 * What the container runtime's plugins made for the pod stays where they made it, with its address
 * and routes. That is the outer namespace, for the pod gets another one (controller/cni): for an
 * interface that is moved the kernel waits long. A second pair joins the two. In the pod only
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

/* In an outer namespace, which is the process's: it is this pod's. Kept by the kernel in that
 * namespace, where nobody but the node's root comes. */
int pod_link_tie(int pod, struct err *err);
/* -1 with err: this outer namespace is not that pod's. */
int pod_link_tied(int pod, int outer, struct err *err);
/* Which interface the pod has, and of which address. -1 with err: none, or more than one. */
int pod_link_find(int outer, struct pod_link *ret, struct err *err);
/* Make it as above; what is so already stays. The rules must stand before. */
int pod_link_make(int pod, int outer, const struct pod_link *link, struct err *err);
/* Take away what pod_link_make has made, and switch the interface off: the plugins that made it are
 * to find it when they take it down. Where nothing was made all stays as it is. */
int pod_link_undo(int outer, struct err *err);
/* Nothing in either namespace but what pod_link_make says. */
int pod_link_check(int pod, int outer, const struct pod_link *link, struct err *err);

#endif
