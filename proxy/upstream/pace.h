/* How fast each owner may begin something: PACE_BURST at once and PACE_SECOND a second. Each has a
 * pace of its own. */
#ifndef DURWARD_PACE_H
#define DURWARD_PACE_H

#include "slice.h"

#include <sys/queue.h>

enum { PACE_BURST = 1000, PACE_SECOND = 200, PACE_OWNERS = 4096 };

struct pace_owner;

struct pace {
    LIST_HEAD(, pace_owner) owners; /* whose burst is not whole again */
    size_t n;
};

/* ms until it may begin, and is to ask again; 0: now, and it has. Owners beyond the bound, or
 * beyond memory, may not until others are forgotten. now: us, monotonic. */
long pace_begin(struct pace *p, struct slice owner, uint64_t now);
void pace_free(struct pace *p);

#endif
