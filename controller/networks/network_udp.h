/* Mapped ports of UDP: each client of a port has a socket of its own towards the container. */
#ifndef DURWARD_NETWORK_UDP_H
#define DURWARD_NETWORK_UDP_H

#include <netinet/in.h>

#include "network_hub.h"

enum { NETWORK_FLOWS_MAX = 32 }; /* of a port: the one that was silent longest makes room */

struct network_udp;

/* Takes fd, on which clients send; hub outlives it. NULL: memory is out (fd is closed). */
struct network_udp *network_udp_open(int fd, struct network_hub *hub, const unsigned char ip[4],
                                     uint16_t port);
void network_udp_close(struct network_udp *u); /* NULL is fine */

#endif
