/* durward audit verify|prove */
#include "audit_where.h"
#include "log_dir.h"
#include "out.h"
#include "paths.h"
#include "proof.h"
#include "verify.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

json_t *audit_verified(const char *dir, const struct verify_result *v)
{
    json_t *o =
        json_pack("{s:s,s:b,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:b}", "dir", dir, "ok", v->ok, "records",
                  (json_int_t)v->records, "files", (json_int_t)v->files, "first_seq",
                  (json_int_t)v->first_seq, "checkpoints", (json_int_t)v->checkpoints, "anchored",
                  (json_int_t)v->anchored, "signed_seq", (json_int_t)v->signed_seq, "unsigned",
                  (json_int_t)v->unsigned_records, "torn_end", v->torn);
    json_t *gaps = json_array();
    for (size_t i = 0; i < v->n_gaps; i++)
        json_array_append_new(gaps, json_pack("{s:s,s:I}", "sandbox", v->gap[i].sandbox, "records",
                                              (json_int_t)v->gap[i].records));
    json_object_set_new(o, "gaps", gaps);
    if (!v->ok) {
        json_object_set_new(o, "file", json_string(v->file));
        json_object_set_new(o, "line", json_integer((json_int_t)v->line));
        json_object_set_new(o, "why", json_string(v->why));
    }
    return o;
}

static void as_text(const char *dir, const struct verify_result *v)
{
    if (v->ok) {
        printf("%s: ", dir);
        out_coloured(stdout, COLOUR_GREEN, "good");
        printf(", %llu record%s, signed up to %llu, %llu checkpoint%s",
               (unsigned long long)v->records, v->records == 1 ? "" : "s",
               (unsigned long long)v->signed_seq, (unsigned long long)v->checkpoints,
               v->checkpoints == 1 ? "" : "s");
        if (v->first_seq > 1)
            printf(", the first %llu removed by retention", (unsigned long long)v->first_seq - 1);
        if (v->anchored)
            printf(", %llu of the anchor found", (unsigned long long)v->anchored);
        if (v->unsigned_records)
            printf(", %llu after that not signed", (unsigned long long)v->unsigned_records);
        printf("%s\n", v->torn ? ", last line unfinished" : "");
        for (size_t i = 0; i < v->n_gaps; i++)
            printf("  %llu records of sandbox %s removed by retention, in %llu places\n",
                   (unsigned long long)v->gap[i].records, v->gap[i].sandbox,
                   (unsigned long long)v->gap[i].places);
        return;
    }
    printf("%s%s%s", dir, v->file[0] ? "/" : "", v->file);
    if (v->line)
        printf(":%llu", (unsigned long long)v->line);
    printf(": ");
    out_coloured(stdout, COLOUR_RED, "broken");
    printf(": %s (%llu records before it are good)\n", v->why, (unsigned long long)v->records);
}

/* All logs of an audit directory together. */
struct verify_totals {
    struct verify_anchor *anchor; /* NULL: none */
    json_t *list;                 /* NULL: as text */
    size_t logs, broken;
    uint64_t records, files, checkpoints, not_signed, bytes;
    struct out_progress progress;
};

static void tell_one(struct verify_totals *t, const char *dir, const struct verify_result *v)
{
    t->logs++;
    t->broken += !v->ok;
    t->records += v->records;
    t->files += v->files;
    t->checkpoints += v->checkpoints;
    t->not_signed += v->unsigned_records;
    t->bytes += v->bytes;
    if (t->list) {
        json_array_append_new(t->list, audit_verified(dir, v));
    } else {
        out_progress_end(&t->progress);
        as_text(dir, v);
    }
}

/* One directory, if it has a log: a run's of this name, or the daemon's (""). */
static void verify_one(struct verify_totals *t, const char *dir, int fd, const char *log,
                       const struct signing_key *key)
{
    struct verify_result v;
    if (!verify_has_log(fd))
        return;
    out_progress(&t->progress, "%zu logs verified, %llu records", t->logs,
                 (unsigned long long)t->records);
    verify_dir(fd, key, t->anchor, &v);
    if (t->anchor)
        verify_settle(t->anchor, log, &v);
    tell_one(t, dir, &v);
}

/* Logs that the anchor knows and nobody finds here. */
static void tell_absent(struct verify_totals *t, const char *dir)
{
    struct verify_result v;
    uint64_t seq;
    for (const char *log; (log = verify_anchor_absent(t->anchor, &seq)) != NULL;) {
        char *path = *log ? paths_join(dir, log) : NULL;
        verify_absent(log, seq, &v);
        tell_one(t, path ? path : dir, &v);
        free(path);
    }
}

static void totals_text(const struct verify_totals *t)
{
    printf("all: ");
    out_coloured(stdout, t->broken ? COLOUR_RED : COLOUR_GREEN, t->broken ? "broken" : "good");
    if (t->broken)
        printf(" (%zu of %zu logs)", t->broken, t->logs);
    printf(", %zu logs, %llu records, %llu files, %llu checkpoints, %llu bytes, %llu not signed\n",
           t->logs, (unsigned long long)t->records, (unsigned long long)t->files,
           (unsigned long long)t->checkpoints, (unsigned long long)t->bytes,
           (unsigned long long)t->not_signed);
}

static json_t *totals_json(const struct verify_totals *t)
{
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "logs", (json_int_t)t->logs, "broken",
                     (json_int_t)t->broken, "records", (json_int_t)t->records, "files",
                     (json_int_t)t->files, "checkpoints", (json_int_t)t->checkpoints, "unsigned",
                     (json_int_t)t->not_signed, "bytes", (json_int_t)t->bytes);
}

struct signing_key *audit_key(int fd, const char *given, struct err *err)
{
    if (given)
        return signing_key_public(AT_FDCWD, given, err);
    /* a run's own directory shares the key of the directory above it */
    if (faccessat(fd, "key.pub", F_OK, 0) < 0 && faccessat(fd, "../key.pub", F_OK, 0) == 0)
        return signing_key_public(fd, "../key.pub", err);
    return signing_key_public(fd, "key.pub", err);
}

static int verify_runs(struct verify_totals *t, const char *dir, int fd,
                       const struct signing_key *key, struct err *err)
{
    struct log_dir runs;
    if (log_dir_runs(fd, &runs, err) < 0)
        return -1;
    for (size_t i = 0; i < runs.n; i++) {
        char *path = paths_join(dir, runs.name[i]);
        int sub = openat(fd, runs.name[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (sub < 0) {
            out_error("cannot open %s", path);
            t->broken++;
        } else {
            verify_one(t, path, sub, runs.name[i], key);
            close(sub);
        }
        free(path);
    }
    log_dir_done(&runs);
    return 0;
}

static struct verify_anchor *read_anchor(const char *file, const struct signing_key *key,
                                         struct err *err)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        err_sys(err, "cannot open the anchor %s", file);
        return NULL;
    }
    struct verify_anchor *a = verify_anchor_read(fd, key, err);
    close(fd);
    return a;
}

/* Which key all was checked with, to be compared with a copy kept elsewhere. */
json_t *audit_key_hex(const struct signing_key *key)
{
    unsigned char raw[32];
    char text[2 * sizeof raw + 1] = "";
    if (signing_key_raw(key, raw) == 0)
        for (size_t i = 0; i < sizeof raw; i++)
            snprintf(text + 2 * i, 3, "%02x", raw[i]);
    return json_string(text);
}

static int verify_report(struct verify_totals *t, json_t *key)
{
    bool good = t->broken == 0;
    if (t->list && out_json(json_pack("{s:b,s:o,s:O,s:o}", "ok", good, "key", key, "logs", t->list,
                                      "totals", totals_json(t))) < 0)
        return EXIT_NO;
    if (t->list == NULL && t->logs > 1)
        totals_text(t);
    return out_flush() < 0 || !good ? EXIT_NO : EXIT_OK;
}

/* Of a run's own directory, its log's name: what else an anchor holds is not looked for there. */
static char *run_of(const char *dir, int fd)
{
    char *path = faccessat(fd, "key.pub", F_OK, 0) < 0 ? realpath(dir, NULL) : NULL;
    const char *slash = path ? strrchr(path, '/') : NULL;
    char *name = slash && strncmp(slash, "/run-", 5) == 0 ? strdup(slash + 1) : NULL;
    free(path);
    return name;
}

/* The logs below DIR first where there is an anchor: what of it is in one of them is not missing in
 * the daemon's. */
static int verify_logs(struct verify_totals *t, const char *dir, int fd,
                       const struct signing_key *key, struct err *err)
{
    char *run = run_of(dir, fd);
    int r = 0;
    if (run && t->anchor && verify_anchor_of(t->anchor, run) == 0)
        r = err_set(err, ERR_UNREADY, "the anchor holds no checkpoint of %s", run);
    if (r == 0 && t->anchor == NULL)
        verify_one(t, dir, fd, "", key);
    if (r == 0)
        r = verify_runs(t, dir, fd, key, err);
    if (r == 0 && t->anchor)
        verify_one(t, dir, fd, run ? run : "", key);
    if (r == 0 && t->anchor && run == NULL)
        tell_absent(t, dir);
    free(run);
    return r;
}

static int verify_all(const char *dir, const char *key_file, const char *anchor_file, bool json)
{
    struct err err = {0};
    struct verify_totals t = {0};
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        err_sys(&err, "cannot open the audit directory %s", dir);
        return out_fail(&err);
    }
    t.list = json ? json_array() : NULL;
    struct signing_key *key = audit_key(fd, key_file, &err);
    t.anchor = key && anchor_file ? read_anchor(anchor_file, key, &err) : NULL;
    int r = key && (t.anchor || anchor_file == NULL) ? verify_logs(&t, dir, fd, key, &err) : -1;
    out_progress_end(&t.progress);
    if (r == 0 && t.logs == 0)
        r = err_set(&err, ERR_UNREADY, "there is no audit log in %s", dir);
    if (key == NULL && key_file == NULL)
        err_wrap(&err, "%s has no audit log, or its key must be given with --key", dir);
    int code = r < 0 ? out_fail(&err) : verify_report(&t, key && json ? audit_key_hex(key) : NULL);
    json_decref(t.list);
    verify_anchor_free(t.anchor);
    signing_key_free(key);
    close(fd);
    return code;
}

/* ---- proofs ---- */

static int check_proof(const char *file, const char *key_file, bool json)
{
    struct err err = {0};
    uint64_t seq = 0;
    json_error_t why;
    bool standard = strcmp(file, "-") == 0;
    json_t *proof = standard ? json_loadf(stdin, JSON_REJECT_DUPLICATES, &why)
                             : json_load_file(file, JSON_REJECT_DUPLICATES, &why);
    struct signing_key *key = signing_key_public(AT_FDCWD, key_file, &err);
    int r = key ? 0 : -1;
    if (r == 0 && proof == NULL)
        r = err_set(&err, ERR_PARSE, "%s: %s", standard ? "the proof" : file, why.text);
    if (r == 0)
        r = proof_check(proof, key, &seq, &err);
    const char *line = json_string_value(json_object_get(proof, "line"));
    if (r == 0 && json)
        r = out_json(json_pack("{s:b,s:I,s:s}", "ok", 1, "seq", (json_int_t)seq, "line", line));
    else if (r == 0)
        printf("good: record %llu stands in the log\n%s\n", (unsigned long long)seq, line);
    json_decref(proof);
    signing_key_free(key);
    if (r < 0 && err.text[0])
        return out_fail(&err);
    return r < 0 || out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

int audit_run_prove(int argc, char **argv)
{
    struct args a = {.cmd = args_verb(audit_verbs, "audit prove"), .argc = argc, .argv = argv};
    struct audit_where w = {0};
    struct err err = {0};
    uint64_t seq;
    int code = args_into(&a, &w);
    if (code != ARGS_END)
        return code;
    if (a.next == argc || slice_u64(slice_str(argv[a.next]), INT64_MAX, &seq) < 0 || seq == 0)
        return args_usage(
            a.cmd, "which record? 'durward audit query --json' prints each one's number, \"seq\"");
    a.next++;
    char *dir = audit_where_dir(&a, &w, &code);
    if (dir == NULL)
        return code;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    json_t *proof = NULL;
    if (fd < 0)
        err_sys(&err, "cannot open the audit directory %s", dir);
    else
        proof = proof_make(fd, seq, &err);
    if (fd >= 0)
        close(fd);
    free(dir);
    return proof == NULL ? out_fail(&err) : out_json(proof) < 0 ? EXIT_NO : EXIT_OK;
}

/* ---- the command ---- */

struct verify_asked {
    struct audit_where where; /* first: AUDIT_OPTIONS_WHERE */
    const char *key, *anchor, *proof, *incident, *heads, *logs;
    bool fleet;
};

const struct arg_option audit_verify_options[] = {
    {0, "key", "FILE", "the public key (default: key.pub of the directory)",
     offsetof(struct verify_asked, key)},
    {0, "anchor", "FILE", "checkpoints that were kept elsewhere, one a line",
     offsetof(struct verify_asked, anchor)},
    {0, "proof", "FILE", "check what 'audit prove' printed, not a log (- is standard input)",
     offsetof(struct verify_asked, proof)},
    {0, "case", "FILE", "check what 'audit case' printed, likewise",
     offsetof(struct verify_asked, incident)},
    {0, "fleet", NULL, "check what the hosts of the fleet signed about their logs",
     offsetof(struct verify_asked, fleet)},
    {0, "heads", "FILE,...", "with --fleet: copies of hosts' fleet.heads, not the directory's",
     offsetof(struct verify_asked, heads)},
    {0, "logs", "HOST=DIR,...", "with --fleet: copies of hosts' audit directories",
     offsetof(struct verify_asked, logs)},
    AUDIT_OPTIONS_WHERE,
    {0},
};

int audit_run_verify(int argc, char **argv)
{
    struct args a = {.cmd = args_verb(audit_verbs, "audit verify"), .argc = argc, .argv = argv};
    struct verify_asked asked = {0};
    int code = args_into(&a, &asked);
    if (code != ARGS_END)
        return code;
    if (asked.fleet && (asked.key || asked.anchor || asked.proof || asked.incident))
        return args_usage(a.cmd, "--fleet takes the keys of the configuration; not --key, "
                                 "--anchor, --proof or --case");
    if (!asked.fleet && (asked.heads || asked.logs))
        return args_usage(a.cmd, "--heads and --logs go with --fleet");
    if ((asked.proof || asked.incident) && asked.key == NULL)
        return args_usage(a.cmd, "--proof and --case need --key FILE: the public key of the log");
    if (asked.incident)
        return audit_check_case(asked.incident, asked.key, a.json);
    if (asked.proof)
        return check_proof(asked.proof, asked.key, a.json);
    char *dir = audit_where_dir(&a, &asked.where, &code);
    if (dir == NULL)
        return code;
    struct audit_fleet_asked fleet = {asked.where.config, asked.heads, asked.logs};
    code = asked.fleet ? audit_verify_fleet(&fleet, dir, a.json)
                       : verify_all(dir, asked.key, asked.anchor, a.json);
    free(dir);
    return code;
}
