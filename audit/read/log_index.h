/* What a closed file of the log holds, so that a query need not read it: kinds, the times of its
 * first and last line, and a Bloom filter of hosts, sandboxes, rules and so on. It lies beside the
 * file (NAME.idx), is made when the file is closed, and can be made again at any time. It is not
 * signed: nothing but `audit query` uses it, and that does without with --no-index. */
#ifndef DURWARD_LOG_INDEX_H
#define DURWARD_LOG_INDEX_H

#include "err.h"
#include "query.h"

enum { LOG_INDEX_BITS = 1 << 20 };

struct log_index;

struct log_index *log_index_new(void);
void log_index_free(struct log_index *x); /* NULL is fine */
void log_index_line(struct log_index *x, struct slice line);
/* Of the file `name`, compressed or not. */
int log_index_write(const struct log_index *x, int dirfd, const char *name, struct err *err);
/* Reads the file and writes its index. */
int log_index_make(int dirfd, const char *name, struct err *err);
bool log_index_exists(int dirfd, const char *name);
void log_index_remove(int dirfd, const char *name); /* with its file */
/* false: no line of the file matches, and of no request that matches does it hold the beginning.
 * true where there is no index, or no good one. */
bool log_index_may(int dirfd, const char *name, const struct query_filter *f);
/* The filter asks of requests (host, sandbox, rule …): an end in the next file may match too. */
bool log_index_follows(const struct query_filter *f);

#endif
