/* Connections carried between a network of containers and the sandbox's own, both ways and with the
 * end of each way. */
#ifndef DURWARD_NETWORK_RELAY_H
#define DURWARD_NETWORK_RELAY_H

#include <netinet/in.h>

#include "compiler.h"

enum { NETWORK_RELAYS_MAX = 1024 };

/* At once there are at most NETWORK_RELAYS_MAX, and at most n. */
void network_relay_bound(uint64_t n);
/* Connect `to`, a fresh socket, to that address, and carry what comes. Takes both descriptors, of
 * which `to` may be -1; where it cannot be done, the one who asked is told by a reset. */
void network_relay_open(int from, int to, const struct sockaddr_in *address);

#endif
