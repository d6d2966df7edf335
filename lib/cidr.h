/* A range of addresses: "192.0.2.0/24", "2001:db8::/32". */
#ifndef DURWARD_CIDR_H
#define DURWARD_CIDR_H

#include "authority.h"

struct cidr {
    enum host_kind kind; /* HOST_IPV4 or HOST_IPV6 */
    unsigned bits;
    unsigned char ip[16]; /* IPv4: first four */
};

/* The canonical address, "/", and its prefix length in plain digits; bits beyond the prefix must be
 * zero. 0 or -1. */
int cidr_parse(struct cidr *ret, struct slice text);
/* A literal address within it; a name never is. */
bool cidr_contains(const struct cidr *c, const struct authority *a);

#endif
