/* Compress a closed audit file with zstd, a step at a time, so that the logger's writers never wait
 * for it: NAME becomes NAME.zst, whole and synced before the plain file goes. Each block is a frame
 * of its own, of whole lines, and the index of blocks (audit/read/log_blocks.h) is made on the way,
 * a step for each. */
#ifndef DURWARD_LOG_COMPRESS_H
#define DURWARD_LOG_COMPRESS_H

#include "open_request_terms.h"
#include "block_source.h"
#include "err.h"
#include "log_dir.h"

struct log_compress;

enum { LOG_COMPRESS_STEP = BLOCK_STEP /* plain bytes a step */ };

/* dirfd is borrowed, as is begun, which goes on from file to file (NULL: no index of blocks). NULL
 * with err. */
struct log_compress *log_compress_new(int dirfd, const char *name, struct open_request_terms *begun,
                                      struct err *err);
/* 1: more to do; 0: done; -1 with err: given up, the plain file stays. */
int log_compress_step(struct log_compress *s, struct err *err);
void log_compress_free(
    struct log_compress *s); /* unfinished: what was made is removed. NULL is fine */

#endif
