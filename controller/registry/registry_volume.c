/* Rows of volumes and of snapshots of volumes. */
#include "registry_internal.h"

int registry_volume_add(struct registry *r, const struct registry_volume *v, struct err *err)
{
    sqlite3_stmt *q = registry_prepare(
        r,
        "INSERT INTO volume (name, policy, labels, token, snapshot_of, size, many, created, ready)"
        " VALUES (?,?,?,?,?,?,?,?,?)",
        err);
    const char *const texts[] = {v->name, v->policy, v->labels, v->token, v->snapshot_of};
    const int64_t numbers[] = {v->size, v->many, v->created, v->ready};
    int at = 0;
    if (q == NULL)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        sqlite3_bind_text(q, ++at, texts[i], -1, SQLITE_STATIC);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        sqlite3_bind_int64(q, ++at, numbers[i]);
    return registry_finish_durably(r, q, err);
}

int registry_volume_ready(struct registry *r, const char *name, bool ready, struct err *err)
{
    sqlite3_stmt *q = registry_prepare(r, "UPDATE volume SET ready = ? WHERE name = ?", err);
    if (q == NULL)
        return -1;
    sqlite3_bind_int(q, 1, ready);
    sqlite3_bind_text(q, 2, name, -1, SQLITE_STATIC);
    return registry_finish_durably(r, q, err);
}

int registry_volume_delete(struct registry *r, const char *name, struct err *err)
{
    sqlite3_stmt *q = registry_prepare(r, "DELETE FROM volume WHERE name = ?", err);
    if (q == NULL)
        return -1;
    sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
    return registry_finish_durably(r, q, err);
}

struct each_volume {
    int (*fn)(void *arg, const struct registry_volume *v);
    void *arg;
};

static int on_volume(void *arg, sqlite3_stmt *q, struct err *err)
{
    struct each_volume *each = arg;
    struct registry_volume v = {.name = registry_text(q, 0),
                                .policy = registry_text(q, 1),
                                .labels = registry_text(q, 2),
                                .token = registry_text(q, 3),
                                .snapshot_of = registry_text(q, 4),
                                .size = sqlite3_column_int64(q, 5),
                                .many = sqlite3_column_int(q, 6),
                                .created = sqlite3_column_int64(q, 7),
                                .ready = sqlite3_column_int(q, 8)};
    if (!v.name || !v.policy || !v.labels || !v.token || !v.snapshot_of || v.size <= 0)
        return err_set(err, ERR_PARSE, "the registry holds a damaged volume");
    return each->fn(each->arg, &v);
}

int registry_volume_each(struct registry *r, int (*fn)(void *arg, const struct registry_volume *v),
                         void *arg, struct err *err)
{
    sqlite3_stmt *q =
        registry_prepare(r,
                         "SELECT name, policy, labels, token, snapshot_of, size, many,"
                         " created, ready FROM volume ORDER BY rowid",
                         err);
    struct each_volume each = {fn, arg};
    return registry_rows(r, q, on_volume, &each, err);
}
