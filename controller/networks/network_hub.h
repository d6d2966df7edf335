/* A network of containers: a bridge in a network namespace of its own, in which every other address
 * is local, and a process there that connects containers to it and makes sockets in it. It ends
 * when the keeper closes its channel, and with it all that it made. */
#ifndef DURWARD_NETWORK_HUB_H
#define DURWARD_NETWORK_HUB_H

#include "network_request.h"

struct network_hub {
    int fd; /* the channel; -1: none, or its process is gone */
};

enum network_socket {
    NETWORK_SOCKET_LISTENER, /* TCP, at a port of all addresses */
    NETWORK_SOCKET_DNS,      /* UDP, the same; says where each datagram went */
    NETWORK_SOCKET_STREAM,   /* TCP, and not yet connected */
    NETWORK_SOCKET_DATAGRAM, /* UDP, the same */
};

int network_hub_begin(struct network_hub *hub, const struct network_part *part, struct err *err);
void network_hub_end(struct network_hub *hub);
/* A socket in the network, non-blocking. -1: errno is the kernel's. */
int network_hub_socket(struct network_hub *hub, enum network_socket kind, uint16_t port);
/* Give the namespace netns (borrowed) its interface. On failure it has none. */
int network_hub_attach(struct network_hub *hub, const struct network_part *part, int netns,
                       struct err *err);
/* Take it away, if it is there. */
void network_hub_detach(struct network_hub *hub, const struct network_part *part);

#endif
