/* The network of a local sandbox: a user namespace U1 that owns a network namespace with nothing
 * but lo, in which every address is local, and the sockets on which all that is sent there arrives.
 * The sandbox proper gets a user namespace below U1 and so never a capability over this network. */
#ifndef DURWARD_NETNS_H
#define DURWARD_NETNS_H

#include "build.h"
#include "err.h"
#include "ipc_msg.h"

enum {
    NETNS_PORT_CATCH_ALL = 901, /* below 1024, so no dev server misses it: a sandbox cannot bind
                                   there, and root of containers inside finds it taken */
    NETNS_PORT_DNS = 53,
};

struct netns_listener {
    enum listener_kind kind;
    uint16_t port; /* 0: every port */
    int fd;
};

struct netns_listeners {
    struct netns_listener at[IPC_FDS_MAX];
    unsigned n;
    bool filtered;     /* nf_tables serves: one listener takes all TCP, the rest is logged */
    char why_not[256]; /* else the reason */
};

/* Enter new user, network and mount namespaces, uid and gid mapped to themselves. The error text
 * says what the host has to change. */
int netns_enter(uid_t uid, gid_t gid, struct err *err);
/* Configure the namespace and open its sockets. Without nf_tables the TCP listeners are on 80, 443
 * and the given ports, and nothing is logged. On failure nothing is left open. */
int netns_listen(struct netns_listeners *l, const uint16_t *ports, unsigned nports,
                 struct err *err);
/* The same in the namespace of a pod of this address (pod_link.h), where it is done again when the
 * daemon was started anew. Without nf_tables it fails. */
int netns_listen_pod(struct netns_listeners *l, const unsigned char pod[4], struct err *err);
void netns_close(struct netns_listeners *l);

#endif
