/* durward audit tail|query|verify|prove|case|recording|suggest|exfil: read the audit log. */
#include "audit_follow.h"
#include "audit_read.h"
#include "audit_show.h"
#include "audit_view.h"
#include "audit_where.h"
#include "audit_wish.h"
#include "commands.h"
#include "log_index.h"
#include "log_tree.h"
#include "out.h"
#include "paths.h"
#include "query.h"
#include "log_search.h"
#include "settings.h"
#include "timestamp.h"
#include "verify.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAIL_DEFAULT = 20, TAIL_MAX = 100000, TAIL_CONTEXT = 200 };

struct tail_asked {
    struct audit_where where; /* first: AUDIT_OPTIONS_WHERE */
    const char *lines;
    bool follow, probes;
};

static const struct arg_option tail_options[] = {
    {'f', "follow", NULL, "go on with new records as they come",
     offsetof(struct tail_asked, follow)},
    {'n', "lines", "N", "how many records (default 20)", offsetof(struct tail_asked, lines)},
    {0, "probes", NULL, "with what self-tests and doctor sent to be refused",
     offsetof(struct tail_asked, probes)},
    AUDIT_OPTIONS_WHERE,
    {0},
};

static const struct arg_option where_options[] = {
    AUDIT_OPTIONS_WHERE,
    {0},
};

static int run_tail(int argc, char **argv);
static int run_query(int argc, char **argv);

const struct command audit_verbs[] = {
    {"audit tail", "[-f] [-n N] [--json] [DIR]", "Show the latest audit records.", tail_options,
     "Runs' own logs (DIR/run-*) are looked into as well.\n"
     "Exit status 0, 1 when there is no log or it cannot be read, 2 for a usage error.\n\n"
     "  durward audit tail -f\n",
     run_tail},
    {"audit query", "[FILTER...] [--json] [DIR]", "Show the audit records that match every filter.",
     audit_query_options,
     "An end (completed, aborted) is matched by what its request's admitted record says, too.\n"
     "The newest 1000 are shown, the oldest of them first; --limit N shows more, --limit 0 all "
     "(which\n"
     "reads the whole log). --text looks at all but the chain's fields (seq, prev, at) and times.\n"
     "--json prints the lines as they are in the log. Exit status 0, also when nothing matches, 1\n"
     "when there is no log or it cannot be read, 2 for a usage error.\n\n"
     "  durward audit query --decision deny --since 1h --host api.github.com\n",
     run_query},
    {"audit verify", "[--key FILE] [--anchor FILE] [--fleet] [--json] [DIR]",
     "Check the hash chain, checkpoints and signed head of the log, and of every run's own.",
     audit_verify_options,
     "Needs only the public key. Keep a copy of key.pub elsewhere and give it with --key: who can\n"
     "write the directory could replace the log and its keys together. What they cannot replace "
     "are\n"
     "the checkpoints that `audit.anchor` sent elsewhere: with --anchor each of them must stand in "
     "a\n"
     "log here, so that one put back from an older copy, or a run's that was removed, is found "
     "out.\n"
     "Exit status 0 when all is well, 1 when a log is broken (it says where), 2 for a usage "
     "error.\n\n"
     "With --fleet it checks what the hosts of the configuration's fleet signed about their logs, "
     "as\n"
     "this host has seen it, against one another and against this host's log; with --heads and "
     "--logs\n"
     "the same of copies. What is wrong is said by host; what cannot be looked at is no "
     "success.\n\n"
     "  durward audit verify --key ~/kept/key.pub /var/log/durward\n"
     "  durward audit verify --fleet\n",
     audit_run_verify},
    {"audit prove", "SEQ [DIR]", "Print a proof that one record stands in the log.", where_options,
     "SEQ is the record's \"seq\". The proof is a JSON object that 'durward audit verify --proof "
     "FILE\n"
     "--key key.pub' checks without the log.\n"
     "Exit status 0, 1 when there is no such record or no checkpoint after it, 2 for a usage "
     "error.\n\n"
     "  durward audit prove 4711 >proof.json\n",
     audit_run_prove},
    {"audit case", "[FILTER...] [--whole] [DIR]",
     "Print records with the proofs that they stand in the log.", audit_case_options,
     "Takes the filters of 'audit query'. The case is one JSON object: the records, the signed\n"
     "checkpoints that cover them, and each record's path to its checkpoint; it is checked before\n"
     "it is printed. 'durward audit verify --case FILE --key key.pub' checks it without the log.\n"
     "Only what is needed of the log is read; with --whole all of it is checked, as 'audit "
     "verify'\n"
     "does, and the case says the result. The newest records have no checkpoint for up to a\n"
     "minute: they are in it, unsigned, and said to be. Of a run's own log say its directory.\n"
     "Exit status 0, 1 when there is no log or it cannot be read, 2 for a usage error.\n\n"
     "  durward audit case --sandbox sb-x --since 2h >case.json\n",
     audit_run_case},
    {"audit recording", "ID [DIR]", "Print what a session over SSH said, as an asciicast.",
     where_options,
     "ID is the request's, whose rule has `record`. The text is that of version 2 and is held\n"
     "against its length and SHA-256 in the log.\n"
     "Exit status 0, 1 when there is none, or not all of it is there, 2 for a usage error.\n\n"
     "  durward audit recording 3-7 >session.cast; asciinema play session.cast\n",
     audit_run_recording},
    {"audit suggest", "[--since TIME] [--sandbox ID] [--policy NAME] [--exact] [--json] [DIR]",
     "Print the smallest rules that would have allowed what was denied.", audit_suggest_options,
     "Rules name the methods and paths that were tried; where more than three paths differ in one\n"
     "segment only, it becomes '*' (not with --exact). What a deny rule refused, and credentials\n"
     "where they have no place, are not suggested. The output is YAML for the configuration.\n"
     "Exit status 0, 1 when there is no log or it cannot be read, 2 for a usage error.\n\n"
     "  durward audit suggest --since 1h --policy coder\n",
     audit_run_suggest},
    {"audit exfil", "[--since TIME] [--sandbox ID] [--policy NAME] [--json] [DIR]",
     "Show by sandbox and destination what could be data on its way out.", audit_exfil_options,
     "Bytes and hosts; requests, names and packets refused; the most names asked for in a minute\n"
     "(BURST); credentials that are not the sandbox's own, placeholders of others or where they\n"
     "have no place, secrets that an origin sent back. Those with such signs come first, then by\n"
     "bytes out. Sandbox '-': clients of a listener that is bound to the policy.\n"
     "Exit status 0, 1 when there is no log or it cannot be read, 2 for a usage error.\n\n"
     "  durward audit exfil --since 24h\n",
     audit_run_exfil},
    {"audit index", "[DIR]", "Make the indexes of closed files anew, where there are none.",
     where_options,
     "The daemon makes them as it closes files. They are not signed; 'audit verify' does not use\n"
     "them, 'audit query --no-index' does without.\n"
     "Exit status 0, 1 when there is no log or it cannot be written, 2 for a usage error.\n\n"
     "  durward audit index /var/log/durward\n",
     audit_run_index},
    {0},
};

/* ---- query ---- */

/* Of the files of one directory, in their order. */
struct choice {
    const struct query_filter *f;
    const struct log_tree_dir *dir;
    bool follows, read_last;
};

static bool want_file(void *arg, const struct log_tree_dir *d, int dirfd, const char *name)
{
    struct choice *c = arg;
    if (c->dir != d)
        c->read_last = false;
    c->dir = d;
    bool may = log_index_may(dirfd, name, c->f), after = c->read_last && c->follows;
    c->read_last = may;
    return may || after;
}

/* What was read is shown, or why it could not be. */
static int finish(struct query *q, struct log_tree *t, int r, const struct err *err)
{
    if (r == 0)
        audit_warn_bad(query_bad(q));
    query_free(q);
    log_tree_done(t);
    if (r < 0)
        return out_fail(err);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

static int query_all(const char *dir, const struct query_filter *f, bool all, struct audit_view *v)
{
    struct choice choice = {.f = f, .follows = log_index_follows(f)};
    struct log_tree t;
    struct err err = {0};
    if (log_tree_open(&t, dir, &err) < 0)
        return out_fail(&err);
    audit_warn_empty(&t, dir);
    t.want = all ? NULL : want_file;
    t.want_arg = &choice;
    struct query *q = query_new(f, audit_view_row, v);
    int r = q ? 0 : err_set(&err, ERR_INTERNAL, "out of memory");
    log_tree_sort(&t);
    for (size_t i = t.n; r == 0 && i > 0; i--)
        r = log_tree_read(&t, t.dir[i - 1], f->since, audit_feed, q, &err);
    return finish(q, &t, r, &err);
}

static int run_query(int argc, char **argv)
{
    struct args a = {.cmd = args_verb(audit_verbs, "audit query"), .argc = argc, .argv = argv};
    struct audit_wish w = {.search.rows = LOG_SEARCH_ROWS_DEFAULT};
    int code = audit_wish_read(&a, &w, LOG_SEARCH_ROWS_MAX);
    if (code != ARGS_END)
        return code;
    char *dir = audit_wish_dir(&a, &w, &code);
    if (dir == NULL)
        return code;
    struct audit_view v = {.raw = a.json};
    code = w.search.rows ? audit_newest(dir, &w.f, &w.search, "--limit N, or 0 for all", &v)
                         : query_all(dir, &w.f, w.search.no_index, &v);
    free(dir);
    return code;
}

/* ---- tail ---- */

struct tail_line {
    char received[TIMESTAMP_MAX];
    unsigned tag;
    size_t order; /* as read */
    char *line;
};

struct tail {
    struct tail_line *at;
    size_t n, max, read;
};

static int by_time(const void *a, const void *b)
{
    const struct tail_line *x = a, *y = b;
    int r = strcmp(x->received, y->received);
    return r ? r : x->order < y->order ? -1 : x->order > y->order;
}

/* Sorted, and only the latest `max` of them. */
static void trim(struct tail *t)
{
    if (t->n)
        qsort(t->at, t->n, sizeof *t->at, by_time);
    size_t over = t->n > t->max ? t->n - t->max : 0;
    for (size_t i = 0; i < over; i++)
        free(t->at[i].line);
    memmove(t->at, t->at + over, (t->n - over) * sizeof *t->at);
    t->n -= over;
}

static int collect(void *arg, const struct log_tree_dir *d, struct slice line)
{
    struct tail *t = arg;
    static const struct slice key = SLICE("\"received\":\"");
    if (t->n == 2 * t->max)
        trim(t);
    struct tail_line *l = &t->at[t->n];
    memset(l->received, 0, sizeof l->received);
    ssize_t at = slice_find_slice(line, key);
    if (at >= 0 && line.n - (size_t)at - key.n >= TIMESTAMP_MAX)
        memcpy(l->received, line.p + at + key.n, TIMESTAMP_MAX - 2);
    l->tag = d->tag;
    l->order = t->read++;
    l->line = slice_dup(line);
    if (l->line)
        t->n++;
    return 0;
}

/* The latest lines of all directories, those before the last `shown` only for what they tell about
 * later ones. Every directory's position is then at its end. */
static int tail_collect(struct log_tree *t, struct tail *lines, struct err *err)
{
    int r = 0;
    log_tree_sort(t);
    for (size_t i = 0; r == 0 && i < t->n; i++) {
        /* once there are enough, a directory that did not change since has no later ones */
        char newest[TIMESTAMP_MAX];
        timestamp_text(t->dir[i]->newest, newest, sizeof newest);
        trim(lines);
        bool older = lines->n == lines->max && strcmp(newest, lines->at[0].received) < 0;
        r = log_tree_seek(t, t->dir[i], older ? 0 : lines->max, err);
        if (r == 0 && !older)
            r = log_tree_read(t, t->dir[i], 0, collect, lines, err);
    }
    trim(lines);
    return r;
}

static bool no_probe(void *arg UNUSED, const struct query_row *row)
{
    return !audit_is_probe(row);
}

static int tail_all(const char *dir, size_t n, bool follow, bool probes, bool json)
{
    struct audit_view v = {.raw = json};
    struct log_tree t;
    struct err err = {0};
    struct query_filter none = {.wanted = probes || json ? NULL : no_probe};
    if (log_tree_open(&t, dir, &err) < 0)
        return out_fail(&err);
    audit_warn_empty(&t, dir);
    struct query *q = query_new(&none, audit_view_row, &v);
    struct tail lines = {.max = n + TAIL_CONTEXT};
    lines.at = calloc(2 * lines.max + 1, sizeof *lines.at);
    int r = q && lines.at ? 0 : err_set(&err, ERR_INTERNAL, "out of memory");
    if (r == 0)
        r = tail_collect(&t, &lines, &err);
    for (size_t i = 0; i < lines.n; i++) {
        if (r == 0)
            query_line(q, lines.at[i].tag, slice_str(lines.at[i].line), i + n < lines.n);
        free(lines.at[i].line);
    }
    free(lines.at);
    if (r == 0 && follow)
        r = audit_follow(&t, audit_feed, q, out_flush, &err);
    return finish(q, &t, r, &err);
}

static int run_tail(int argc, char **argv)
{
    struct args a = {.cmd = args_verb(audit_verbs, "audit tail"), .argc = argc, .argv = argv};
    struct tail_asked asked = {0};
    uint64_t n = TAIL_DEFAULT;
    int code = args_into(&a, &asked);
    if (code != ARGS_END)
        return code;
    if (asked.lines && slice_u64(slice_str(asked.lines), TAIL_MAX, &n) < 0)
        return args_usage(a.cmd, "-n takes a number up to %d", TAIL_MAX);
    char *dir = audit_where_dir(&a, &asked.where, &code);
    if (dir == NULL)
        return code;
    code = tail_all(dir, (size_t)n, asked.follow, asked.probes, a.json);
    free(dir);
    return code;
}

/* ---- the command ---- */

/* Kinds of records, for the shell's completion. */
static int names(void (*put)(const char *name))
{
    for (int k = 1; k < RECORD_KINDS; k++)
        put(record_kind_name((enum record_kind)k));
    return 0;
}

const struct command command_audit = {
    .name = "audit",
    .usage = "tail|query|verify|... [OPTION...] [DIR]",
    .summary = "Read, verify and prove the audit log.",
    .verbs = audit_verbs,
    .names = names,
};
