/* The process that keeps the networks of containers: begun with the first container, ended with the
 * last, an ordinary process of the sandbox's. */
#ifndef DURWARD_NETWORK_KEEPER_H
#define DURWARD_NETWORK_KEEPER_H

#include "network_request.h"

enum {
    NETWORK_KEEPER_NETWORKS = 32,
    NETWORK_KEEPER_CONTAINERS = 128,
    NETWORK_KEEPER_ANSWER = 32 * 1024, /* bytes */
};

/* What one is asked is a datagram: this, and podman's text; for SETUP with the descriptor of the
 * container's network namespace. */
enum { NETWORK_KEEPER_SETUP = 's', NETWORK_KEEPER_TEARDOWN = 't' };
/* It answers with one: one of these, and what podman is to read, or why not. */
enum { NETWORK_KEEPER_DONE = '0', NETWORK_KEEPER_FAILED = '1' };

/* Its socket, an abstract one of the sandbox's network. 0, or -1: another one has it (EADDRINUSE),
 * or errno. */
int network_keeper_listen(void);
/* Connected to whoever listens there. -1: nobody does. */
int network_keeper_connect(void);
/* Becomes that process, in a child. 0 or -1. Takes the listener. */
int network_keeper_start(int listener);

#endif
