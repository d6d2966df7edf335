/* The requests of rtnetlink that a pod's interfaces need, each sent in the caller's namespace. */
#ifndef DURWARD_POD_REQUEST_H
#define DURWARD_POD_REQUEST_H

#include <stdint.h>

#include "err.h"

enum { POD_REQUEST_MAC = 6 };

/* Switch an interface on or off. */
int pod_request_flags(int index, bool up, struct err *err);
/* Forward what comes in by it; ours: also what comes from an address of this namespace. */
int pod_request_forward(int index, bool ours, struct err *err);
/* The number that this namespace has for another, and sets it. -1 with err; *ret is -1 where there
 * is none. */
int pod_request_number(int netns, int *ret, struct err *err);
int pod_request_set_number(int netns, int number, struct err *err);
int pod_request_delete(int index, struct err *err);
/* A pair: `name` here, `peer` with this address of hardware in the namespace `netns`. */
int pod_request_pair(const char *name, const char *peer, const unsigned char mac[POD_REQUEST_MAC],
                     uint32_t mtu, int netns, struct err *err);
int pod_request_address(int index, const unsigned char ip[4], unsigned bits, bool link,
                        struct err *err);
/* To ip/bits by this interface, and through gateway (NULL: it is on the link). */
int pod_request_route(int index, unsigned table, const unsigned char ip[4], unsigned bits,
                      const unsigned char *gateway, struct err *err);
/* It is this namespace's own, also for who is sent to that table. */
int pod_request_local(unsigned table, const unsigned char ip[4], struct err *err);
/* Take back rtnl_all_local(AF_INET). None is fine. */
int pod_request_not_all_local(struct err *err);
int pod_request_no_ipv6(int index, struct err *err);
/* Which table packets with a mark (not 0), or from an address (not NULL), are looked up in.
 * Neither: all. One that is there already is fine. */
int pod_request_rule(uint32_t priority, unsigned table, uint32_t mark, const unsigned char *from,
                     struct err *err);
/* The rule for the table `local` that is there from the start. None is fine. */
int pod_request_local_last(struct err *err);

#endif
