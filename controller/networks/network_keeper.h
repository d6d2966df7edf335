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

/* A connection to it: its socket is in a folder that is root's alone (network_folder.h). -1: there
 * is none. */
int network_keeper_find(void);
/* The same, and where there is none it begins. -1 with err. */
int network_keeper_reach(struct err *err);

#endif
