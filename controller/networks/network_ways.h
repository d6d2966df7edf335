/* The ways out of a network of containers: at some ports every address is ours in it, and what is
 * sent there goes on to the same place in the sandbox's network, where the gate takes it. At its
 * gateway, and at an address of their own, the sandbox's services answer. */
#ifndef DURWARD_NETWORK_WAYS_H
#define DURWARD_NETWORK_WAYS_H

#include "network_hub.h"

enum { NETWORK_WAYS_MAX = 256, NETWORK_SERVICES_MAX = 64 };

struct network_ways;

/* hub outlives it. NULL with err. */
struct network_ways *network_ways_open(struct network_hub *hub, const unsigned char gateway[4],
                                       struct err *err);
/* Programs of the sandbox have begun to listen, or ended. */
void network_ways_refresh(struct network_ways *s);
void network_ways_close(struct network_ways *s); /* NULL is fine */

#endif
