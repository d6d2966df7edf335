/* durward audit tail|query|verify|prove|suggest|exfil: read the audit log. */
#include "audit_follow.h"
#include "audit_view.h"
#include "audit_where.h"
#include "commands.h"
#include "log_index.h"
#include "log_tree.h"
#include "out.h"
#include "paths.h"
#include "query.h"
#include "log_search.h"
#include "settings.h"
#include "stamp.h"
#include "verify.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPT_DIR = AUDIT_OPT_DIR,
    OPT_KEY = AUDIT_OPT_KEY,
    OPT_ANCHOR = AUDIT_OPT_ANCHOR,
    OPT_PROOF = AUDIT_OPT_PROOF,
    OPT_SINCE = AUDIT_OPT_SINCE,
    OPT_SANDBOX = AUDIT_OPT_SANDBOX,
    OPT_POLICY = AUDIT_OPT_POLICY,
    OPT_EXACT = AUDIT_OPT_EXACT,
    OPT_UNTIL = AUDIT_OPT_NEXT,
    OPT_ROLE,
    OPT_HOST,
    OPT_KIND,
    OPT_RULE,
    OPT_CREDENTIAL,
    OPT_STATUS,
    OPT_ID,
    OPT_CODE,
    OPT_METHOD,
    OPT_TEXT,
    OPT_NO_INDEX,
    OPT_LIMIT
};

enum { TAIL_DEFAULT = 20, TAIL_MAX = 100000, TAIL_CONTEXT = 200 };

#define OPTIONS_DIR                                                                \
    {OPT_DIR, "dir", "DIR", "the audit directory (default: the configuration's)"}, \
    {                                                                              \
        'c', "config", "FILE", "the configuration that names it"                   \
    }

static const struct arg_option tail_options[] = {
    {'f', "follow", NULL, "go on with new records as they come"},
    {'n', "lines", "N", "how many records (default 20)"},
    OPTIONS_DIR,
    {0},
};

static const struct arg_option query_options[] = {
    {OPT_SINCE, "since", "TIME", "received at or after: 2026-11-21T08:00:00Z, 2026-11-21, 10m"},
    {OPT_UNTIL, "until", "TIME", "received before"},
    {OPT_KIND, "kind", "KIND,...", "admitted, denied, completed, aborted, connection, dns, ..."},
    {OPT_KIND, "decision", "KIND,...", "the same"},
    {OPT_SANDBOX, "sandbox", "ID", "of this sandbox"},
    {OPT_POLICY, "policy", "NAME", "under this policy"},
    {OPT_HOST, "host", "HOST", "to this host; .example.com: to any host below it"},
    {OPT_METHOD, "method", "METHOD", "with this method"},
    {OPT_RULE, "rule", "TEXT", "decided by this rule"},
    {OPT_CREDENTIAL, "credential", "NAME", "with this secret"},
    {OPT_STATUS, "status", "N", "answered with this status"},
    {OPT_CODE, "code", "CODE", "with this reason"},
    {OPT_ID, "id", "ID", "all records of one request"},
    {OPT_ROLE, "role", "ROLE", "written by this role"},
    {OPT_TEXT, "text", "TEXT", "with this text anywhere in what the record says"},
    {OPT_LIMIT, "limit", "N", "the newest N of them (default 1000); 0: all"},
    {OPT_NO_INDEX, "no-index", NULL, "read every file, whatever its index says"},
    OPTIONS_DIR,
    {0},
};

static const struct arg_option verify_options[] = {
    {OPT_KEY, "key", "FILE", "the public key (default: key.pub of the directory)"},
    {OPT_ANCHOR, "anchor", "FILE", "checkpoints that were kept elsewhere, one a line"},
    {OPT_PROOF, "proof", "FILE",
     "check what 'audit prove' printed, not a log (- is standard input)"},
    OPTIONS_DIR,
    {0},
};

static const struct arg_option suggest_options[] = {
    {OPT_SINCE, "since", "TIME", "received at or after: 2026-11-21T08:00:00Z, 2026-11-21, 10m"},
    {OPT_SANDBOX, "sandbox", "ID", "of this sandbox"},
    {OPT_POLICY, "policy", "NAME", "under this policy"},
    {OPT_EXACT, "exact", NULL, "every path by itself, no '*'"},
    OPTIONS_DIR,
    {0},
};

static const struct arg_option exfil_options[] = {
    {OPT_SINCE, "since", "TIME", "received at or after: 2026-11-21T08:00:00Z, 2026-11-21, 10m"},
    {OPT_SANDBOX, "sandbox", "ID", "of this sandbox"},
    {OPT_POLICY, "policy", "NAME", "under this policy"},
    OPTIONS_DIR,
    {0},
};

static const struct arg_option prove_options[] = {
    OPTIONS_DIR,
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
     query_options,
     "An end (completed, aborted) is matched by what its request's admitted record says, too.\n"
     "The newest 1000 are shown, the oldest of them first; --limit N shows more, --limit 0 all "
     "(which\n"
     "reads the whole log). --text looks at all but the chain's fields (seq, prev, at) and times.\n"
     "--json prints the lines as they are in the log. Exit status 0, also when nothing matches, 1\n"
     "when there is no log or it cannot be read, 2 for a usage error.\n\n"
     "  durward audit query --decision deny --since 1h --host api.github.com\n",
     run_query},
    {"audit verify", "[--key FILE] [--anchor FILE] [--json] [DIR]",
     "Check the hash chain, checkpoints and signed head of the log, and of every run's own.",
     verify_options,
     "Needs only the public key. Keep a copy of key.pub elsewhere and give it with --key: who can\n"
     "write the directory could replace the log and its keys together. What they cannot replace "
     "are\n"
     "the checkpoints that `audit.anchor` sent elsewhere: with --anchor each of them must stand in "
     "the\n"
     "log, so that one put back from an older copy is found out. Exit status 0 when all is well, "
     "1\n"
     "when a log is broken (it says where), 2 for a usage error.\n\n"
     "  durward audit verify --key ~/kept/key.pub /var/log/durward\n",
     audit_run_verify},
    {"audit prove", "SEQ [DIR]", "Print a proof that one record stands in the log.", prove_options,
     "SEQ is the record's \"seq\". The proof is a JSON object that 'durward audit verify --proof "
     "FILE\n"
     "--key key.pub' checks without the log.\n"
     "Exit status 0, 1 when there is no such record or no checkpoint after it, 2 for a usage "
     "error.\n\n"
     "  durward audit prove 4711 >proof.json\n",
     audit_run_prove},
    {"audit suggest", "[--since TIME] [--sandbox ID] [--policy NAME] [--exact] [--json] [DIR]",
     "Print the smallest rules that would have allowed what was denied.", suggest_options,
     "Rules name the methods and paths that were tried; where more than three paths differ in one\n"
     "segment only, it becomes '*' (not with --exact). What a deny rule refused, and credentials\n"
     "where they have no place, are not suggested. The output is YAML for the configuration.\n"
     "Exit status 0, 1 when there is no log or it cannot be read, 2 for a usage error.\n\n"
     "  durward audit suggest --since 1h --policy coder\n",
     audit_run_suggest},
    {"audit exfil", "[--since TIME] [--sandbox ID] [--policy NAME] [--json] [DIR]",
     "Show by sandbox and destination what could be data on its way out.", exfil_options,
     "Bytes and hosts; requests, names and packets refused; the most names asked for in a minute\n"
     "(BURST); credentials that are not the sandbox's own, placeholders of others or where they\n"
     "have no place, secrets that an origin sent back. Those with such signs come first, then by\n"
     "bytes out. Sandbox '-': clients of a listener that is bound to the policy.\n"
     "Exit status 0, 1 when there is no log or it cannot be read, 2 for a usage error.\n\n"
     "  durward audit exfil --since 24h\n",
     audit_run_exfil},
    {"audit index", "[DIR]", "Make the indexes of closed files anew, where there are none.",
     prove_options,
     "The daemon makes them as it closes files. They are not signed; 'audit verify' does not use\n"
     "them, 'audit query --no-index' does without.\n"
     "Exit status 0, 1 when there is no log or it cannot be written, 2 for a usage error.\n\n"
     "  durward audit index /var/log/durward\n",
     audit_run_index},
    {0},
};

/* A directory without any log is more likely a wrong name than an empty answer. */
static void warn_empty(const struct log_tree *t, const char *dir)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->dir[i]->newest)
            return;
    out_error("%s has no audit log (yet); --dir DIR or -c FILE say another place", dir);
}

/* ---- query ---- */

static int feed(void *arg, const struct log_tree_dir *d, struct slice line)
{
    query_line(arg, d->tag, line, false);
    return 0;
}

static void warn_bad(uint64_t bad)
{
    if (bad)
        out_error("%llu lines are no audit records and were left out; see 'durward audit verify'",
                  (unsigned long long)bad);
}

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

static int query_newest(const char *dir, const struct query_filter *f, const struct log_search *s,
                        bool json)
{
    struct log_tree t;
    struct err err = {0};
    bool more = false;
    uint64_t bad = 0;
    if (log_tree_open(&t, dir, &err) < 0)
        return out_fail(&err);
    warn_empty(&t, dir);
    int r = log_search_newest(&t, f, s, audit_view_row, &json, &more, &bad, &err);
    log_tree_done(&t);
    if (r < 0)
        return out_fail(&err);
    int code = out_flush() < 0 ? EXIT_NO : EXIT_OK;
    warn_bad(bad);
    if (more)
        out_error("these are the newest %zu; there may be older ones: --limit N, or 0 for all",
                  s->rows);
    return code;
}

static int query_all(const char *dir, const struct query_filter *f, bool all, bool json)
{
    struct choice choice = {.f = f, .follows = log_index_follows(f)};
    struct log_tree t;
    struct err err = {0};
    if (log_tree_open(&t, dir, &err) < 0)
        return out_fail(&err);
    warn_empty(&t, dir);
    t.want = all ? NULL : want_file;
    t.want_arg = &choice;
    struct query *q = query_new(f, audit_view_row, &json);
    int r = q ? 0 : err_set(&err, ERR_INTERNAL, "out of memory");
    log_tree_sort(&t);
    for (size_t i = t.n; r == 0 && i > 0; i--)
        r = log_tree_read(&t, t.dir[i - 1], f->since, feed, q, &err);
    if (r == 0)
        warn_bad(query_bad(q));
    query_free(q);
    log_tree_done(&t);
    if (r < 0)
        return out_fail(&err);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

static int no_kinds(const struct args *a)
{
    char all[256] = "";
    for (int k = 1; k < RECORD_KINDS; k++) {
        size_t n = strlen(all);
        snprintf(all + n, sizeof all - n, "%s, ", record_kind_name((enum record_kind)k));
    }
    return args_usage(a->cmd, "\"%s\" is no list of kinds of records: %sallow, deny", a->value,
                      all);
}

/* One filter. 0, or a usage error's exit code. */
static int set_filter(struct args *a, int id, struct query_filter *f)
{
    struct err err = {0};
    uint64_t number;
    const char **text[] = {&f->sandbox,    &f->policy, &f->role, &f->host,   &f->rule,
                           &f->credential, &f->id,     &f->code, &f->method, &f->text};
    static const int ids[] = {OPT_SANDBOX,    OPT_POLICY, OPT_ROLE, OPT_HOST,   OPT_RULE,
                              OPT_CREDENTIAL, OPT_ID,     OPT_CODE, OPT_METHOD, OPT_TEXT};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        if (ids[i] == id)
            *text[i] = a->value;
    if ((id == OPT_SINCE && stamp_parse(a->value, stamp_now(), &f->since, &err) < 0) ||
        (id == OPT_UNTIL && stamp_parse(a->value, stamp_now(), &f->until, &err) < 0))
        return args_usage(a->cmd, "%s", err.text);
    if (id == OPT_KIND && (f->kinds |= query_kinds(a->value)) == 0)
        return no_kinds(a);
    if (id == OPT_STATUS) {
        if (slice_u64(slice_str(a->value), 999, &number) < 0 || number < 100)
            return args_usage(a->cmd, "\"%s\" is no status", a->value);
        f->status = (int64_t)number;
    }
    return 0;
}

static int run_query(int argc, char **argv)
{
    struct args a = {.cmd = &audit_verbs[1], .argc = argc, .argv = argv};
    struct query_filter f = {0};
    struct audit_where w = {0};
    struct log_search s = {0};
    uint64_t limit = LOG_SEARCH_ROWS_DEFAULT;
    int id, code = 0;
    while ((id = args_next(&a)) >= 0) {
        if (id == OPT_DIR)
            w.dir = a.value;
        else if (id == 'c')
            w.config = a.value;
        else if (id == OPT_NO_INDEX)
            s.no_index = true;
        else if (id == OPT_LIMIT) {
            if (slice_u64(slice_str(a.value), LOG_SEARCH_ROWS_MAX, &limit) < 0)
                return args_usage(a.cmd, "--limit takes a number up to %d", LOG_SEARCH_ROWS_MAX);
        } else if ((code = set_filter(&a, id, &f)) != 0)
            return code;
    }
    if (id == ARGS_STOP)
        return a.exit_code;
    char *dir = audit_where_dir(&a, &w, &code);
    if (dir == NULL)
        return code;
    s.rows = (size_t)limit;
    code = limit ? query_newest(dir, &f, &s, a.json) : query_all(dir, &f, s.no_index, a.json);
    free(dir);
    return code;
}

/* ---- tail ---- */

struct tail_line {
    char received[STAMP_MAX];
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
    if (at >= 0 && line.n - (size_t)at - key.n >= STAMP_MAX)
        memcpy(l->received, line.p + at + key.n, STAMP_MAX - 2);
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
        char newest[STAMP_MAX];
        stamp_text(t->dir[i]->newest, newest, sizeof newest);
        trim(lines);
        bool older = lines->n == lines->max && strcmp(newest, lines->at[0].received) < 0;
        r = log_tree_seek(t, t->dir[i], older ? 0 : lines->max, err);
        if (r == 0 && !older)
            r = log_tree_read(t, t->dir[i], 0, collect, lines, err);
    }
    trim(lines);
    return r;
}

static int tail_all(const char *dir, size_t n, bool follow, bool json)
{
    struct log_tree t;
    struct err err = {0};
    struct query_filter none = {0};
    if (log_tree_open(&t, dir, &err) < 0)
        return out_fail(&err);
    warn_empty(&t, dir);
    struct query *q = query_new(&none, audit_view_row, &json);
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
        r = audit_follow(&t, feed, q, out_flush, &err);
    if (r == 0)
        warn_bad(query_bad(q));
    query_free(q);
    log_tree_done(&t);
    if (r < 0)
        return out_fail(&err);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

static int run_tail(int argc, char **argv)
{
    struct args a = {.cmd = &audit_verbs[0], .argc = argc, .argv = argv};
    struct audit_where w = {0};
    uint64_t n = TAIL_DEFAULT;
    bool follow = false;
    int id, code = 0;
    while ((id = args_next(&a)) >= 0) {
        if (id == OPT_DIR)
            w.dir = a.value;
        else if (id == 'c')
            w.config = a.value;
        else if (id == 'f')
            follow = true;
        else if (slice_u64(slice_str(a.value), TAIL_MAX, &n) < 0)
            return args_usage(a.cmd, "-n takes a number up to %d", TAIL_MAX);
    }
    if (id == ARGS_STOP)
        return a.exit_code;
    char *dir = audit_where_dir(&a, &w, &code);
    if (dir == NULL)
        return code;
    code = tail_all(dir, (size_t)n, follow, a.json);
    free(dir);
    return code;
}

/* ---- the command ---- */

static void help(void)
{
    printf("usage: durward audit tail|query|verify|prove|suggest|exfil|index [OPTION...] [DIR]\n\n"
           "Read, verify and prove the audit log.\n\n");
    for (size_t i = 0; audit_verbs[i].name; i++)
        printf("  %-8s %s\n", strchr(audit_verbs[i].name, ' ') + 1, audit_verbs[i].summary);
    printf("\nSee 'durward audit tail --help' and so on.\n");
}

int cmd_audit(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    for (size_t i = 0; audit_verbs[i].name; i++)
        if (strcmp(word, strchr(audit_verbs[i].name, ' ') + 1) == 0)
            return audit_verbs[i].run(argc - 1, argv + 1);
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        help();
        return EXIT_OK;
    }
    fprintf(
        stderr,
        "durward audit: %s%s%s\nusage: durward audit tail|query|verify|prove|suggest|exfil|index "
        "[OPTION...] [DIR]\nSee 'durward audit --help'.\n",
        *word ? "there is no 'audit " : "tail, query, verify or what?", word, *word ? "'" : "");
    return EXIT_USAGE;
}
