/* The requests of one sandbox that last, and what each had sent when it was last heard of: a
 * `progress` record says how much in all, and only what is new is to be counted. */
#ifndef DURWARD_OPEN_REQUESTS_H
#define DURWARD_OPEN_REQUESTS_H

#include "compiler.h"

enum { OPEN_REQUESTS_MAX = 2048 };

struct open_request {
    uint64_t id, up, last; /* last: s */
};

struct open_requests {
    struct open_request *v;
    size_t n, room;
};

void open_requests_free(struct open_requests *l);
/* A record of this request, with what it has sent in all -> bytes that were not counted yet. ends:
 * the last of it. may_keep: there is room for one more of whoever pays for it; else a new one is
 * not counted before its end. What is beyond OPEN_REQUESTS_MAX of its own counts anew with each
 * record: too much is said of a sandbox that does this, not too little. */
uint64_t open_requests_note(struct open_requests *l, uint64_t id, uint64_t up, bool ends,
                            bool may_keep, uint64_t now);

#endif
