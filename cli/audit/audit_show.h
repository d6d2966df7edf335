/* Showing the newest records of a log, and what is said beside them. */
#ifndef DURWARD_AUDIT_SHOW_H
#define DURWARD_AUDIT_SHOW_H

#include "audit_view.h"
#include "log_search.h"

/* A directory without any log is more likely a wrong name than an empty answer. */
void audit_warn_empty(const struct log_tree *t, const char *dir);
void audit_warn_bad(uint64_t bad);
/* A log_tree_fn; arg: struct query *. */
int audit_feed(void *arg, const struct log_tree_dir *d, struct slice line);
/* The exit code. more_by: how the command is asked for more of them. */
int audit_newest(const char *dir, const struct query_filter *f, const struct log_search *s,
                 const char *more_by, struct audit_view *v);

#endif
