/* Rows of snapshots, each with a copy of the synthetic names that its sandbox had. */
#include "registry_internal.h"

#include <stdarg.h>

/* A statement whose parameters are these texts, in order; NULL ends them. */
static sqlite3_stmt *with_texts(struct registry *r, const char *sql, struct err *err, ...)
{
    sqlite3_stmt *q = registry_prepare(r, sql, err);
    const char *text;
    va_list ap;
    va_start(ap, err);
    for (int i = 1; q && (text = va_arg(ap, const char *)) != NULL; i++)
        sqlite3_bind_text(q, i, text, -1, SQLITE_STATIC);
    va_end(ap);
    return q;
}

static int finish(struct registry *r, sqlite3_stmt *q, struct err *err)
{
    return q ? registry_finish(r, q, err) : -1;
}

int registry_name_copy(struct registry *r, const char *from, const char *to, struct err *err)
{
    return finish(r,
                  with_texts(r,
                             "INSERT OR REPLACE INTO sandbox_name (sandbox, number, host)"
                             " SELECT ?, number, host FROM sandbox_name WHERE sandbox = ?",
                             err, to, from, (char *)NULL),
                  err);
}

int registry_snapshot_add(struct registry *r, const struct registry_snapshot *s, struct err *err)
{
    sqlite3_stmt *q =
        with_texts(r,
                   "INSERT INTO snapshot (name, sandbox, policy, image, labels, created, ready)"
                   " VALUES (?,?,?,?,?,?,?)",
                   err, s->name, s->sandbox, s->policy, s->image, s->labels, (char *)NULL);
    if (q) {
        sqlite3_bind_int64(q, 6, s->created);
        sqlite3_bind_int(q, 7, s->ready);
    }
    return finish(r, q, err);
}

int registry_snapshot_ready(struct registry *r, const char *name, const char *sandbox,
                            struct err *err)
{
    if (finish(r,
               with_texts(r,
                          "INSERT OR REPLACE INTO snapshot_name (snapshot, number, host)"
                          " SELECT ?, number, host FROM sandbox_name WHERE sandbox = ?",
                          err, name, sandbox, (char *)NULL),
               err) < 0)
        return -1;
    return finish(
        r, with_texts(r, "UPDATE snapshot SET ready = 1 WHERE name = ?", err, name, (char *)NULL),
        err);
}

int registry_snapshot_imported(struct registry *r, const struct registry_snapshot *s,
                               struct err *err)
{
    sqlite3_stmt *q = with_texts(r,
                                 "UPDATE snapshot SET sandbox = ?, policy = ?, image = ?,"
                                 " created = ?, ready = 1 WHERE name = ?",
                                 err, s->sandbox, s->policy, s->image, (char *)NULL);
    if (q) {
        sqlite3_bind_int64(q, 4, s->created);
        sqlite3_bind_text(q, 5, s->name, -1, SQLITE_STATIC);
    }
    return finish(r, q, err);
}

int registry_snapshot_going(struct registry *r, const char *name, struct err *err)
{
    return finish(
        r, with_texts(r, "UPDATE snapshot SET ready = 0 WHERE name = ?", err, name, (char *)NULL),
        err);
}

int registry_snapshot_delete(struct registry *r, const char *name, struct err *err)
{
    return finish(r, with_texts(r, "DELETE FROM snapshot WHERE name = ?", err, name, (char *)NULL),
                  err);
}

int registry_snapshot_names(struct registry *r, const char *name, const char *sandbox,
                            struct err *err)
{
    if (finish(
            r,
            with_texts(r, "DELETE FROM sandbox_name WHERE sandbox = ?", err, sandbox, (char *)NULL),
            err) < 0)
        return -1;
    return finish(r,
                  with_texts(r,
                             "INSERT INTO sandbox_name (sandbox, number, host)"
                             " SELECT ?, number, host FROM snapshot_name WHERE snapshot = ?",
                             err, sandbox, name, (char *)NULL),
                  err);
}

struct each_snapshot {
    int (*fn)(void *arg, const struct registry_snapshot *s);
    void *arg;
};

static int on_snapshot(void *arg, sqlite3_stmt *q, struct err *err)
{
    struct each_snapshot *each = arg;
    struct registry_snapshot s = {.name = registry_text(q, 0),
                                  .sandbox = registry_text(q, 1),
                                  .policy = registry_text(q, 2),
                                  .image = registry_text(q, 3),
                                  .created = sqlite3_column_int64(q, 4),
                                  .ready = sqlite3_column_int(q, 5),
                                  .labels = registry_text(q, 6)};
    if (!s.name || !s.sandbox || !s.policy || !s.image || !s.labels)
        return err_set(err, ERR_PARSE, "the registry holds a damaged snapshot");
    return each->fn(each->arg, &s);
}

int registry_snapshot_each(struct registry *r,
                           int (*fn)(void *arg, const struct registry_snapshot *s), void *arg,
                           struct err *err)
{
    sqlite3_stmt *q = registry_prepare(r,
                                       "SELECT name, sandbox, policy, image, created, ready, labels"
                                       " FROM snapshot ORDER BY rowid",
                                       err);
    struct each_snapshot each = {fn, arg};
    return registry_rows(r, q, on_snapshot, &each, err);
}
