/* A listening socket of the gate: accepts while the session cap allows, pauses when descriptors or
 * memory run out, never ends the process. */
#ifndef DURWARD_LISTENER_H
#define DURWARD_LISTENER_H

#include "session.h"

struct listener;

/* transparent: the original destination is the socket's own address (AnyIP, TPROXY). Takes the
 * non-blocking fd. NULL when memory is out. */
struct listener *listener_new(struct gate *g, int fd, bool transparent);
void listener_free(struct listener *l); /* closes the socket; sessions go on */
unsigned listener_sessions(const struct listener *l);

#endif
