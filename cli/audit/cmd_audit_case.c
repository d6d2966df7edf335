/* durward audit case, and audit verify --case: records as evidence, apart from their log. */
#include "audit_view.h"
#include "audit_where.h"
#include "audit_wish.h"
#include "case.h"
#include "log_tree.h"
#include "out.h"
#include "render.h"
#include "timestamp.h"
#include "verify.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CASE_DEFAULT = 1000 };

/* ---- made ---- */

struct numbers {
    uint64_t *seq;
    size_t n, room;
};

static void take(void *arg, const struct query_row *row)
{
    struct numbers *all = arg;
    struct render_head h;
    if (all->n < all->room && row->kind != RECORD_GAP && render_parse(row->line, &h) == 0)
        all->seq[all->n++] = h.seq;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Which records are meant, of this directory itself. */
static int find(const char *dir, const struct audit_wish *w, struct numbers *all, struct err *err)
{
    struct log_tree t;
    bool more = false;
    uint64_t bad = 0;
    if (log_tree_open(&t, dir, err) < 0)
        return -1;
    log_tree_top(&t);
    int r = log_search_newest(&t, &w->f, &w->search, take, all, &more, &bad, err);
    log_tree_done(&t);
    if (r == 0 && more)
        out_error("these are the newest %zu; there may be older ones: --limit N", w->search.rows);
    if (r == 0 && all->n)
        qsort(all->seq, all->n, sizeof *all->seq, ascending);
    return r;
}

static json_t *asked(const struct audit_wish *w)
{
    json_t *o = json_object();
    const struct {
        const char *name, *value;
    } said[] = {{"since", w->common.since},
                {"until", w->until},
                {"kind", w->kind},
                {"decision", w->decision},
                {"sandbox", w->f.sandbox},
                {"policy", w->f.policy},
                {"host", w->f.host},
                {"method", w->f.method},
                {"rule", w->f.rule},
                {"credential", w->f.credential},
                {"status", w->status},
                {"code", w->f.code},
                {"id", w->f.id},
                {"role", w->f.role},
                {"text", w->f.text}};
    for (size_t i = 0; i < ARRAY_LEN(said); i++)
        if (said[i].value)
            json_object_set_new(o, said[i].name, json_string(said[i].value));
    return o;
}

/* What makes evidence of records: who made it of what, and that it holds. */
static int finish(json_t *o, const char *dir, int fd, const struct audit_wish *w,
                  const struct signing_key *key, struct err *err)
{
    struct case_result r;
    struct verify_result v;
    char now[TIMESTAMP_MAX];
    if (case_check(o, key, &r, err) < 0)
        return -1;
    timestamp_text(timestamp_now(), now, sizeof now);
    json_object_set_new(o, "made", json_string(now));
    json_object_set_new(o, "asked", asked(w));
    json_object_set_new(o, "key", audit_key_hex(key));
    json_object_set_new(o, "verified",
                        json_pack("{s:I,s:I}", "records", (json_int_t)r.records, "unsigned",
                                  (json_int_t)r.not_signed));
    if (w->whole) {
        verify_dir(fd, key, NULL, &v);
        json_object_set_new(o, "log", audit_verified(dir, &v));
    }
    return 0;
}

static json_t *make(const char *dir, int fd, const struct audit_wish *w, struct err *err)
{
    struct numbers all = {.room = w->search.rows};
    json_t *o = NULL;
    struct signing_key *key = audit_key(fd, NULL, err);
    all.seq = calloc(all.room, sizeof *all.seq);
    if (key && all.seq == NULL)
        err_set(err, ERR_INTERNAL, "out of memory");
    else if (key && find(dir, w, &all, err) == 0)
        o = case_make(fd, all.seq, all.n, err);
    if (o && finish(o, dir, fd, w, key, err) < 0) {
        json_decref(o);
        o = NULL;
    }
    free(all.seq);
    signing_key_free(key);
    return o;
}

int audit_run_case(int argc, char **argv)
{
    struct args a = {.cmd = args_verb(audit_verbs, "audit case"), .argc = argc, .argv = argv};
    struct audit_wish w = {.search.rows = CASE_DEFAULT, .probes = true};
    struct err err = {0};
    int code = audit_wish_read(&a, &w, CASE_RECORDS_MAX);
    if (code != ARGS_END)
        return code;
    if (w.search.rows == 0)
        return args_usage(a.cmd, "--limit takes a number from 1 to %d", CASE_RECORDS_MAX);
    char *dir = audit_wish_dir(&a, &w, &code);
    if (dir == NULL)
        return code;
    json_t *o = NULL;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        err_sys(&err, "cannot open the audit directory %s", dir);
    else
        o = make(dir, fd, &w, &err);
    if (fd >= 0)
        close(fd);
    free(dir);
    if (o == NULL)
        return out_fail(&err);
    return out_json(o) < 0 ? EXIT_NO : EXIT_OK;
}

/* ---- checked ---- */

static void show(const json_t *records, const char *member)
{
    struct audit_view v = {0};
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)(uintptr_t)records, i, one)
    {
        const char *line = json_string_value(member ? json_object_get(one, member) : one);
        query_show(slice_str(line), SLICE(""), audit_view_row, &v);
    }
}

static void tell(const json_t *o, const struct case_result *r)
{
    const json_t *not_signed = json_object_get(o, "unsigned");
    show(json_object_get(o, "records"), "line");
    out_coloured(stdout, COLOUR_GREEN, "good");
    printf(": %llu records stand in the log\n", (unsigned long long)r->records);
    if (r->not_signed == 0)
        return;
    show(not_signed, NULL);
    out_coloured(stdout, COLOUR_RED, "not proven");
    printf(": %llu newer records, which no checkpoint covered when the case was made\n",
           (unsigned long long)r->not_signed);
}

int audit_check_case(const char *file, const char *key_file, bool json)
{
    struct err err = {0};
    json_error_t why;
    struct case_result r = {0};
    bool standard = strcmp(file, "-") == 0;
    json_t *o = standard ? json_loadf(stdin, JSON_REJECT_DUPLICATES, &why)
                         : json_load_file(file, JSON_REJECT_DUPLICATES, &why);
    struct signing_key *key = signing_key_public(AT_FDCWD, key_file, &err);
    int bad = key ? 0 : -1;
    if (bad == 0 && o == NULL)
        bad = err_set(&err, ERR_PARSE, "%s: %s", standard ? "the case" : file, why.text);
    if (bad == 0)
        bad = case_check(o, key, &r, &err);
    signing_key_free(key);
    if (bad == 0 && json)
        bad = out_json(json_pack("{s:b,s:I,s:I}", "ok", r.not_signed == 0, "records",
                                 (json_int_t)r.records, "unsigned", (json_int_t)r.not_signed));
    else if (bad == 0)
        tell(o, &r);
    json_decref(o);
    if (bad < 0 && err.text[0])
        return out_fail(&err);
    return bad < 0 || out_flush() < 0 || r.not_signed ? EXIT_NO : EXIT_OK;
}
