/* Compress a closed audit file with zstd, a step at a time, so that the logger's writers never wait
 * for it: NAME becomes NAME.zst, whole and synced before the plain file goes. Each block is a frame
 * of its own, of whole lines, and the index of blocks (audit/log_blocks.h) is made on the way, a
 * step for each. */
#ifndef DURWARD_SQUEEZE_H
#define DURWARD_SQUEEZE_H

#include "begun_terms.h"
#include "block_source.h"
#include "err.h"
#include "log_dir.h"

struct squeeze;

enum { SQUEEZE_STEP = BLOCK_STEP /* plain bytes a step */ };

/* dirfd is borrowed, as is begun, which goes on from file to file (NULL: no index of blocks). NULL
 * with err. */
struct squeeze *squeeze_new(int dirfd, const char *name, struct begun_terms *begun,
                            struct err *err);
/* 1: more to do; 0: done; -1 with err: given up, the plain file stays. */
int squeeze_step(struct squeeze *s, struct err *err);
void squeeze_free(struct squeeze *s); /* unfinished: what was made is removed. NULL is fine */

#endif
