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

#endif
