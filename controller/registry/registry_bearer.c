/* Rows of tokens for the API. */
#include "registry_internal.h"

#include <string.h>

int registry_bearer_add(struct registry *r, const struct registry_bearer *b, struct err *err)
{
    sqlite3_stmt *q = registry_prepare(
        r,
        "INSERT INTO bearer (id, name, hash, scopes, policies, labels, created, expires,"
        " volume_bytes, max_sandboxes) VALUES (?,?,?,?,?,?,?,?,?,?)",
        err);
    if (q == NULL)
        return -1;
    sqlite3_bind_text(q, 1, b->id, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 2, b->name, -1, SQLITE_STATIC);
    sqlite3_bind_blob(q, 3, b->hash, BEARER_HASH, SQLITE_STATIC);
    sqlite3_bind_int64(q, 4, b->scopes);
    sqlite3_bind_text(q, 5, b->policies, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 6, b->labels, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 7, b->created);
    sqlite3_bind_int64(q, 8, b->expires);
    sqlite3_bind_int64(q, 9, b->volume_bytes);
    sqlite3_bind_int64(q, 10, b->max_sandboxes);
    return registry_finish_durably(r, q, err);
}

int registry_bearer_delete(struct registry *r, const char *id, struct err *err)
{
    sqlite3_stmt *q = registry_prepare(r, "DELETE FROM bearer WHERE id = ?", err);
    if (q == NULL)
        return -1;
    sqlite3_bind_text(q, 1, id, -1, SQLITE_STATIC);
    return registry_finish_durably(r, q, err);
}

/* A row whose fields do not fit is damage, not data. */
static int read_row(sqlite3_stmt *q, struct registry_bearer *b)
{
    const void *hash = sqlite3_column_blob(q, 2);
    *b = (struct registry_bearer){.id = (const char *)sqlite3_column_text(q, 0),
                                  .name = (const char *)sqlite3_column_text(q, 1),
                                  .scopes = sqlite3_column_int64(q, 3),
                                  .policies = (const char *)sqlite3_column_text(q, 4),
                                  .labels = (const char *)sqlite3_column_text(q, 5),
                                  .created = sqlite3_column_int64(q, 6),
                                  .expires = sqlite3_column_int64(q, 7),
                                  .volume_bytes = sqlite3_column_int64(q, 8),
                                  .max_sandboxes = sqlite3_column_int64(q, 9)};
    if (!b->id || !b->name || !b->policies || !b->labels || !hash ||
        sqlite3_column_bytes(q, 2) != BEARER_HASH)
        return -1;
    memcpy(b->hash, hash, BEARER_HASH);
    return 0;
}

struct each_bearer {
    int (*fn)(void *arg, const struct registry_bearer *b);
    void *arg;
};

static int on_bearer(void *arg, sqlite3_stmt *q, struct err *err)
{
    struct each_bearer *each = arg;
    struct registry_bearer b;
    if (read_row(q, &b) < 0)
        return err_set(err, ERR_PARSE, "the registry holds a damaged token");
    return each->fn(each->arg, &b);
}

int registry_bearer_each(struct registry *r, int (*fn)(void *arg, const struct registry_bearer *b),
                         void *arg, struct err *err)
{
    sqlite3_stmt *q =
        registry_prepare(r,
                         "SELECT id, name, hash, scopes, policies, labels, created, expires,"
                         " volume_bytes, max_sandboxes FROM bearer ORDER BY rowid",
                         err);
    struct each_bearer each = {fn, arg};
    return registry_rows(r, q, on_bearer, &each, err);
}
