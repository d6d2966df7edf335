/* Rows of what is to be said to the fleet. */
#include "registry_internal.h"

#include <string.h>

int registry_note_add(struct registry *r, const struct registry_note *n, struct err *err)
{
    sqlite3_stmt *q = registry_prepare(
        r, "INSERT OR REPLACE INTO fleet_note (kind, id, body, seconds) VALUES (?,?,?,?)", err);
    if (q == NULL)
        return -1;
    sqlite3_bind_text(q, 1, n->kind, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 2, n->id, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 3, n->body, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 4, n->seconds);
    return registry_finish_durably(r, q, err);
}

int registry_note_delete(struct registry *r, const char *kind, const char *id, struct err *err)
{
    sqlite3_stmt *q = registry_prepare(r, "DELETE FROM fleet_note WHERE kind = ? AND id = ?", err);
    if (q == NULL)
        return -1;
    sqlite3_bind_text(q, 1, kind, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 2, id, -1, SQLITE_STATIC);
    return registry_finish(r, q, err);
}

struct each_note {
    int (*fn)(void *arg, const struct registry_note *n);
    void *arg;
};

static int on_note(void *arg, sqlite3_stmt *q, struct err *err)
{
    struct each_note *each = arg;
    struct registry_note n = {registry_text(q, 0), registry_text(q, 1), registry_text(q, 2),
                              sqlite3_column_int64(q, 3)};
    if (!n.kind || !n.id || !n.body)
        return err_set(err, ERR_PARSE, "the registry holds a damaged note");
    return each->fn(each->arg, &n);
}

int registry_note_each(struct registry *r, int (*fn)(void *arg, const struct registry_note *n),
                       void *arg, struct err *err)
{
    struct each_note each = {fn, arg};
    return registry_rows(r,
                         registry_prepare(r,
                                          "SELECT kind, id, body, seconds FROM fleet_note ORDER BY "
                                          "rowid",
                                          err),
                         on_note, &each, err);
}
