/* What a connection to port 22 is answered: our version line and one
 * SSH_MSG_DISCONNECT (RFC 4253 4.2, 6, 11.1) whose text says what to do. */
#ifndef DURWARD_SSH_REFUSAL_H
#define DURWARD_SSH_REFUSAL_H

#include "io.h"

void ssh_refusal_write(struct io *io);

#endif
