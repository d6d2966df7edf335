/* The second index of a closed file (NAME.blk, beside NAME.idx): for each block of it (see
 * block_source.h) where it stands, its kinds and times, and a set of what its lines hold: the terms
 * of terms.h, ids, and the pieces of texts of ngrams.h. An end counts as holding what its request's
 * beginning held. So a query reads only blocks that may match, the newest first.
 *
 * Not signed, as NAME.idx: made as the file is compressed, or by 'durward audit index'; each part
 * carries a sum against damage, and one that is wrong is not used.
 *
 * A file is chapters of at most BLOCKS_CHAPTER blocks: struct blocks_head, its entries, then,
 * unless `stride` is 0, NGRAM_BITS rows of `stride` bytes: a bit a block, then a sum of 16 bits. */
#ifndef DURWARD_LOG_BLOCKS_H
#define DURWARD_LOG_BLOCKS_H

#include "open_request_terms.h"
#include "block_source.h"
#include "query.h"
#include "timestamp.h"

enum {
    BLOCKS_CHAPTER = 512,
    BLOCKS_SETS_FROM = 32, /* a chapter of fewer blocks has no sets: 4 MB are read at once */
    BLOCKS_ROW_SUM = 2,
};

#define BLOCKS_ENDING ".blk" /* of its name (index_file.h) */

enum { BLOCK_LOOSE = 1 }; /* it has an end whose beginning was not known */

struct blocks_entry {
    struct span where;
    uint32_t kinds, flags;
    char first[TIMESTAMP_MAX], last[TIMESTAMP_MAX]; /* received; "" if none */
};

struct blocks_head {
    char magic[16];
    uint32_t n, stride;
    uint64_t sum; /* of n, stride and the entries */
};

bool log_blocks_head_good(const struct blocks_head *h, const struct blocks_entry *entries);
uint16_t log_blocks_row_sum(uint32_t row, const unsigned char *bits, size_t n);
/* Where a term stands in a set: three positions. */
enum { BLOCKS_TERM_ROWS = 3 };
void log_blocks_rows(uint64_t term, uint32_t row[BLOCKS_TERM_ROWS]);

struct log_blocks; /* one that is being made */

/* begun: of the file before, if that was indexed just now, else empty; borrowed. */
struct log_blocks *log_blocks_new(int dirfd, const char *log, struct open_request_terms *begun,
                                  struct err *err);
int log_blocks_add(struct log_blocks *b, struct slice lines, const struct span *where,
                   struct err *err);
int log_blocks_finish(struct log_blocks *b, struct err *err); /* it is there now */
void log_blocks_free(struct log_blocks *b); /* unfinished: what was made is removed */

/* Reads the file and makes it. 1; 0: the file's frames are no blocks, so there is none; -1. */
int log_blocks_make(int dirfd, const char *log, struct open_request_terms *begun, struct err *err);
bool log_blocks_exists(int dirfd, const char *log);
void log_blocks_remove(int dirfd, const char *log);

#endif
