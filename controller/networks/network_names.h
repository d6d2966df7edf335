/* DNS in a network of containers: names of its own are answered here, and all others by the
 * sandbox's resolver, which is the gate's. */
#ifndef DURWARD_NETWORK_NAMES_H
#define DURWARD_NETWORK_NAMES_H

#include "network_dns.h"

enum { NETWORK_QUERIES_MAX = 128 }; /* of a network, not yet answered */

struct network_names;

/* Who has this name, for the container that asks from that address: how many addresses there are,
 * or -1 where the sandbox's resolver is to be asked. name NULL: the question is not read here. */
typedef int network_names_fn(void *arg, const unsigned char from[4], const char *name,
                             unsigned char ips[NETWORK_DNS_ANSWERS][4]);

/* Takes fd, a socket in the network. NULL: it cannot be done (fd is closed). */
struct network_names *network_names_open(int fd, network_names_fn *fn, void *arg);
void network_names_close(struct network_names *s); /* NULL is fine */

#endif
