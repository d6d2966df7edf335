/* How fast each owner may begin something: PACE_BURST at once and PACE_SECOND a second; whoever is
 * faster waits, and beyond PACE_WAIT_MS is told to go. Each has a pace of its own. */
#ifndef DURWARD_PACE_H
#define DURWARD_PACE_H

#include "slice.h"

#include <sys/queue.h>

enum { PACE_BURST = 1000, PACE_SECOND = 200, PACE_WAIT_MS = 2000, PACE_OWNERS = 4096 };

struct pace_owner;

struct pace {
    LIST_HEAD(, pace_owner) owners; /* whose burst is not whole again */
    size_t n;
};

/* ms until it may begin, 0: now; the place is its own from here on. -1: too many wait already, or
 * out of memory. now: us, monotonic. */
long pace_begin(struct pace *p, struct slice owner, uint64_t now);
void pace_free(struct pace *p);

#endif
