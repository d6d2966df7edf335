/* Rows of suppressions. */
#include "registry_internal.h"

enum { TEXTS = 11, NUMBERS = 4 };

int registry_suppression_put(struct registry *r, const struct registry_suppression *s,
                             struct err *err)
{
    const char *const texts[TEXTS] = {s->id,      s->policy,      s->code,     s->host,
                                      s->method,  s->path,        s->sandbox,  s->reason,
                                      s->made_by, s->accepted_by, s->lifted_by};
    const int64_t numbers[NUMBERS] = {s->created, s->expires, s->accepted, s->lifted};
    sqlite3_stmt *q = registry_prepare(
        r,
        "INSERT INTO suppression (id, policy, code, host, method, path, sandbox, reason, made_by,"
        " accepted_by, lifted_by, created, expires, accepted, lifted)"
        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET"
        " accepted_by = excluded.accepted_by, lifted_by = excluded.lifted_by,"
        " expires = excluded.expires, accepted = excluded.accepted, lifted = excluded.lifted",
        err);
    if (q == NULL)
        return -1;
    for (int i = 0; i < TEXTS; i++)
        sqlite3_bind_text(q, i + 1, texts[i], -1, SQLITE_STATIC);
    for (int i = 0; i < NUMBERS; i++)
        sqlite3_bind_int64(q, TEXTS + i + 1, numbers[i]);
    return registry_finish_durably(r, q, err);
}

int registry_suppression_delete(struct registry *r, const char *id, struct err *err)
{
    sqlite3_stmt *q = registry_prepare(r, "DELETE FROM suppression WHERE id = ?", err);
    if (q == NULL)
        return -1;
    sqlite3_bind_text(q, 1, id, -1, SQLITE_STATIC);
    return registry_finish_durably(r, q, err);
}

struct each_suppression {
    int (*fn)(void *arg, const struct registry_suppression *s);
    void *arg;
};

/* A row whose fields do not fit is damage, not data. */
static int on_row(void *arg, sqlite3_stmt *q, struct err *err)
{
    const struct each_suppression *each = arg;
    const char *text[TEXTS];
    for (int i = 0; i < TEXTS; i++)
        if ((text[i] = registry_text(q, i)) == NULL)
            return err_set(err, ERR_PARSE, "the registry holds a damaged suppression");
    const struct registry_suppression s = {
        .id = text[0],
        .policy = text[1],
        .code = text[2],
        .host = text[3],
        .method = text[4],
        .path = text[5],
        .sandbox = text[6],
        .reason = text[7],
        .made_by = text[8],
        .accepted_by = text[9],
        .lifted_by = text[10],
        .created = sqlite3_column_int64(q, TEXTS),
        .expires = sqlite3_column_int64(q, TEXTS + 1),
        .accepted = sqlite3_column_int64(q, TEXTS + 2),
        .lifted = sqlite3_column_int64(q, TEXTS + 3),
    };
    return each->fn(each->arg, &s);
}

int registry_suppression_each(struct registry *r,
                              int (*fn)(void *arg, const struct registry_suppression *s), void *arg,
                              struct err *err)
{
    sqlite3_stmt *q = registry_prepare(
        r,
        "SELECT id, policy, code, host, method, path, sandbox, reason, made_by, accepted_by,"
        " lifted_by, created, expires, accepted, lifted FROM suppression ORDER BY rowid",
        err);
    struct each_suppression each = {fn, arg};
    return registry_rows(r, q, on_row, &each, err);
}
