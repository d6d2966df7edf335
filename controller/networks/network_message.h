/* A message and at most one descriptor, over a socket of datagrams. */
#ifndef DURWARD_NETWORK_MESSAGE_H
#define DURWARD_NETWORK_MESSAGE_H

#include <sys/types.h>

#include "compiler.h"

/* descriptor -1: none. 0 or -1. */
int network_message_send(int fd, const void *p, size_t n, int descriptor);
/* Its length, or -1. *descriptor is -1 where none came; of several the first is kept, and the
 * others are closed. */
ssize_t network_message_receive(int fd, void *p, size_t size, int *descriptor);

#endif
