/* The directories that a search has read, each as it was then: whether one has changed since is
 * whether the time of its last change has. */
#ifndef DURWARD_MASK_SEEN_H
#define DURWARD_MASK_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

struct seen_directory {
    uint64_t dev, ino; /* ino 0: an empty slot */
    int64_t s, ns;
};

struct seen {
    struct seen_directory *at;
    size_t n, size; /* size: a power of two, or 0 */
};

/* Notes a directory that is about to be read. 1: it was read before and is unchanged; 0: it is new
 * or has changed; -1: out of memory. now: of CLOCK_REALTIME; what changed just before it may change
 * again without another time, so it counts as changed the next time too. */
int seen_note(struct seen *seen, const struct stat *st, const struct timespec *now);
void seen_free(struct seen *seen);

#endif
