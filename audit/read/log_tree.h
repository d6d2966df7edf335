/* An audit directory and its run-* directories, for readers: where each has been read to, the last
 * N lines, what is new. */
#ifndef DURWARD_LOG_TREE_H
#define DURWARD_LOG_TREE_H

#include "err.h"
#include "log_dir.h"

struct log_tree_dir {
    char name[LOG_NAME_MAX]; /* "run-…", or "" for the directory itself */
    char file[LOG_NAME_MAX]; /* read up to `offset` of this file; "" for nothing yet */
    uint64_t offset;
    uint64_t newest; /* ns, the last change of its last file; 0: no files */
    unsigned tag;    /* small number of its own */
    int watch;       /* inotify's, or -1 */
};

struct log_tree {
    int fd;
    struct log_tree_dir **dir;
    size_t n;
    unsigned tags;
    /* false: this file need not be read; asked of closed files only. NULL: all are read. */
    bool (*want)(void *arg, const struct log_tree_dir *d, int dirfd, const char *name);
    void *want_arg;
};

/* A whole line, valid during the call. Nonzero ends the reading (the line counts as read). */
typedef int (*log_tree_fn)(void *arg, const struct log_tree_dir *d, struct slice line);

int log_tree_open(struct log_tree *t, const char *path, struct err *err);
void log_tree_done(struct log_tree *t);
/* The directory itself only: its run-* directories are logs of their own. */
void log_tree_top(struct log_tree *t);
/* Look for new run-* directories and when each was written last. */
int log_tree_refresh(struct log_tree *t, struct err *err);
/* Order by last change, latest first. */
void log_tree_sort(struct log_tree *t);
/* Place the position before the last `keep` lines. */
int log_tree_seek(struct log_tree *t, struct log_tree_dir *d, size_t keep, struct err *err);
/* Every whole line behind the position, which moves on. Files not changed since `since` (ns) are
 * passed over. 0, fn's nonzero value, or -1 with err. */
int log_tree_read(struct log_tree *t, struct log_tree_dir *d, uint64_t since, log_tree_fn fn,
                  void *arg, struct err *err);

#endif
