/* Compress a closed audit file with zstd, a step at a time, so that the logger's writers never wait
 * for it: NAME becomes NAME.zst, whole and synced before the plain file goes. */
#ifndef DURWARD_SQUEEZE_H
#define DURWARD_SQUEEZE_H

#include "err.h"
#include "log_dir.h"

struct squeeze;

enum { SQUEEZE_STEP = 128 * 1024 /* plain bytes a step */ };

/* dirfd is borrowed. NULL with err. */
struct squeeze *squeeze_new(int dirfd, const char *name, struct err *err);
/* 1: more to do; 0: done; -1 with err: given up, the plain file stays. */
int squeeze_step(struct squeeze *s, struct err *err);
void squeeze_free(struct squeeze *s); /* unfinished: what was made is removed. NULL is fine */

#endif
