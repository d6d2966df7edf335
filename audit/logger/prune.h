/* Which closed file of a log may go, by what `audit.retention` keeps. A file goes whole, oldest
 * first, and only when its last line is a checkpoint: what is left then begins where a signed line
 * ends, and `verify` can tell a file that retention removed from one that somebody else did. */
#ifndef DURWARD_PRUNE_H
#define DURWARD_PRUNE_H

#include "chain.h"
#include "err.h"
#include "log_dir.h"

struct prune {
    char name[LOG_NAME_MAX];
    struct chain last; /* its last line */
};

struct prune_limits {
    uint64_t bytes, seconds; /* 0: any */
};

/* The next one to go: the oldest file, when all files together are over `bytes` or it was last
 * written more than `seconds` ago. The latest file (the active one) never does. 1: *ret; 0: none;
 * -1 with err. */
int prune_pick(int dirfd, const struct prune_limits *l, uint64_t now_ns, struct prune *ret,
               struct err *err);

/* seq and hash of a file's last line, when that is a checkpoint: 1; another: 0; -1 with err. */
int prune_last_line(int dirfd, const char *name, struct chain *ret, struct err *err);
uint64_t prune_total(int dirfd, const struct log_dir *d); /* bytes of them */

#endif
