/* The newest records that match a filter: files and their blocks are read from the end, and no
 * further than need be. */
#ifndef DURWARD_LOG_SEARCH_H
#define DURWARD_LOG_SEARCH_H

#include "log_tree.h"
#include "query.h"

enum { LOG_SEARCH_ROWS_DEFAULT = 1000, LOG_SEARCH_ROWS_MAX = 1000000 };

struct log_search {
    size_t rows;   /* how many, at most */
    bool no_index; /* read every block, whatever an index says */
};

/* fn is given the rows in the order of their receipt. *more: it ended at `rows`, there may be older
 * ones. *bad: lines met that are no records. An end whose request began more than 8 MB of log
 * before the oldest row, or before the filter's `since`, may be left out where its beginning is
 * needed. */
int log_search_newest(struct log_tree *t, const struct query_filter *f, const struct log_search *s,
                      query_fn fn, void *arg, bool *more, uint64_t *bad, struct err *err);

#endif
