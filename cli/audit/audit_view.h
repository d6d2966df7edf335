/* How audit records look on a terminal: a line each. */
#ifndef DURWARD_AUDIT_VIEW_H
#define DURWARD_AUDIT_VIEW_H

#include "query.h"

/* Zero it, but for `raw`. */
struct audit_view {
    bool raw;     /* the line as it stands in the file (--json) */
    char day[12]; /* on a terminal: the day of the line before, whose times are short */
    size_t rows;  /* how many were shown */
};

/* A query_fn. arg: struct audit_view *. */
void audit_view_row(void *arg, const struct query_row *row);

#endif
