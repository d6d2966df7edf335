/* The packet rules of the namespace before a pod (pod_link.h), out of the pod's reach.
 *
 *   prerouting (mangle)   TCP from a range that may connect, to the pod: marked, so routed to it;
 *                         but not to the ports that Durward has inside
 *   forward               marked: passes, the first packet of a connection is told
 * (NFT_POD_INBOUND) from the pod: answers to such connections pass; the rest is told
 *                         (NFT_POD_REFUSED) and refused
 *   input                 nothing: this namespace has no services
 *
 * Whether a packet is an answer is what the kernel keeps of connections *here*; in the pod nobody
 * can make or change that. */
#ifndef DURWARD_NFT_POD_H
#define DURWARD_NFT_POD_H

#include "cidr.h"
#include "pod_link.h"

enum { NFT_POD_MARK = 0xd0d, NFT_POD_INBOUND = 2, NFT_POD_REFUSED = 3 };

/* In the caller's namespace, in place of what was there. Ranges are of IPv4. */
int nft_pod_install(const struct pod_link *link, const struct cidr *ranges, unsigned n_ranges,
                    struct err *err);

#endif
