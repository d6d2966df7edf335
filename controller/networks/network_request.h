/* What podman asks of its network backend for one container: the JSON text that it writes to
 * `netavark setup` and `netavark teardown`, as a struct. Whoever writes it is in the sandbox. */
#ifndef DURWARD_NETWORK_REQUEST_H
#define DURWARD_NETWORK_REQUEST_H

#include <net/if.h>
#include <netinet/in.h>

#include "err.h"
#include "slice.h"

enum {
    NETWORK_REQUEST_MAX = 128 * 1024, /* bytes of the text */
    NETWORK_NAME_MAX = 255,
    NETWORK_PARTS_MAX = 8, /* networks of one container */
    NETWORK_PORTS_MAX = 256,
    NETWORK_ALIASES_MAX = 16, /* in one network */
    NETWORK_MAC = 6,
};

struct network_port {
    char host_ip[INET6_ADDRSTRLEN]; /* "": all */
    uint16_t host, container;
    bool udp;
};

/* A container's part in one network, and that network. */
struct network_part {
    char name[NETWORK_NAME_MAX + 1]; /* of the network, as the container's owner calls it */
    char interface[IFNAMSIZ];        /* inside the container */
    unsigned char ip[4], mac[NETWORK_MAC];
    char aliases[NETWORK_ALIASES_MAX][NETWORK_NAME_MAX + 1];
    unsigned naliases;
    /* of the network */
    char bridge[IFNAMSIZ];
    unsigned char gateway[4]; /* all 0: it has none */
    unsigned bits;
    bool internal; /* nothing leads out of it */
    bool names;    /* containers find one another by their names */
};

struct network_request {
    char id[NETWORK_NAME_MAX + 1], name[NETWORK_NAME_MAX + 1];
    struct network_port ports[NETWORK_PORTS_MAX];
    unsigned nports;
    struct network_part parts[NETWORK_PARTS_MAX];
    unsigned nparts;
};

/* *ret is large: not for a stack that is small. -1 with err, in words for podman's user. */
int network_request_parse(struct slice text, struct network_request *ret, struct err *err);
bool network_part_has_gateway(const struct network_part *p);
/* What podman wants to know of a container that has its networks. Returns -1 if it does not fit. */
int network_request_status(const struct network_request *r, char *to, size_t size);

#endif
