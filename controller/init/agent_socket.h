/* The socket of the SSH agent inside: each connection to it is carried to our gate, which hands it
 * to the sandbox's broker. Nothing that goes over it is read here. */
#ifndef DURWARD_AGENT_SOCKET_H
#define DURWARD_AGENT_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

/* A listening socket at SSH_AGENT_SOCKET; -1: there can be none. */
int agent_socket_listen(void);
/* A connection waits: a child of ours carries it. others: descriptors that the child closes. */
void agent_socket_accept(int listener, int control);
/* A child has ended. */
void agent_socket_reaped(pid_t pid);

#endif
