/* A listening socket of the gate: accepts while the session cap allows, pauses when descriptors or
 * memory run out, never ends the process. */
#ifndef DURWARD_LISTENER_H
#define DURWARD_LISTENER_H

#include "session.h"

struct listener;

/* ENTRY_TRANSPARENT: the original destination is the socket's own address (AnyIP, TPROXY). name: of
 * ENTRY_TLS, copied; else NULL. Takes the non-blocking fd. NULL when memory is out. */
struct listener *listener_new(struct gate *g, int fd, enum session_entry entry, const char *name);
void listener_free(struct listener *l); /* closes the socket; sessions go on */
unsigned listener_sessions(const struct listener *l);

#endif
