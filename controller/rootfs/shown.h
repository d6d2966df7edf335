/* What of the host's /etc and /var a sandbox without an image sees, read-only: directories that
 * programs of the host's /usr do not work without. Each is named; nothing else is seen. */
#ifndef DURWARD_SHOWN_H
#define DURWARD_SHOWN_H

#include "buf.h"
#include "err.h"

/* root: the sandbox's root, its places still writable. Those that the host has are mounted on it.
 * notes gets a line for each file that is left out. */
int shown_attach(int root, struct buf *notes, struct err *err);

#endif
