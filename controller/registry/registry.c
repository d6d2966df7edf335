/* Opens the database and brings its tables up to date, runs statements for the other registry_*.c,
 * and has the rows of identities. SQLite is kept from resolving the file's path. */
#include "registry_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The lock is for ever, before the log is made: then the log's index is memory of this process, not
 * a shared map. NORMAL survives kill -9; what must survive the power's going sets FULL. */
static const char schema[] =
    "PRAGMA locking_mode=EXCLUSIVE;"
    "PRAGMA journal_mode=WAL;"
    "PRAGMA synchronous=NORMAL;"
    "PRAGMA temp_store=MEMORY;"
    "PRAGMA mmap_size=0;"
    "PRAGMA trusted_schema=OFF;"
    "CREATE TABLE IF NOT EXISTS identity ("
    "  id TEXT PRIMARY KEY NOT NULL, kind INTEGER NOT NULL, policy TEXT NOT NULL,"
    "  seed BLOB NOT NULL CHECK (length(seed) = 16), expires INTEGER NOT NULL,"
    "  revoked INTEGER NOT NULL DEFAULT 0);"
    "CREATE UNIQUE INDEX IF NOT EXISTS one_listener ON identity (policy)"
    "  WHERE kind = 2 AND revoked = 0;"
    "CREATE TABLE IF NOT EXISTS sandbox ("
    "  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, name TEXT NOT NULL,"
    "  policy TEXT NOT NULL, labels TEXT NOT NULL, env TEXT NOT NULL,"
    "  seed BLOB NOT NULL CHECK (length(seed) = 16), state INTEGER NOT NULL, reason TEXT NOT NULL,"
    "  generation INTEGER NOT NULL, created INTEGER NOT NULL, expires INTEGER NOT NULL,"
    "  ttl INTEGER NOT NULL, idle_ttl INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS sandbox_name ("
    "  sandbox TEXT NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,"
    "  number INTEGER NOT NULL, host TEXT NOT NULL, PRIMARY KEY (sandbox, number)) WITHOUT ROWID;"
    "PRAGMA foreign_keys=ON;";

/* What came after version 2, one step a version. */
static const char *const steps[] = {
    "BEGIN;"
    "ALTER TABLE sandbox ADD COLUMN on_idle INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sandbox ADD COLUMN auto_resume INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE sandbox ADD COLUMN snapshot TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE sandbox ADD COLUMN backend TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE sandbox ADD COLUMN image TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE sandbox ADD COLUMN parent TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE sandbox ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;"
    "PRAGMA user_version=3;"
    "COMMIT;",
    "BEGIN;"
    "CREATE TABLE snapshot ("
    "  name TEXT PRIMARY KEY NOT NULL, sandbox TEXT NOT NULL, policy TEXT NOT NULL,"
    "  image TEXT NOT NULL, created INTEGER NOT NULL, ready INTEGER NOT NULL);"
    "CREATE TABLE snapshot_name ("
    "  snapshot TEXT NOT NULL REFERENCES snapshot (name) ON DELETE CASCADE,"
    "  number INTEGER NOT NULL, host TEXT NOT NULL, PRIMARY KEY (snapshot, number)) WITHOUT ROWID;"
    "PRAGMA user_version=4;"
    "COMMIT;",
    "BEGIN;"
    "CREATE TABLE bearer ("
    "  id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL,"
    "  hash BLOB NOT NULL CHECK (length(hash) = 32), scopes INTEGER NOT NULL,"
    "  policies TEXT NOT NULL, labels TEXT NOT NULL,"
    "  created INTEGER NOT NULL, expires INTEGER NOT NULL);"
    "PRAGMA user_version=5;"
    "COMMIT;",
    "BEGIN;"
    "CREATE TABLE sandbox_port ("
    "  sandbox TEXT NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,"
    "  address TEXT NOT NULL, port INTEGER NOT NULL);"
    "PRAGMA user_version=6;"
    "COMMIT;",
    "BEGIN;"
    "ALTER TABLE sandbox ADD COLUMN restoring TEXT NOT NULL DEFAULT '';"
    "PRAGMA user_version=7;"
    "COMMIT;",
    "BEGIN;"
    "CREATE TABLE revoked_floor (one INTEGER PRIMARY KEY CHECK (one = 1), expires INTEGER NOT "
    "NULL);"
    "INSERT INTO revoked_floor VALUES (1, 0);"
    "PRAGMA user_version=8;"
    "COMMIT;",
    "BEGIN;"
    "ALTER TABLE sandbox ADD COLUMN volumes TEXT NOT NULL DEFAULT '[]';"
    "ALTER TABLE bearer ADD COLUMN volume_bytes INTEGER NOT NULL DEFAULT -1;"
    "CREATE TABLE volume ("
    "  name TEXT PRIMARY KEY NOT NULL, policy TEXT NOT NULL, labels TEXT NOT NULL,"
    "  token TEXT NOT NULL, snapshot_of TEXT NOT NULL, size INTEGER NOT NULL,"
    "  many INTEGER NOT NULL, created INTEGER NOT NULL, ready INTEGER NOT NULL);"
    "PRAGMA user_version=9;"
    "COMMIT;",
    "BEGIN;"
    "CREATE TABLE suppression ("
    "  id TEXT PRIMARY KEY NOT NULL, policy TEXT NOT NULL, code TEXT NOT NULL, host TEXT NOT NULL,"
    "  method TEXT NOT NULL, path TEXT NOT NULL, sandbox TEXT NOT NULL, reason TEXT NOT NULL,"
    "  made_by TEXT NOT NULL, accepted_by TEXT NOT NULL, lifted_by TEXT NOT NULL,"
    "  created INTEGER NOT NULL, expires INTEGER NOT NULL, accepted INTEGER NOT NULL,"
    "  lifted INTEGER NOT NULL);"
    "PRAGMA user_version=10;"
    "COMMIT;",
    "BEGIN;"
    "ALTER TABLE sandbox ADD COLUMN soft_ttl INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sandbox ADD COLUMN on_soft INTEGER NOT NULL DEFAULT 2;"
    "ALTER TABLE sandbox ADD COLUMN token TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE sandbox ADD COLUMN boot TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE sandbox ADD COLUMN ends INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sandbox ADD COLUMN soft_ends INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sandbox ADD COLUMN used INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE bearer ADD COLUMN max_sandboxes INTEGER NOT NULL DEFAULT -1;"
    "PRAGMA user_version=11;"
    "COMMIT;",
    "BEGIN;"
    "ALTER TABLE sandbox ADD COLUMN pod TEXT NOT NULL DEFAULT '';"
    "PRAGMA user_version=12;"
    "COMMIT;",
    "BEGIN;"
    "ALTER TABLE sandbox ADD COLUMN template TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE sandbox ADD COLUMN pooled INTEGER NOT NULL DEFAULT 0;"
    "PRAGMA user_version=13;"
    "COMMIT;",
    "BEGIN;"
    "CREATE TABLE fleet_note ("
    "  kind TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, seconds INTEGER NOT NULL,"
    "  PRIMARY KEY (kind, id));"
    "PRAGMA user_version=14;"
    "COMMIT;",
    "BEGIN;"
    "ALTER TABLE snapshot ADD COLUMN labels TEXT NOT NULL DEFAULT '{}';"
    "PRAGMA user_version=15;"
    "COMMIT;",
};
enum { FIRST_VERSION = 2 };

/* The state directory is a descriptor; its path may lead through directories that this role, under
 * its own uid, cannot search. SQLite must therefore not resolve the name it is given. */
static int same_name(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
    (void)vfs;
    if (snprintf(out, (size_t)size, "%s", name) >= size)
        return SQLITE_CANTOPEN;
    return SQLITE_OK;
}

static const char *own_vfs(void)
{
    static sqlite3_vfs vfs;
    if (vfs.zName == NULL) {
        sqlite3_vfs *standard = sqlite3_vfs_find(NULL);
        if (standard == NULL)
            return NULL;
        vfs = *standard;
        vfs.pNext = NULL;
        vfs.zName = "durward";
        vfs.xFullPathname = same_name;
        if (sqlite3_vfs_register(&vfs, 0) != SQLITE_OK)
            return NULL;
    }
    return vfs.zName;
}

int registry_fail(struct registry *r, const char *what, struct err *err)
{
    return err_set(err, ERR_SYS, "the registry cannot %s: %s", what,
                   r->db ? sqlite3_errmsg(r->db) : "out of memory");
}

static int bring_up(struct registry *r)
{
    if (sqlite3_exec(r->db, schema, NULL, NULL, NULL) != SQLITE_OK)
        return -1;
    sqlite3_stmt *s = registry_prepare(r, "PRAGMA user_version", NULL);
    int version = s && sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int(s, 0) : -1;
    sqlite3_finalize(s);
    if (version < 0)
        return -1;
    size_t from = version > FIRST_VERSION ? (size_t)(version - FIRST_VERSION) : 0;
    for (size_t i = from; i < ARRAY_LEN(steps); i++)
        if (sqlite3_exec(r->db, steps[i], NULL, NULL, NULL) != SQLITE_OK)
            return -1;
    return 0;
}

struct registry *registry_open(int dirfd, struct err *err)
{
    char path[64];
    struct registry *r = calloc(1, sizeof *r);
    if (r == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    unsigned char some;
    sqlite3_randomness(sizeof some, &some); /* what it wants of /dev/urandom it takes here */
    snprintf(path, sizeof path, "/proc/self/fd/%d/registry.db", dirfd);
    mode_t mask = umask(077);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    bool bad = sqlite3_open_v2(path, &r->db, flags, own_vfs()) != SQLITE_OK ||
               sqlite3_busy_timeout(r->db, 2000) != SQLITE_OK || bring_up(r) < 0;
    umask(mask);
    if (bad) {
        registry_fail(r, "be opened", err);
        registry_close(r);
        return NULL;
    }
    return r;
}

void registry_close(struct registry *r)
{
    if (r)
        sqlite3_close(r->db);
    free(r);
}

sqlite3_stmt *registry_prepare(struct registry *r, const char *sql, struct err *err)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(r->db, sql, -1, &s, NULL) != SQLITE_OK)
        registry_fail(r, "be asked", err);
    return s;
}

int registry_finish(struct registry *r, sqlite3_stmt *s, struct err *err)
{
    int step = sqlite3_step(s);
    int bad = step != SQLITE_DONE ? registry_fail(r, "be written", err) : 0;
    sqlite3_finalize(s);
    return bad;
}

int registry_rows(struct registry *r, sqlite3_stmt *q,
                  int (*fn)(void *arg, sqlite3_stmt *q, struct err *err), void *arg,
                  struct err *err)
{
    int step, stop = 0;
    if (q == NULL)
        return -1;
    while (stop == 0 && (step = sqlite3_step(q)) != SQLITE_DONE)
        stop = step == SQLITE_ROW ? fn(arg, q, err) : registry_fail(r, "be read", err);
    sqlite3_finalize(q);
    return stop;
}

const char *registry_text(sqlite3_stmt *q, int column)
{
    return (const char *)sqlite3_column_text(q, column);
}

/* From now on commits do (not) wait for the disk. */
static int set_durable(struct registry *r, bool durable, struct err *err)
{
    const char *sql = durable ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL";
    if (sqlite3_exec(r->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return registry_fail(r, "be configured", err);
    return 0;
}

int registry_finish_durably(struct registry *r, sqlite3_stmt *s, struct err *err)
{
    if (set_durable(r, true, err) < 0) {
        sqlite3_finalize(s);
        return -1;
    }
    int bad = registry_finish(r, s, err);
    return set_durable(r, false, bad ? NULL : err) < 0 ? -1 : bad;
}

int registry_add(struct registry *r, const struct identity *i, struct err *err)
{
    sqlite3_stmt *s = registry_prepare(
        r, "INSERT INTO identity (id, kind, policy, seed, expires) VALUES (?,?,?,?,?)", err);
    if (s == NULL)
        return -1;
    sqlite3_bind_text(s, 1, i->id, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 2, i->kind);
    sqlite3_bind_text(s, 3, i->policy, -1, SQLITE_STATIC);
    sqlite3_bind_blob(s, 4, i->seed, IDENTITY_SEED, SQLITE_STATIC);
    sqlite3_bind_int64(s, 5, i->expires);
    return registry_finish_durably(r, s, err);
}

int registry_revoke(struct registry *r, const char *id, int64_t *expires, struct err *err)
{
    /* read first: what is revoked for good must be announced, and nothing may fail between */
    sqlite3_stmt *s =
        registry_prepare(r, "SELECT expires FROM identity WHERE id = ? AND revoked = 0", err);
    if (s == NULL)
        return -1;
    sqlite3_bind_text(s, 1, id, -1, SQLITE_STATIC);
    int step = sqlite3_step(s);
    *expires = step == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    int bad = step == SQLITE_ROW || step == SQLITE_DONE ? 0 : registry_fail(r, "be read", err);
    sqlite3_finalize(s);
    if (bad || step == SQLITE_DONE)
        return bad ? -1 : 1;
    s = registry_prepare(r, "UPDATE identity SET revoked = 1 WHERE id = ?", err);
    if (s == NULL)
        return -1;
    sqlite3_bind_text(s, 1, id, -1, SQLITE_STATIC);
    return registry_finish_durably(r, s, err);
}

/* The clock may have been put forward, and be put back: of those that have expired the last are
 * kept, and of what goes it is known up to when it might have been good. */
int registry_prune(struct registry *r, int64_t now, struct err *err)
{
    static const char sql[] =
        "BEGIN;"
        "CREATE TEMP TABLE gone AS SELECT * FROM (SELECT id, revoked, expires, row_number() OVER"
        "  (PARTITION BY revoked ORDER BY expires DESC, rowid DESC) AS place"
        "  FROM identity WHERE expires < %lld) WHERE place > %d;"
        "UPDATE revoked_floor SET expires ="
        "  max(expires, (SELECT ifnull(max(expires), 0) FROM gone WHERE revoked = 1));"
        "DELETE FROM identity WHERE id IN (SELECT id FROM gone);"
        "DROP TABLE gone;"
        "COMMIT;";
    char text[sizeof sql + 64];
    snprintf(text, sizeof text, sql, (long long)now, REGISTRY_EXPIRED_MAX);
    if (sqlite3_exec(r->db, text, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    registry_fail(r, "be written", err);
    (void)sqlite3_exec(r->db, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}

int registry_revoked_floor(struct registry *r, int64_t *ret, struct err *err)
{
    sqlite3_stmt *s = registry_prepare(r, "SELECT expires FROM revoked_floor", err);
    if (s == NULL)
        return -1;
    int bad = sqlite3_step(s) == SQLITE_ROW ? 0 : registry_fail(r, "be read", err);
    *ret = bad ? 0 : sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return bad;
}

/* A row whose fields do not fit is damage, not data. */
static int read_row(sqlite3_stmt *s, struct identity *i)
{
    const char *id = (const char *)sqlite3_column_text(s, 0);
    const char *policy = (const char *)sqlite3_column_text(s, 2);
    const void *seed = sqlite3_column_blob(s, 3);
    int kind = sqlite3_column_int(s, 1);
    if (!id || !policy || !seed || sqlite3_column_bytes(s, 3) != IDENTITY_SEED ||
        (kind != IDENTITY_TOKEN && kind != IDENTITY_LISTENER) || strlen(id) > IDENTITY_ID_MAX ||
        strlen(policy) > IDENTITY_POLICY_MAX)
        return -1;
    *i = (struct identity){.kind = (enum identity_kind)kind, .expires = sqlite3_column_int64(s, 4)};
    memcpy(i->id, id, strlen(id) + 1);
    memcpy(i->policy, policy, strlen(policy) + 1);
    memcpy(i->seed, seed, IDENTITY_SEED);
    return 0;
}

static int each(struct registry *r, int revoked, int64_t now,
                int (*fn)(void *arg, const struct identity *i), void *arg, struct err *err)
{
    sqlite3_stmt *s = registry_prepare(r,
                                       "SELECT id, kind, policy, seed, expires FROM identity"
                                       " WHERE revoked = ? AND expires > ? ORDER BY rowid",
                                       err);
    if (s == NULL)
        return -1;
    sqlite3_bind_int(s, 1, revoked);
    sqlite3_bind_int64(s, 2, now);
    int step, bad = 0, stop = 0;
    while (!stop && !bad && (step = sqlite3_step(s)) != SQLITE_DONE) {
        struct identity i;
        if (step != SQLITE_ROW)
            bad = registry_fail(r, "be read", err);
        else if (read_row(s, &i) < 0)
            bad = err_set(err, ERR_PARSE, "the registry holds a damaged identity");
        else
            stop = fn(arg, &i);
    }
    sqlite3_finalize(s);
    return bad;
}

int registry_each(struct registry *r, int64_t now, int (*fn)(void *arg, const struct identity *i),
                  void *arg, struct err *err)
{
    return each(r, 0, now, fn, arg, err);
}

int registry_each_revoked(struct registry *r, int (*fn)(void *arg, const struct identity *i),
                          void *arg, struct err *err)
{
    return each(r, 1, 0, fn, arg, err);
}

int registry_listener(struct registry *r, const char *policy, struct identity *ret, struct err *err)
{
    sqlite3_stmt *s = registry_prepare(r,
                                       "SELECT id, kind, policy, seed, expires FROM identity"
                                       " WHERE kind = 2 AND revoked = 0 AND policy = ?",
                                       err);
    if (s == NULL)
        return -1;
    sqlite3_bind_text(s, 1, policy, -1, SQLITE_STATIC);
    int step = sqlite3_step(s), r2 = 1;
    if (step == SQLITE_ROW)
        r2 = read_row(s, ret) == 0 ? 0 : err_set(err, ERR_PARSE, "the registry is damaged");
    else if (step != SQLITE_DONE)
        r2 = registry_fail(r, "be read", err);
    sqlite3_finalize(s);
    return r2;
}
