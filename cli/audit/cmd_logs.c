/* durward logs: what a sandbox did and what was refused to it, from the audit log. */
#include <stdlib.h>
#include <string.h>

#include "audit_follow.h"
#include "audit_read.h"
#include "audit_show.h"
#include "commands.h"
#include "out.h"

enum { LINES_DEFAULT = 50, LINES_MAX = LOG_SEARCH_ROWS_MAX };

static int cmd_logs(int argc, char **argv);

struct asked {
    struct audit_where where; /* first: AUDIT_OPTIONS_WHERE */
    const char *lines;
    bool follow;
};

static const struct arg_option options[] = {
    {'f', "follow", NULL, "go on with new records as they come", offsetof(struct asked, follow)},
    {'n', "lines", "N", "how many records (default 50)", offsetof(struct asked, lines)},
    AUDIT_OPTIONS_WHERE,
    {0},
};

const struct command command_logs = {
    "logs",
    "[-f] [-n N] [--json] [SANDBOX]",
    "Show what a sandbox did and what was refused to it.",
    options,
    "SANDBOX is an id, a name, or the first letters of an id; it may have ended. Without one the\n"
    "records of all sandboxes are shown. What self-tests and doctor sent is left out, as are\n"
    "checkpoints; 'durward audit query' has every record and more ways to choose.\n"
    "Exit status 0, 1 when there is no log or it cannot be read, 2 for a usage error.\n\n"
    "  durward logs -f builder\n",
    cmd_logs,
};

struct logs {
    struct audit_view view;
    const char *sandbox; /* whole id; NULL: all */
};

/* Its own, and what the controller says of it. */
static bool logs_wanted(void *arg, const struct query_row *row)
{
    const struct logs *l = arg;
    if (row->kind == RECORD_CHECKPOINT || audit_is_probe(row))
        return false;
    return l->sandbox == NULL || strcmp(row->sandbox, l->sandbox) == 0 ||
           (row->kind == RECORD_LIFECYCLE && strcmp(row->target, l->sandbox) == 0);
}

/* From the end on. */
static int follow(const char *dir, const struct query_filter *f, struct logs *l)
{
    struct log_tree t;
    struct err err = {0};
    if (log_tree_open(&t, dir, &err) < 0)
        return out_fail(&err);
    struct query *q = query_new(f, audit_view_row, &l->view);
    int r = q ? 0 : err_set(&err, ERR_INTERNAL, "out of memory");
    for (size_t i = 0; r == 0 && i < t.n; i++)
        r = log_tree_seek(&t, t.dir[i], 0, &err);
    if (r == 0)
        r = audit_follow(&t, audit_feed, q, out_flush, &err);
    query_free(q);
    log_tree_done(&t);
    return r < 0 ? out_fail(&err) : EXIT_OK;
}

static int show(const char *dir, const char *word, size_t n, bool on, bool json)
{
    struct logs l = {.view = {.raw = json}};
    struct query_filter f = {.wanted = logs_wanted, .wanted_arg = &l};
    struct log_search s = {.rows = n};
    struct err err = {0};
    char id[AUDIT_SANDBOX_MAX + 1];
    if (word && audit_sandbox(dir, word, id, &err) < 0)
        return out_fail(&err);
    l.sandbox = word ? id : NULL;
    f.text = l.sandbox; /* an index knows texts: files without it are not read */
    int code = n ? audit_newest(dir, &f, &s, "-n N", &l.view) : EXIT_OK;
    if (code == EXIT_OK && n && word && l.view.rows == 0)
        out_error("nothing is on record of a sandbox '%s'", word);
    return code == EXIT_OK && on ? follow(dir, &f, &l) : code;
}

static int cmd_logs(int argc, char **argv)
{
    struct args a = {.cmd = &command_logs, .argc = argc, .argv = argv};
    struct asked asked = {0};
    uint64_t n = LINES_DEFAULT;
    int code = args_into(&a, &asked);
    if (code != ARGS_END)
        return code;
    if (asked.lines && slice_u64(slice_str(asked.lines), LINES_MAX, &n) < 0)
        return args_usage(a.cmd, "-n takes a number up to %d", LINES_MAX);
    if (a.next + 1 < argc)
        return args_usage(a.cmd, "unexpected argument %s", argv[a.next + 1]);
    const char *word = a.next < argc ? argv[a.next] : NULL;
    a.next = argc; /* the word is no directory */
    char *dir = audit_where_dir(&a, &asked.where, &code);
    if (dir == NULL)
        return code;
    code = show(dir, word, (size_t)n, asked.follow, a.json);
    free(dir);
    return code;
}
