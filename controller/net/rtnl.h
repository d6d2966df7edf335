/* What a new network namespace needs of rtnetlink, without an `ip` program. */
#ifndef DURWARD_RTNL_H
#define DURWARD_RTNL_H

#include <stdint.h>

#include "err.h"

struct nlmsghdr;

enum { RTNL_ROOM = 512 }; /* bytes of a request */

/* Begin a request in the caller's room: of a type (RTM_...), and of an interface (RTM_NEWLINK and
 * RTM_DELLINK; index 0: one that is to be made). */
struct nlmsghdr *rtnl_request(char room[RTNL_ROOM], uint16_t type, uint16_t flags);
struct nlmsghdr *rtnl_link_request(char room[RTNL_ROOM], uint16_t type, uint16_t flags, int index);
/* Send one request on a socket of its own and read the verdict (errno is the kernel's). */
int rtnl_transact(struct nlmsghdr *h, struct err *err);
/* The same; `what` begins the text of an error. */
int rtnl_send(struct nlmsghdr *h, const char *what, struct err *err);
/* The same for one that is answered by more than that: fn, if not NULL, has it looked at. */
int rtnl_ask(struct nlmsghdr *h, int (*fn)(const struct nlmsghdr *h, void *arg), void *arg,
             struct err *err);
/* Have each message of a dump (RTM_GETLINK, ...) looked at; fn returns MNL_CB_OK. */
typedef int (*rtnl_fn)(const struct nlmsghdr *h, void *arg);
int rtnl_dump(uint16_t type, unsigned char family, rtnl_fn fn, void *arg, struct err *err);

/* Set the loopback interface up. */
int rtnl_loopback_up(struct err *err);
/* Make every address of the family (AF_INET, AF_INET6) one of this namespace's own: `local
 * 0.0.0.0/0 dev lo` or `local ::/0 dev lo`. */
int rtnl_all_local(int family, struct err *err);
/* Give lo an address of its own, 4 or 16 bytes, as a host prefix. Programs that look at interface
 * addresses before they ask DNS (AI_ADDRCONFIG) would else think that there is no network. */
int rtnl_address(int family, const unsigned char *ip, struct err *err);

#endif
