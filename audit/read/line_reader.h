#ifndef DURWARD_LINE_READER_H
#define DURWARD_LINE_READER_H

#include "slice.h"

/* Lines of one audit file, in blocks of bounded size. A file that zstd made (RFC 8878) reads as
 * what it holds; offsets are those of the plain text. */
struct line_reader;
enum line_state {
    LINE_END,   /* no more */
    LINE_WHOLE, /* a line, its newline taken off */
    LINE_TORN,  /* the last bytes, without a newline */
    LINE_LONG,  /* a line over RENDER_LINE_MAX: skipped */
    LINE_ERROR, /* read(2) failed: errno */
};
struct line_reader *line_reader_new(int fd); /* reads with pread from 0; fd stays the caller's */
void line_reader_free(struct line_reader *r);
void line_reader_seek(struct line_reader *r, uint64_t offset);
enum line_state line_reader_next(struct line_reader *r, struct slice *line); /* valid until next */
uint64_t line_reader_at(const struct line_reader *r);    /* offset of the line given last */
uint64_t line_reader_after(const struct line_reader *r); /* offset behind it and its newline */

#endif
