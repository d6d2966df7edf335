/* Reads the log from the checkpoint before a record on, where the files' indexes of blocks say
 * where that is. The indexes are not signed: whoever reads has to see by the signed root whether
 * what came was all. */
#ifndef DURWARD_LOG_WALK_H
#define DURWARD_LOG_WALK_H

#include "err.h"
#include "slice.h"

struct log_walk;

/* Of the files that are there now; dirfd stays the caller's. */
struct log_walk *log_walk_new(int dirfd, struct err *err);
void log_walk_free(struct log_walk *w); /* NULL is fine */

/* A line, valid during the call. Not 0 ends the walk. */
typedef int (*log_walk_fn)(void *arg, struct slice line);

/* Lines in their order, from somewhere before the last checkpoint that stands before record `seq`.
 * *whole: from the log's first line. 0 at the log's end, what fn returned, or -1: a file is not
 * there any more or not as its index says, or nothing of the log is as old. */
int log_walk_from(struct log_walk *w, uint64_t seq, bool *whole, log_walk_fn fn, void *arg);

#endif
