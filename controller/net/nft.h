/* The packet rules of a sandbox's network namespace, put there over netlink.
 *
 *   prerouting (mangle)   loopback destinations and TCP 53: as they are
 *                         any other TCP: to the transparent listener on `port`
 *   output (filter)       the listener's own port on loopback: reset
 *                         loopback, TCP, UDP 53 (both directions), ICMP errors: pass
 *                         all else: NFLOG `group`, then rejected (administratively prohibited)
 *
 * Every address is local there (rtnl.h), so packets leave by lo and enter by lo and prerouting sees
 * them. The rules are for completeness and for the log: without them nothing leaves either. */
#ifndef DURWARD_NFT_H
#define DURWARD_NFT_H

#include "err.h"

/* Installs them in the caller's network namespace and binds a socket to the group. Returns that
 * socket (NETLINK_NETFILTER, non-blocking, one message a packet, its first 128 bytes), or -1 with
 * err: nf_tables cannot be used here; what was installed in part is removed as a whole. pod: the
 * IPv4 address of the pod that the namespace is of, which is treated as loopback is, and where
 * rules of before are replaced; NULL: of a sandbox of ours, whose namespace is new and has none. */
int nft_install(uint16_t port, uint16_t group, const unsigned char *pod, struct err *err);

#endif
