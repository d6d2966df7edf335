/* The mapped ports of one container: listeners in the sandbox's network. */
#ifndef DURWARD_NETWORK_PORTS_H
#define DURWARD_NETWORK_PORTS_H

#include "network_hub.h"

struct network_ports;

/* Where the container is now: false where it has no network any more. */
typedef bool network_place_fn(void *arg, struct network_hub **hub, unsigned char ip[4]);

/* Listens on each of these. NULL with err: on none. */
struct network_ports *network_ports_open(const struct network_port *ports, unsigned n,
                                         network_place_fn *fn, void *arg, struct err *err);
/* The container is in another place: what was begun to the one before ends. */
void network_ports_moved(struct network_ports *s);
void network_ports_close(struct network_ports *s); /* NULL is fine */

#endif
