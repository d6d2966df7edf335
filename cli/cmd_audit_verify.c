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

static json_t *as_json(const char *dir, const struct verify_result *v)
{
    json_t *o =
        json_pack("{s:s,s:b,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:b}", "dir", dir, "ok", v->ok, "records",
                  (json_int_t)v->records, "files", (json_int_t)v->files, "first_seq",
                  (json_int_t)v->first_seq, "checkpoints", (json_int_t)v->checkpoints, "anchored",
                  (json_int_t)v->anchored, "signed_seq", (json_int_t)v->signed_seq, "unsigned",
                  (json_int_t)v->unsigned_records, "torn_end", v->torn);
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
        printf(", %llu records, signed up to %llu, %llu checkpoints",
               (unsigned long long)v->records, (unsigned long long)v->signed_seq,
               (unsigned long long)v->checkpoints);
        if (v->first_seq > 1)
            printf(", the first %llu removed by retention", (unsigned long long)v->first_seq - 1);
        if (v->anchored)
            printf(", %llu of the anchor found", (unsigned long long)v->anchored);
        if (v->unsigned_records)
            printf(", %llu after that not signed", (unsigned long long)v->unsigned_records);
        printf("%s\n", v->torn ? ", last line unfinished" : "");
        return;
    }
    printf("%s%s%s", dir, v->file[0] ? "/" : "", v->file);
    if (v->line)
        printf(":%llu", (unsigned long long)v->line);
    printf(": ");
    out_coloured(stdout, COLOUR_RED, "broken");
    printf(": %s (%llu records before it are good)\n", v->why, (unsigned long long)v->records);
}

/* One directory, if it has a log. Counts in *seen; false when it is broken. */
static bool verify_one(const char *dir, int fd, const struct signing_key *key,
                       struct verify_anchor *anchor, json_t *list, size_t *seen)
{
    struct verify_result v;
    if (!verify_has_log(fd))
        return true;
    verify_dir(fd, key, anchor, &v);
    ++*seen;
    if (list)
        json_array_append_new(list, as_json(dir, &v));
    else
        as_text(dir, &v);
    return v.ok;
}

static struct signing_key *find_key(int fd, const char *given, struct err *err)
{
    if (given)
        return signing_key_public(AT_FDCWD, given, err);
    /* a run's own directory shares the key of the directory above it */
    if (faccessat(fd, "key.pub", F_OK, 0) < 0 && faccessat(fd, "../key.pub", F_OK, 0) == 0)
        return signing_key_public(fd, "../key.pub", err);
    return signing_key_public(fd, "key.pub", err);
}

static int verify_runs(const char *dir, int fd, const struct signing_key *key, json_t *list,
                       size_t *seen, bool *good, struct err *err)
{
    struct log_dir runs;
    if (log_dir_runs(fd, &runs, err) < 0)
        return -1;
    for (size_t i = 0; i < runs.n; i++) {
        char *path = paths_join(dir, runs.name[i]);
        int sub = openat(fd, runs.name[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (sub < 0) {
            out_error("cannot open %s", path);
            *good = false;
        } else {
            *good &= verify_one(path, sub, key, NULL, list, seen);
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
static json_t *key_hex(const struct signing_key *key)
{
    unsigned char raw[32];
    char text[2 * sizeof raw + 1] = "";
    if (signing_key_raw(key, raw) == 0)
        for (size_t i = 0; i < sizeof raw; i++)
            snprintf(text + 2 * i, 3, "%02x", raw[i]);
    return json_string(text);
}

static int verify_all(const char *dir, const char *key_file, const char *anchor_file, bool json)
{
    struct err err = {0};
    size_t seen = 0;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        err_sys(&err, "cannot open the audit directory %s", dir);
        return out_fail(&err);
    }
    json_t *list = json ? json_array() : NULL;
    struct signing_key *key = find_key(fd, key_file, &err);
    struct verify_anchor *anchor = key && anchor_file ? read_anchor(anchor_file, key, &err) : NULL;
    bool can = key && (anchor || anchor_file == NULL);
    bool good = can && verify_one(dir, fd, key, anchor, list, &seen);
    int r = can ? verify_runs(dir, fd, key, list, &seen, &good, &err) : -1;
    if (r == 0 && seen == 0)
        r = err_set(&err, ERR_UNREADY, "there is no audit log in %s", dir);
    json_t *used = key && json ? key_hex(key) : NULL;
    verify_anchor_free(anchor);
    signing_key_free(key);
    close(fd);
    if (key == NULL && key_file == NULL)
        err_wrap(&err, "%s has no audit log, or its key must be given with --key", dir);
    if (r < 0) {
        json_decref(list);
        json_decref(used);
        return out_fail(&err);
    }
    if (json && out_json(json_pack("{s:b,s:o,s:o}", "ok", good, "key", used, "logs", list)) < 0)
        return EXIT_NO;
    return out_flush() < 0 || !good ? EXIT_NO : EXIT_OK;
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
    struct args a = {.cmd = &audit_verbs[3], .argc = argc, .argv = argv};
    struct audit_where w = {0};
    struct err err = {0};
    uint64_t seq;
    int id, code = 0;
    while ((id = args_next(&a)) >= 0)
        *(id == AUDIT_OPT_DIR ? &w.dir : &w.config) = a.value;
    if (id == ARGS_STOP)
        return a.exit_code;
    if (a.next == argc || slice_u64(slice_str(argv[a.next]), INT64_MAX, &seq) < 0 || seq == 0)
        return args_usage(a.cmd, "which record? Its \"seq\" is a number");
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

int audit_run_verify(int argc, char **argv)
{
    struct args a = {.cmd = &audit_verbs[2], .argc = argc, .argv = argv};
    struct audit_where w = {0};
    const char *key = NULL, *anchor = NULL, *proof = NULL;
    int id, code = 0;
    while ((id = args_next(&a)) >= 0) {
        if (id == AUDIT_OPT_DIR)
            w.dir = a.value;
        else if (id == 'c')
            w.config = a.value;
        else
            *(id == AUDIT_OPT_KEY ? &key : id == AUDIT_OPT_ANCHOR ? &anchor : &proof) = a.value;
    }
    if (id == ARGS_STOP)
        return a.exit_code;
    if (proof && key == NULL)
        return args_usage(a.cmd, "--proof needs --key FILE: the public key of the log");
    if (proof)
        return check_proof(proof, key, a.json);
    char *dir = audit_where_dir(&a, &w, &code);
    if (dir == NULL)
        return code;
    code = verify_all(dir, key, anchor, a.json);
    free(dir);
    return code;
}
