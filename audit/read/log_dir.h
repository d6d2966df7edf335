/* The files of an audit directory: audit-YYYYmmddTHHMMSSZ.jsonl, with .zst behind it once closed
 * and compressed, in the order of their names, which is the order of the chain (a new name is
 * always later than all others). */
#ifndef DURWARD_LOG_DIR_H
#define DURWARD_LOG_DIR_H

#include "err.h"
#include "slice.h"

enum { LOG_NAME_MAX = 64 };

struct log_dir {
    size_t n;
    char (*name)[LOG_NAME_MAX]; /* sorted */
};

/* Every file of the log, each once. 0 or -1. */
int log_dir_list(int dirfd, struct log_dir *ret, struct err *err);
/* Names that begin with "run-" and are directories. */
int log_dir_runs(int dirfd, struct log_dir *ret, struct err *err);
/* As strcmp, of two names; compressed or not, a file is the same one. */
int log_dir_order(const char *a, const char *b);
bool log_dir_packed(const char *name); /* ends in .zst */
void log_dir_done(struct log_dir *d);
/* A name for a file begun now: later than `last` ("" if none). */
void log_dir_next_name(uint64_t now_ns, const char *last, char name[LOG_NAME_MAX]);

#endif
