/* Brings back to a directory of the host's what a sandbox changed in the copy of it. */
#ifndef DURWARD_WORK_OUT_H
#define DURWARD_WORK_OUT_H

#include "work_in.h"

enum { WORK_NAMED_MAX = 8, WORK_BACK_ENTRIES_MAX = 2 * WORK_ENTRIES_MAX };

/* So many, and the first of them by their paths. */
struct work_named {
    unsigned n;
    char *v[WORK_NAMED_MAX]; /* owned */
};

struct work_back {
    unsigned written, removed;
    struct work_named kept;    /* changed on the host as well: it has its own still */
    struct work_named refused; /* links that lead out, devices: not brought back */
    struct work_named failed;
    struct err why; /* of the first that failed */
    struct out_progress progress;
};

/* host, copy: the open directories, of which list says what was copied. Nothing of the host's is
 * touched but below host, no link is followed, and what somebody changed there since is left as it
 * is. bytes: at most so many are written. */
void work_copy_out(int host, int copy, struct work_list *list, uint64_t bytes,
                   struct work_back *ret);
void work_back_free(struct work_back *b);

#endif
