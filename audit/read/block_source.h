/* A closed file of the log in blocks of whole lines: what is read of it at once. In a compressed
 * file each block is a zstd frame of its own (audit/read/log_compress.c), so that one is read
 * without the others. */
#ifndef DURWARD_BLOCK_SOURCE_H
#define DURWARD_BLOCK_SOURCE_H

#include "err.h"
#include "slice.h"

enum {
    BLOCK_STEP = 128 * 1024,           /* plain bytes that a block is cut from */
    BLOCK_MAX = BLOCK_STEP + 65536 + 1 /* a line that began in the step before stands in front */
};

struct span { /* where a block stands; packed_n is 0 in a plain file */
    uint64_t plain_at, packed_at;
    uint32_t plain_n, packed_n;
};

/* How much of what was read is a block: up to the last newline; all of it when there is none or
 * `whole` (nothing follows). */
size_t block_cut(struct slice read, bool whole);

struct block_source;

/* fd stays the caller's. NULL: out of memory. */
struct block_source *block_source_new(int fd);
void block_source_free(struct block_source *s); /* NULL is fine */
/* The next block, valid until the next call. 1; 0 at the end; -1: it cannot be read, or it is
 * compressed in longer frames than blocks are. */
int block_source_next(struct block_source *s, struct slice *lines, struct span *where);
/* That block again. 0 or -1: it is not there any more, or not as `where` says. */
int block_source_read(struct block_source *s, const struct span *where, struct slice *lines);

#endif
