/* Carries a connection of a guest's port, until both ends have ended. */
#ifndef DURWARD_CONNECTION_RELAY_H
#define DURWARD_CONNECTION_RELAY_H

/* In a child of the caller's and in a process group of its own, as the caller may be killed once
 * the connection is known. a and b are stream sockets; other is closed there. -1: errno. */
int connection_relay(int a, int b, int other);

#endif
