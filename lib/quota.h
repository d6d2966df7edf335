/* One bound that several owners share, and how much of it each may have: `each` at most, and never
 * more than it leaves to all the others. So one that takes all it can leaves half, two of them a
 * third, and whoever has nothing finds room as long as there is any.
 *
 * Who an owner is, the caller knows; an owner that has nothing is forgotten. Bounded: each owner
 * has something of the total. */
#ifndef DURWARD_QUOTA_H
#define DURWARD_QUOTA_H

#include "slice.h"

#include <sys/queue.h>

struct quota_owner;

struct quota {
    size_t total, each;
    size_t used;
    LIST_HEAD(, quota_owner) owners;
};

/* What one holder has of it; zeroed: nothing. */
struct quota_part {
    struct quota *of;
    struct quota_owner *owner;
    size_t n;
};

/* SHARE: the owner has all that it may have. OUT: nothing is left, or memory is out. */
enum quota_end { QUOTA_TAKEN = 0, QUOTA_SHARE, QUOTA_OUT };

/* Would it get them? */
enum quota_end quota_would(const struct quota *q, struct slice owner, size_t n);
/* n more for p, on that owner's account: all of it or nothing. A part keeps its owner. */
enum quota_end quota_take(struct quota *q, struct quota_part *p, struct slice owner, size_t n);
void quota_give(struct quota_part *p, size_t n); /* back, at most what it has */
void quota_leave(struct quota_part *p);          /* all of it back */
size_t quota_of(const struct quota *q, struct slice owner);

#endif
