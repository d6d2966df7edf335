/* A byte queue with a maximum given at birth.
 *
 *   base        off            off+len          cap       max
 *    |  drained  |    readable   |     free      |  may grow |
 *
 * Appending past `max` fails and leaves the content as it was. A buffer made with buf_init_wiped
 * clears its memory before giving it back. */
#ifndef DURWARD_BUF_H
#define DURWARD_BUF_H

#include "compiler.h"
#include "slice.h"

struct buf {
    unsigned char *base; /* owned; NULL while empty and never filled */
    size_t off, len, cap;
    size_t max; /* bytes readable at once */
    bool wipe;  /* clear memory on release, */
    size_t top; /* as far as anything was ever put into it */
};

void buf_init(struct buf *b, size_t max);
void buf_init_wiped(struct buf *b, size_t max);
/* Release the memory; the buffer stays usable with the same maximum. */
void buf_free(struct buf *b);
size_t buf_len(const struct buf *b);
size_t buf_room(const struct buf *b); /* max - len */
unsigned char *buf_data(const struct buf *b);
struct slice buf_slice(const struct buf *b);
/* Room for n more bytes at the end, contiguous; NULL when that would cross the maximum. */
unsigned char *buf_reserve(struct buf *b, size_t n) WUNUSED;
/* The same for whoever writes nothing there but what it then commits: the rest of it need not be
 * cleared when the memory is released. */
unsigned char *buf_space(struct buf *b, size_t n) WUNUSED;
void buf_commit(struct buf *b, size_t n); /* n bytes were written into what one of these gave */
int buf_append(struct buf *b, const void *p, size_t n) WUNUSED;
int buf_append_slice(struct buf *b, struct slice s) WUNUSED;
int buf_append_str(struct buf *b, const char *s) WUNUSED;
int buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3) WUNUSED;
void buf_drain(struct buf *b, size_t n); /* n <= len */
void buf_cut(struct buf *b, size_t n);   /* the last n bytes; n <= len */
void buf_clear(struct buf *b);           /* drain all; keeps (and if asked wipes) the memory */
/* Give memory back when the buffer is empty. */
void buf_shrink(struct buf *b);

#endif
