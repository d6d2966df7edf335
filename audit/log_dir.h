/* The files of an audit directory: audit-YYYYmmddTHHMMSSZ.jsonl, in the order of their names, which
 * is the order of the chain (a new name is always later than all others). */
#ifndef DURWARD_LOG_DIR_H
#define DURWARD_LOG_DIR_H

#include "err.h"
#include "slice.h"

enum { LOG_NAME_MAX = 64 };

struct log_dir {
    size_t n;
    char (*name)[LOG_NAME_MAX]; /* sorted */
};

/* Every audit-*.jsonl there. 0 or -1. */
int log_dir_list(int dirfd, struct log_dir *ret, struct err *err);
/* Names that begin with "run-" and are directories. */
int log_dir_runs(int dirfd, struct log_dir *ret, struct err *err);
void log_dir_done(struct log_dir *d);
/* A name for a file begun now: later than `last` ("" if none). */
void log_dir_next_name(uint64_t now_ns, const char *last, char name[LOG_NAME_MAX]);

/* Lines of one file, in blocks of bounded size. */
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
