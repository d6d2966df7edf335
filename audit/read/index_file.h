/* What the two indexes of a closed file (log_index, log_blocks) share: the file beside the log's,
 * which takes its name only when it is whole, and the times that its lines were received in. */
#ifndef DURWARD_INDEX_FILE_H
#define DURWARD_INDEX_FILE_H

#include "err.h"
#include "slice.h"
#include "timestamp.h"

enum { INDEX_MAGIC = 16, INDEX_NAME_MAX = 72, INDEX_PENDING_MAX = INDEX_NAME_MAX + 4 };

/* Of the log's file, compressed or not; ending: ".idx". */
void index_file_name(const char *log, const char *ending, char name[INDEX_NAME_MAX]);
/* One of this version: an older one is made anew. */
bool index_file_exists(int dirfd, const char *log, const char *ending, const char *magic);
void index_file_remove(int dirfd, const char *log, const char *ending);

/* One that is being written. dirfd is borrowed. */
struct index_file {
    int dirfd, fd; /* fd -1: it is closed */
    char name[INDEX_NAME_MAX], pending[INDEX_PENDING_MAX];
};

int index_file_begin(struct index_file *f, int dirfd, const char *log, const char *ending,
                     struct err *err);
int index_file_put(struct index_file *f, const void *bytes, size_t n, struct err *err);
int index_file_finish(struct index_file *f, struct err *err); /* it is there now */
void index_file_close(struct index_file *f); /* not finished: what was written is removed */

/* The first and the last time at which one of the lines was received, of which `at` is one more;
 * "" before there is one. */
void index_file_times(char first[TIMESTAMP_MAX], char last[TIMESTAMP_MAX], struct slice at);

#endif
