/* A daemon that was killed leaves roles that die a moment later, and hold until then what they had:
 * its sockets, ports and locks. Who starts in its place waits for that, and not for more. */
#ifndef DURWARD_START_WAIT_H
#define DURWARD_START_WAIT_H

#include <stdbool.h>

enum { START_WAIT_MS = 2000 };

/* Zero-initialise. */
struct start_wait {
    unsigned waited; /* milliseconds */
};

/* Sleeps a moment. false, at once, when START_WAIT_MS are used up: what is held is held by another.
 */
bool start_wait_sleep(struct start_wait *p);

#endif
