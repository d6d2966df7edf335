/* Rows of local sandboxes, and of the synthetic names and published ports of each. */
#include "registry_internal.h"

#include <stddef.h>
#include <string.h>

/* The columns beside `seq`, each named as its member: those written once, and those that change. */
#define COLUMNS(ONCE, CHANGES) \
    ONCE(id, TEXT)             \
    ONCE(policy, TEXT)         \
    ONCE(image, TEXT)          \
    ONCE(parent, TEXT)         \
    ONCE(kept, INT)            \
    ONCE(backend, TEXT)        \
    ONCE(volumes, TEXT)        \
    ONCE(pod, TEXT)            \
    ONCE(template, TEXT)       \
    CHANGES(pooled, INT)       \
    CHANGES(env, TEXT)         \
    CHANGES(token, TEXT)       \
    CHANGES(created, INT64)    \
    CHANGES(name, TEXT)        \
    CHANGES(labels, TEXT)      \
    CHANGES(state, INT)        \
    CHANGES(reason, TEXT)      \
    CHANGES(generation, INT64) \
    CHANGES(expires, INT64)    \
    CHANGES(ttl, INT64)        \
    CHANGES(idle_ttl, INT64)   \
    CHANGES(soft_ttl, INT64)   \
    CHANGES(boot, TEXT)        \
    CHANGES(ends, INT64)       \
    CHANGES(soft_ends, INT64)  \
    CHANGES(used, INT64)       \
    CHANGES(on_idle, INT)      \
    CHANGES(on_soft, INT)      \
    CHANGES(auto_resume, INT)  \
    CHANGES(snapshot, TEXT)    \
    CHANGES(seed, SEED)        \
    CHANGES(restoring, TEXT)

/* What stands for a column in a statement, behind `seq`. */
#define NO_SQL(name, type)
#define NAME_SQL(name, type)  ", " #name
#define VALUE_SQL(name, type) ", :" #name
#define SET_SQL(name, type)   ", " #name " = :" #name

enum column_type { TEXT, INT, INT64, SEED };

static const struct column {
    const char *parameter;
    enum column_type type;
    size_t at;
} columns[] = {
#define COLUMN(name, type) {":" #name, type, offsetof(struct registry_sandbox, name)},
    COLUMNS(COLUMN, COLUMN)
#undef COLUMN
};

static void bind_text(sqlite3_stmt *q, int at, const char *text)
{
    sqlite3_bind_text(q, at, text, -1, SQLITE_STATIC);
}

/* All columns that the statement has a parameter for. */
static void bind_row(sqlite3_stmt *q, const struct registry_sandbox *s)
{
    for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
        int at = sqlite3_bind_parameter_index(q, columns[i].parameter);
        const void *from = (const char *)s + columns[i].at;
        if (at == 0)
            continue;
        switch (columns[i].type) {
        case TEXT:
            bind_text(q, at, *(const char *const *)from);
            break;
        case INT:
            sqlite3_bind_int(q, at, *(const int *)from);
            break;
        case INT64:
            sqlite3_bind_int64(q, at, *(const int64_t *)from);
            break;
        case SEED:
            sqlite3_bind_blob(q, at, from, IDENTITY_SEED, SQLITE_STATIC);
        }
    }
}

static int write_row(struct registry *r, const char *sql, const struct registry_sandbox *s,
                     struct err *err)
{
    sqlite3_stmt *q = registry_prepare(r, sql, err);
    if (q == NULL)
        return -1;
    bind_row(q, s);
    return registry_finish(r, q, err);
}

int registry_sandbox_add(struct registry *r, struct registry_sandbox *s, struct err *err)
{
    static const char sql[] = "INSERT INTO sandbox (seq" COLUMNS(
        NAME_SQL, NAME_SQL) ") VALUES (NULL" COLUMNS(VALUE_SQL, VALUE_SQL) ")";
    if (write_row(r, sql, s, err) < 0)
        return -1;
    s->seq = sqlite3_last_insert_rowid(r->db);
    return 0;
}

int registry_sandbox_update(struct registry *r, const struct registry_sandbox *s, struct err *err)
{
    static const char sql[] =
        "UPDATE sandbox SET seq = seq" COLUMNS(NO_SQL, SET_SQL) " WHERE id = :id";
    return write_row(r, sql, s, err);
}

int registry_sandbox_renew(struct registry *r, const char *id, int64_t *seq, struct err *err)
{
    static const char sql[] =
        "UPDATE sandbox SET seq = 1 + max((SELECT max(seq) FROM sandbox),"
        " (SELECT seq FROM sqlite_sequence WHERE name = 'sandbox')) WHERE id = ?";
    sqlite3_stmt *q = registry_prepare(r, sql, err);
    if (q == NULL)
        return -1;
    bind_text(q, 1, id);
    if (registry_finish(r, q, err) < 0)
        return -1;
    q = registry_prepare(r, "SELECT seq FROM sandbox WHERE id = ?", err);
    if (q == NULL)
        return -1;
    bind_text(q, 1, id);
    int bad = sqlite3_step(q) == SQLITE_ROW ? 0 : registry_fail(r, "be read", err);
    *seq = bad ? 0 : sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return bad;
}

int registry_sandbox_delete(struct registry *r, const char *id, struct err *err)
{
    sqlite3_stmt *q = registry_prepare(r, "DELETE FROM sandbox WHERE id = ?", err);
    if (q == NULL)
        return -1;
    bind_text(q, 1, id);
    return registry_finish(r, q, err);
}

/* A row whose fields do not fit is damage, not data. */
static int read_row(sqlite3_stmt *q, struct registry_sandbox *s)
{
    *s = (struct registry_sandbox){.seq = sqlite3_column_int64(q, 0)};
    for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
        void *to = (char *)s + columns[i].at;
        const void *seed;
        int at = (int)i + 1;
        switch (columns[i].type) {
        case TEXT:
            if ((*(const char **)to = registry_text(q, at)) == NULL)
                return -1;
            break;
        case INT:
            *(int *)to = sqlite3_column_int(q, at);
            break;
        case INT64:
            *(int64_t *)to = sqlite3_column_int64(q, at);
            break;
        case SEED:
            seed = sqlite3_column_blob(q, at);
            if (seed == NULL || sqlite3_column_bytes(q, at) != IDENTITY_SEED)
                return -1;
            memcpy(to, seed, IDENTITY_SEED);
        }
    }
    return strlen(s->id) > IDENTITY_ID_MAX || strlen(s->policy) > IDENTITY_POLICY_MAX ? -1 : 0;
}

struct each_sandbox {
    int (*fn)(void *arg, const struct registry_sandbox *s);
    void *arg;
};

static int on_sandbox(void *arg, sqlite3_stmt *q, struct err *err)
{
    struct each_sandbox *each = arg;
    struct registry_sandbox s;
    if (read_row(q, &s) < 0)
        return err_set(err, ERR_PARSE, "the registry holds a damaged sandbox");
    return each->fn(each->arg, &s);
}

int registry_sandbox_each(struct registry *r,
                          int (*fn)(void *arg, const struct registry_sandbox *s), void *arg,
                          struct err *err)
{
    static const char sql[] = "SELECT seq" COLUMNS(NAME_SQL, NAME_SQL) " FROM sandbox ORDER BY seq";
    struct each_sandbox each = {fn, arg};
    return registry_rows(r, registry_prepare(r, sql, err), on_sandbox, &each, err);
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

struct each_name {
    void (*fn)(void *arg, const char *host);
    void *arg;
};

static int on_name(void *arg, sqlite3_stmt *q, struct err *err UNUSED)
{
    struct each_name *each = arg;
    if (registry_text(q, 0))
        each->fn(each->arg, registry_text(q, 0));
    return 0;
}

int registry_name_each(struct registry *r, const char *sandbox,
                       void (*fn)(void *arg, const char *host), void *arg, struct err *err)
{
    sqlite3_stmt *q =
        registry_prepare(r, "SELECT host FROM sandbox_name WHERE sandbox = ? ORDER BY number", err);
    struct each_name each = {fn, arg};
    if (q)
        bind_text(q, 1, sandbox);
    return registry_rows(r, q, on_name, &each, err);
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

struct each_port {
    void (*fn)(void *arg, const char *address, unsigned port);
    void *arg;
};

static int on_port(void *arg, sqlite3_stmt *q, struct err *err UNUSED)
{
    struct each_port *each = arg;
    if (registry_text(q, 0))
        each->fn(each->arg, registry_text(q, 0), (unsigned)sqlite3_column_int(q, 1));
    return 0;
}

int registry_port_each(struct registry *r, const char *sandbox,
                       void (*fn)(void *arg, const char *address, unsigned port), void *arg,
                       struct err *err)
{
    sqlite3_stmt *q = registry_prepare(
        r, "SELECT address, port FROM sandbox_port WHERE sandbox = ? ORDER BY rowid", err);
    struct each_port each = {fn, arg};
    if (q)
        bind_text(q, 1, sandbox);
    return registry_rows(r, q, on_port, &each, err);
}
