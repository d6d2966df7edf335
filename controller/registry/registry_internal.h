/* Shared by registry.c (the file, identities) and the other registry_*.c, one a kind of row. */
#ifndef DURWARD_REGISTRY_INTERNAL_H
#define DURWARD_REGISTRY_INTERNAL_H

#include <sqlite3.h>

#include "registry.h"

struct registry {
    sqlite3 *db;
};

int registry_fail(struct registry *r, const char *what, struct err *err);
sqlite3_stmt *registry_prepare(struct registry *r, const char *sql, struct err *err);
/* Run a statement that returns no rows, and finalize it. */
int registry_finish(struct registry *r, sqlite3_stmt *s, struct err *err);
/* The same, on disk when it returns. */
int registry_finish_durably(struct registry *r, sqlite3_stmt *s, struct err *err);
/* Give each row of a statement to fn until it returns other than 0, which is returned; finalize the
 * statement. NULL: it could not be prepared, -1. */
int registry_rows(struct registry *r, sqlite3_stmt *q,
                  int (*fn)(void *arg, sqlite3_stmt *q, struct err *err), void *arg,
                  struct err *err);
const char *registry_text(sqlite3_stmt *q, int column); /* until the next row; NULL: none */

#endif
