/* Rows of local sandboxes, and of the synthetic names and published ports of each. */
#include "registry_internal.h"

#include <string.h>

static void bind_text(sqlite3_stmt *q, int at, const char *text)
{
    sqlite3_bind_text(q, at, text, -1, SQLITE_STATIC);
}

/* What may change, from parameter `at` on. */
static void bind_changing(sqlite3_stmt *q, int at, const struct registry_sandbox *s)
{
    bind_text(q, at, s->name);
    bind_text(q, at + 1, s->labels);
    sqlite3_bind_int(q, at + 2, s->state);
    bind_text(q, at + 3, s->reason);
    sqlite3_bind_int64(q, at + 4, s->generation);
    sqlite3_bind_int64(q, at + 5, s->expires);
    sqlite3_bind_int64(q, at + 6, s->ttl);
    sqlite3_bind_int64(q, at + 7, s->idle_ttl);
    sqlite3_bind_int(q, at + 8, s->on_idle);
    sqlite3_bind_int(q, at + 9, s->auto_resume);
    bind_text(q, at + 10, s->snapshot);
    sqlite3_bind_blob(q, at + 11, s->seed, IDENTITY_SEED, SQLITE_STATIC);
    bind_text(q, at + 12, s->restoring);
}

int registry_sandbox_add(struct registry *r, struct registry_sandbox *s, struct err *err)
{
    sqlite3_stmt *q = registry_prepare(
        r,
        "INSERT INTO sandbox (name, labels, state, reason, generation, expires, ttl, idle_ttl,"
        " on_idle, auto_resume, snapshot, seed, restoring, id, policy, env, created, image,"
        " parent, kept, backend) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        err);
    if (q == NULL)
        return -1;
    bind_changing(q, 1, s);
    bind_text(q, 14, s->id);
    bind_text(q, 15, s->policy);
    bind_text(q, 16, s->env);
    sqlite3_bind_int64(q, 17, s->created);
    bind_text(q, 18, s->image);
    bind_text(q, 19, s->parent);
    sqlite3_bind_int(q, 20, s->kept);
    bind_text(q, 21, s->backend);
    if (registry_finish(r, q, err) < 0)
        return -1;
    s->seq = sqlite3_last_insert_rowid(r->db);
    return 0;
}

int registry_sandbox_update(struct registry *r, const struct registry_sandbox *s, struct err *err)
{
    sqlite3_stmt *q = registry_prepare(
        r,
        "UPDATE sandbox SET name = ?, labels = ?, state = ?, reason = ?, generation = ?,"
        " expires = ?, ttl = ?, idle_ttl = ?, on_idle = ?, auto_resume = ?, snapshot = ?, seed = ?,"
        " restoring = ? WHERE id = ?",
        err);
    if (q == NULL)
        return -1;
    bind_changing(q, 1, s);
    bind_text(q, 14, s->id);
    return registry_finish(r, q, err);
}

int registry_sandbox_delete(struct registry *r, const char *id, struct err *err)
{
    sqlite3_stmt *q = registry_prepare(r, "DELETE FROM sandbox WHERE id = ?", err);
    if (q == NULL)
        return -1;
    bind_text(q, 1, id);
    return registry_finish(r, q, err);
}

static const char *text_at(sqlite3_stmt *q, int column)
{
    return (const char *)sqlite3_column_text(q, column);
}

/* A row whose fields do not fit is damage, not data. */
static int read_row(sqlite3_stmt *q, struct registry_sandbox *s)
{
    const void *seed = sqlite3_column_blob(q, 6);
    *s = (struct registry_sandbox){
        .seq = sqlite3_column_int64(q, 0),
        .id = text_at(q, 1),
        .name = text_at(q, 2),
        .policy = text_at(q, 3),
        .labels = text_at(q, 4),
        .env = text_at(q, 5),
        .state = sqlite3_column_int(q, 7),
        .reason = text_at(q, 8),
        .generation = sqlite3_column_int64(q, 9),
        .created = sqlite3_column_int64(q, 10),
        .expires = sqlite3_column_int64(q, 11),
        .ttl = sqlite3_column_int64(q, 12),
        .idle_ttl = sqlite3_column_int64(q, 13),
        .on_idle = sqlite3_column_int(q, 14),
        .auto_resume = sqlite3_column_int(q, 15),
        .snapshot = text_at(q, 16),
        .image = text_at(q, 17),
        .parent = text_at(q, 18),
        .kept = sqlite3_column_int(q, 19),
        .backend = text_at(q, 20),
        .restoring = text_at(q, 21),
    };
    if (!s->id || !s->name || !s->policy || !s->labels || !s->env || !s->reason || !s->snapshot ||
        !s->image || !s->parent || !s->backend || !s->restoring || !seed ||
        sqlite3_column_bytes(q, 6) != IDENTITY_SEED || strlen(s->id) > IDENTITY_ID_MAX ||
        strlen(s->policy) > IDENTITY_POLICY_MAX)
        return -1;
    memcpy(s->seed, seed, IDENTITY_SEED);
    return 0;
}

int registry_sandbox_each(struct registry *r,
                          int (*fn)(void *arg, const struct registry_sandbox *s), void *arg,
                          struct err *err)
{
    sqlite3_stmt *q =
        registry_prepare(r,
                         "SELECT seq, id, name, policy, labels, env, seed, state,"
                         " reason, generation, created, expires, ttl, idle_ttl,"
                         " on_idle, auto_resume, snapshot, image, parent, kept, backend,"
                         " restoring FROM sandbox ORDER BY seq",
                         err);
    if (q == NULL)
        return -1;
    int step, bad = 0;
    while (!bad && (step = sqlite3_step(q)) != SQLITE_DONE) {
        struct registry_sandbox s;
        if (step != SQLITE_ROW)
            bad = registry_fail(r, "be read", err);
        else if (read_row(q, &s) < 0)
            bad = err_set(err, ERR_PARSE, "the registry holds a damaged sandbox");
        else
            bad = fn(arg, &s);
    }
    sqlite3_finalize(q);
    return bad;
}

int registry_name_add(struct registry *r, const char *sandbox, uint32_t index, const char *host,
                      struct err *err)
{
    sqlite3_stmt *q = registry_prepare(
        r, "INSERT OR IGNORE INTO sandbox_name (sandbox, number, host) VALUES (?,?,?)", err);
    if (q == NULL)
        return -1;
    bind_text(q, 1, sandbox);
    sqlite3_bind_int64(q, 2, index);
    bind_text(q, 3, host);
    return registry_finish(r, q, err);
}

int registry_name_each(struct registry *r, const char *sandbox,
                       void (*fn)(void *arg, const char *host), void *arg, struct err *err)
{
    sqlite3_stmt *q =
        registry_prepare(r, "SELECT host FROM sandbox_name WHERE sandbox = ? ORDER BY number", err);
    if (q == NULL)
        return -1;
    bind_text(q, 1, sandbox);
    int step, bad = 0;
    while (!bad && (step = sqlite3_step(q)) != SQLITE_DONE) {
        if (step != SQLITE_ROW)
            bad = registry_fail(r, "be read", err);
        else if (text_at(q, 0))
            fn(arg, text_at(q, 0));
    }
    sqlite3_finalize(q);
    return bad;
}

int registry_port_add(struct registry *r, const char *sandbox, const char *address, unsigned port,
                      struct err *err)
{
    sqlite3_stmt *q = registry_prepare(
        r, "INSERT INTO sandbox_port (sandbox, address, port) VALUES (?,?,?)", err);
    if (q == NULL)
        return -1;
    bind_text(q, 1, sandbox);
    bind_text(q, 2, address);
    sqlite3_bind_int64(q, 3, port);
    return registry_finish(r, q, err);
}

int registry_port_each(struct registry *r, const char *sandbox,
                       void (*fn)(void *arg, const char *address, unsigned port), void *arg,
                       struct err *err)
{
    sqlite3_stmt *q = registry_prepare(
        r, "SELECT address, port FROM sandbox_port WHERE sandbox = ? ORDER BY rowid", err);
    if (q == NULL)
        return -1;
    bind_text(q, 1, sandbox);
    int step, bad = 0;
    while (!bad && (step = sqlite3_step(q)) != SQLITE_DONE) {
        if (step != SQLITE_ROW)
            bad = registry_fail(r, "be read", err);
        else if (text_at(q, 0))
            fn(arg, text_at(q, 0), (unsigned)sqlite3_column_int(q, 1));
    }
    sqlite3_finalize(q);
    return bad;
}
