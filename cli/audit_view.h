/* How audit records look on a terminal: a line each. */
#ifndef DURWARD_AUDIT_VIEW_H
#define DURWARD_AUDIT_VIEW_H

#include "query.h"

/* A query_fn. arg: const bool *, true for the line as it stands in the file (--json). */
void audit_view_row(void *arg, const struct query_row *row);

#endif
