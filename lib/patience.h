/* A daemon that was killed leaves roles that die a moment later, and hold until then what they had:
 * its sockets, ports and locks. Who starts in its place waits for that, and not for more. */
#ifndef DURWARD_PATIENCE_H
#define DURWARD_PATIENCE_H

#include <stdbool.h>

enum { PATIENCE_MS = 2000 };

/* Zero-initialise. */
struct patience {
    unsigned waited; /* milliseconds */
};

/* Sleeps a moment. false, at once, when PATIENCE_MS are used up: what is held is held by another.
 */
bool patience_wait(struct patience *p);

#endif
