/* Which blocks of a file a query has to read, told by the file's index of blocks. */
#ifndef DURWARD_BLOCK_PLAN_H
#define DURWARD_BLOCK_PLAN_H

#include "log_blocks.h"

enum {                   /* of planned_block.flags */
       PLAN_MATCH = 1,   /* a line of it may match */
       PLAN_REQUEST = 2, /* the beginning of a request that matches may stand in it */
       PLAN_BEFORE = 4,  /* all of it was received before the filter's `since` */
};

struct planned_block {
    struct span where;
    unsigned flags;
};

struct block_plan {
    size_t n;
    struct planned_block *at; /* all blocks of the file, in their order */
};

/* 1; 0: there is no index, or one that is damaged or not of a file like this one (packed or not).
 * -1: out of memory. */
int block_plan_load(struct block_plan *ret, int dirfd, const char *log, bool packed,
                    const struct query_filter *f);
/* Of a plain file without one, of this size: every block may match, and begins anywhere. */
int block_plan_all(struct block_plan *ret, uint64_t size);
void block_plan_done(struct block_plan *p);

#endif
