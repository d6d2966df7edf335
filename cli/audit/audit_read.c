/* Reads a log once for the audit commands, and knows what in it is a probe of ours, what was
 * refused, and by which names its sandboxes go. */
#include "audit_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer_words.h"
#include "doctor.h"
#include "log_search.h"
#include "out.h"
#include "timestamp.h"
#include "which.h"
#include "wire.h"

bool audit_is_probe(const struct query_row *r)
{
    struct slice host = query_host(slice_str(r->authority[0] ? r->authority : r->target));
    bool refused = r->kind == RECORD_DENIED && strcmp(r->code, "no_rule") == 0;
    if (r->kind != RECORD_DNS && !refused)
        return false;
    return slice_eq_str(host, WIRE_SELFTEST_NAME) || slice_eq_str(host, DOCTOR_HOST);
}

unsigned audit_refused_kinds(void)
{
    return 1U << RECORD_DENIED | 1U << RECORD_DNS | 1U << RECORD_PACKET | 1U << RECORD_TLS_REFUSED |
           1U << RECORD_CONNECTION | 1U << RECORD_ABORTED;
}

bool audit_is_refused(const struct query_row *r)
{
    const struct answer_words *w;
    switch (r->kind) {
    case RECORD_DENIED:
    case RECORD_PACKET:
    case RECORD_TLS_REFUSED:
        return true;
    case RECORD_DNS:
        return strcmp(r->code, "ok") != 0;
    case RECORD_CONNECTION:
    case RECORD_ABORTED:
        w = answer_words(r->status > 0 ? (unsigned)r->status : 0, r->code);
        return w->code[0] && w->class == ANSWER_DENIED;
    default:
        return false;
    }
}

/* ---- all of a log ---- */

struct reading {
    struct query *query;
    struct out_progress progress;
    uint64_t lines;
};

static int feed(void *arg, const struct log_tree_dir *d, struct slice line)
{
    struct reading *r = arg;
    query_line(r->query, d->tag, line, false);
    if (++r->lines % 4096 == 0)
        out_progress(&r->progress, "%llu records read", (unsigned long long)r->lines);
    return 0;
}

int audit_each(const char *dir, const struct query_filter *f, query_fn fn, void *arg,
               struct err *err)
{
    struct log_tree t;
    struct reading r = {0};
    if (log_tree_open(&t, dir, err) < 0)
        return -1;
    r.query = query_new(f, fn, arg);
    int bad = r.query ? 0 : err_set(err, ERR_INTERNAL, "out of memory");
    for (size_t i = 0; bad == 0 && i < t.n; i++)
        bad = log_tree_read(&t, t.dir[i], f->since, feed, &r, err);
    out_progress_end(&r.progress);
    query_free(r.query);
    log_tree_done(&t);
    return bad;
}

/* ---- which sandbox ---- */

struct known {
    const char *word;
    json_t *list; /* { id, name, created_at } each */
};

static void know(void *arg, const struct query_row *r)
{
    struct known *k = arg;
    bool named = strcmp(r->event, "sandbox_named") == 0;
    if ((!named && strcmp(r->event, "sandbox_created") != 0) || r->target[0] == 0)
        return;
    size_t i;
    json_t *o;
    uint64_t at = 0;
    json_array_foreach(k->list, i, o) if (strcmp(out_member(o, "id"), r->target) == 0)
    {
        if (named)
            json_object_set_new(o, "name", json_string(r->detail));
        return;
    }
    o = json_pack("{s:s, s:s}", "id", r->target, "name", named ? r->detail : "");
    if (timestamp_parse(r->time, 0, &at, NULL) == 0)
        json_object_set_new(o, "created_at", json_integer((json_int_t)(at / UINT64_C(1000000000))));
    json_array_append_new(k->list, o);
}

int audit_sandbox(const char *dir, const char *word, char id[AUDIT_SANDBOX_MAX + 1],
                  struct err *err)
{
    struct query_filter f = {.kinds = 1U << RECORD_LIFECYCLE, .text = word};
    struct log_search s = {.rows = 4096};
    struct known k = {.word = word, .list = json_array()};
    struct err none = {0};
    struct log_tree t;
    uint64_t bad = 0;
    bool more;
    snprintf(id, AUDIT_SANDBOX_MAX + 1, "%s", word);
    int r = 0;
    if (!which_is_whole(WHICH_SANDBOX, word) && log_tree_open(&t, dir, &none) == 0) {
        (void)log_search_newest(&t, &f, &s, know, &k, &more, &bad, &none);
        log_tree_done(&t);
        if (json_array_size(k.list) > 0 && which_of(k.list, WHICH_SANDBOX, word, id, &none) < 0 &&
            none.code == ERR_PARSE)
            r = err_set(err, ERR_PARSE, "%s", none.text);
    }
    json_decref(k.list);
    return r;
}

static int pick(const struct args *a, const char *dir, struct audit_asked *x,
                struct query_filter *f)
{
    struct err err = {0};
    if (x->since && timestamp_parse(x->since, timestamp_now(), &f->since, &err) < 0)
        return args_usage(a->cmd, "%s", err.text);
    if (x->sandbox && audit_sandbox(dir, x->sandbox, x->id, &err) < 0)
        return out_fail(&err);
    f->sandbox = x->sandbox ? x->id : NULL;
    f->policy = x->policy;
    return EXIT_OK;
}

char *audit_asked_dir(const struct args *a, struct audit_asked *x, struct query_filter *f,
                      int *code)
{
    char *dir = audit_where_dir(a, &x->where, code);
    if (dir == NULL || (*code = pick(a, dir, x, f)) == EXIT_OK)
        return dir;
    free(dir);
    return NULL;
}

int audit_run_report(const struct command *cmd, int argc, char **argv, struct audit_asked *asked,
                     struct query_filter *f, audit_report_fn report)
{
    struct args a = {.cmd = cmd, .argc = argc, .argv = argv};
    int code = args_into(&a, asked);
    if (code != ARGS_END)
        return code;
    char *dir = audit_asked_dir(&a, asked, f, &code);
    if (dir)
        code = report(dir, f, asked, a.json);
    free(dir);
    return code;
}
