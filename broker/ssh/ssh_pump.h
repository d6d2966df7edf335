/* A session of libssh on our event loop. libssh polls by itself; here it only ever does so without
 * waiting, when its socket has something or room. */
#ifndef DURWARD_SSH_PUMP_H
#define DURWARD_SSH_PUMP_H

#include "compiler.h"

#include <libssh/libssh.h>

struct event_base;
struct ssh_pump;

/* What both ends agree to speak: nothing with SHA-1, CBC, or a Diffie-Hellman group that a peer
 * chooses. */
extern const char ssh_pump_kex[], ssh_pump_ciphers[], ssh_pump_macs[];

/* turn runs from the loop when the socket has something or room, ssh_pump_soon was called, or the
 * time is over (*late then). It may free the pump. NULL: out of memory. */
struct ssh_pump *ssh_pump_new(struct event_base *base, ssh_session session, int fd,
                              void (*turn)(void *arg, bool late), void *arg);
/* Reads and writes what can be now; callbacks of the session run. -1: the connection is over. */
int ssh_pump_run(struct ssh_pump *p);
void ssh_pump_soon(struct ssh_pump *p);
void ssh_pump_deadline(struct ssh_pump *p, unsigned seconds); /* 0: none */
/* What was written has not left yet: whoever has more waits. */
bool ssh_pump_full(const struct ssh_pump *p);
/* Its session stays the caller's, to be freed after it. NULL is fine. */
void ssh_pump_free(struct ssh_pump *p);

#endif
