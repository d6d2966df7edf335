/* The requests of one sandbox that last, and what each had sent when it was last heard of: a
 * `progress` record says how much in all, and only what is new is to be counted. */
#ifndef DURWARD_LASTING_H
#define DURWARD_LASTING_H

#include "compiler.h"

enum { LASTING_MAX = 2048 };

struct lasting_one {
    uint64_t id, up, last; /* last: s */
};

struct lasting {
    struct lasting_one *v;
    size_t n, room;
};

void lasting_free(struct lasting *l);
/* A record of this request, with what it has sent in all -> bytes that were not counted yet. ends:
 * the last of it. may_keep: there is room for one more of whoever pays for it; else a new one is
 * not counted before its end. What is beyond LASTING_MAX of its own counts anew with each record:
 * too much is said of a sandbox that does this, not too little. */
uint64_t lasting_note(struct lasting *l, uint64_t id, uint64_t up, bool ends, bool may_keep,
                      uint64_t now);

#endif
