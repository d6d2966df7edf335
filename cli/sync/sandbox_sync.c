/* durward sandbox sync: one tree on the host and in a sandbox, without a bind. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "run_binds.h"
#include "sync_loop.h"
#include "sync_name.h"
#include "which.h"

enum { EXIT_CONFLICTS = 3, FILES_MOST = 1000000 };
enum {
    OPT_ONCE = 256,
    OPT_DIRECTION,
    OPT_IGNORE,
    OPT_DRY_RUN,
    OPT_SIZE,
    OPT_FILES,
    OPT_TOTAL,
    OPT_GIT,
    OPT_EMPTY
};

const struct arg_option sandbox_sync_options[] = {
    {OPT_ONCE, "once", NULL, "end when both sides are the same"},
    {OPT_DIRECTION, "direction", "WHICH",
     "both (default), in (only what changes on the host), out (only what changes inside)"},
    {OPT_IGNORE, "ignore", "PATTERN",
     "leave out what fits, as in a .gitignore; may be repeated; after those of .durwardignore"},
    {OPT_DRY_RUN, "dry-run", NULL, "only say what would be done, once"},
    {OPT_SIZE, "max-size", "SIZE", "leave out larger files (default and at most: 64MiB)"},
    {OPT_FILES, "max-files", "N", "carry so many files at most (default: 100000)"},
    {OPT_TOTAL, "max-total", "SIZE",
     "take no more from the sandbox when all files together have so many bytes (default: 4GiB)"},
    {OPT_GIT, "git-metadata", NULL,
     "also carry out .git and HEAD, by which the sandbox can run code on this host"},
    {OPT_EMPTY, "allow-empty", NULL, "go on though all files of one side are gone"},
    {0},
};

static int read_size(const struct args *a, const char *name, uint64_t most, uint64_t *ret)
{
    if (args_size(a->value, ret) == 0 && *ret > 0 && *ret <= most)
        return EXIT_OK;
    return args_usage(a->cmd, "--%s: '%s' is not a size, or is too large", name, a->value);
}

static int read_direction(const struct args *a, struct sync_wishes *w)
{
    static const char *const names[] = {[SYNC_BOTH] = "both", [SYNC_IN] = "in", [SYNC_OUT] = "out"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(a->value, names[i]) == 0) {
            w->direction = (enum sync_direction)i;
            return EXIT_OK;
        }
    return args_usage(a->cmd, "--direction: both, in or out");
}

static int read_option(const struct args *a, int id, struct sync_wishes *w)
{
    struct sync_ignore g = {0};
    struct err err = {0};
    uint64_t n = 0;
    int code = EXIT_OK;
    switch (id) {
    case OPT_ONCE:
        w->once = true;
        return EXIT_OK;
    case OPT_DRY_RUN:
        w->once = w->dry = true;
        return EXIT_OK;
    case OPT_GIT:
        w->git = true;
        return EXIT_OK;
    case OPT_EMPTY:
        w->allow_empty = true;
        return EXIT_OK;
    case OPT_DIRECTION:
        return read_direction(a, w);
    case OPT_IGNORE:
        if (sync_ignore_add(&g, a->value, &err) < 0 || strlist_add(&w->patterns, a->value) < 0)
            code = args_usage(a->cmd, "--ignore: %s", err.code ? err.text : "too many patterns");
        sync_ignore_free(&g);
        return code;
    case OPT_SIZE:
        code = read_size(a, "max-size", SYNC_MAX_SIZE, &n);
        w->max_size = (size_t)n;
        return code;
    case OPT_TOTAL:
        return read_size(a, "max-total", UINT64_C(1) << 50, &w->max_total);
    default:
        if (slice_u64(slice_str(a->value), FILES_MOST, &n) < 0 || n == 0)
            return args_usage(a->cmd, "--max-files: a number from 1 to %d", FILES_MOST);
        w->max_files = (size_t)n;
        return EXIT_OK;
    }
}

/* "DIR" or "DIR:/INSIDE". */
static int split(const char *word, char **here, const char **inside)
{
    const char *colon = NULL;
    for (const char *s = word; (s = strstr(s, ":/")) != NULL; s++)
        colon = s;
    *inside = colon ? colon + 1 : "/workspace";
    *here = slice_dup((struct slice){word, colon ? (size_t)(colon - word) : strlen(word)});
    size_t n = strlen(*inside);
    return *here && **here && n < SYNC_PATH && n > 1 && (*inside)[n - 1] != '/' ? 0 : -1;
}

static int open_here(struct sync *e, const char *given, char real[PATH_MAX])
{
    const char *home = getenv("HOME");
    if (run_binds_source(given, "", home ? home : "", real, &e->err) < 0)
        return -1;
    const char *why = run_binds_refused(real, home ? home : "");
    if (why)
        return err_set(&e->err, ERR_DENIED, "%s is %s: take a directory of your work", real, why);
    e->here.path = real;
    e->here.root = open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return e->here.root < 0 ? err_sys(&e->err, "%s", real) : 0;
}

static void add_size(void *arg, struct sync_item *item)
{
    struct sync *e = arg;
    e->total += item->common ? item->size : 0;
}

static int report(struct sync *e, int r)
{
    if (e->wishes->json) {
        json_t *o = json_pack("{s:s}", "type", "done");
        static const struct {
            const char *key;
            enum sync_word word;
        } rows[] = {{"sent", SYNC_SAID_SENT},
                    {"received", SYNC_SAID_RECEIVED},
                    {"deleted_inside", SYNC_SAID_DELETED_INSIDE},
                    {"deleted_here", SYNC_SAID_DELETED_HERE},
                    {"conflicts", SYNC_SAID_CONFLICT},
                    {"left_out", SYNC_SAID_LEFT_OUT},
                    {"failed", SYNC_SAID_FAILED}};
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
            json_object_set_new(o, rows[i].key, json_integer(e->count[rows[i].word]));
        char *text = json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER);
        printf("%s\n", text ? text : "{}");
        free(text);
        json_decref(o);
    }
    if (out_flush() < 0 || r < 0 || (e->wishes->once && e->count[SYNC_SAID_FAILED]))
        return EXIT_NO;
    return e->wishes->once && e->count[SYNC_SAID_CONFLICT] ? EXIT_CONFLICTS : EXIT_OK;
}

static int go(const struct args *a, const struct sync_wishes *w, const char *word, char *here,
              const char *inside)
{
    struct sync e = {.wishes = w, .next_due = INT64_MAX, .signals = -1, .here.root = -1};
    char id[WHICH_ID_MAX + 1], real[PATH_MAX];
    int r = which_one(a->socket, WHICH_SANDBOX, word, id, &e.err);
    if (r == 0)
        r = open_here(&e, here, real);
    if (r == 0) {
        e.inside = (struct sync_inside){.socket = a->socket, .id = id, .path = inside};
        e.table = sync_table_open(id, real, inside, !w->dry, &e.err);
        r = e.table ? sync_read_ignored(&e) : -1;
    }
    if (r == 0) {
        sync_table_bound(e.table, w->max_files);
        sync_table_each(e.table, add_size, &e);
        r = sync_loop(&e);
    }
    if (r < 0) {
        out_progress_end(&e.progress);
        (void)out_fail(&e.err);
    }
    int code = report(&e, r);
    sync_done(&e);
    return code;
}

int verb_sync(int argc, char **argv)
{
    struct args a = {.argc = argc, .argv = argv, .cmd = args_verb(sandbox_verbs, "sandbox sync")};
    struct sync_wishes w = {
        .max_size = SYNC_MAX_SIZE, .max_files = SYNC_MAX_FILES, .max_total = SYNC_MAX_TOTAL};
    char *here = NULL;
    const char *inside;
    int id, code = EXIT_OK;
    while (code == EXIT_OK && (id = args_next(&a)) != ARGS_END)
        code = id == ARGS_STOP ? (a.exit_code ? a.exit_code : -1) : read_option(&a, id, &w);
    w.json = a.json;
    if (code == EXIT_OK && argc - a.next != 2)
        code = args_usage(a.cmd, "a sandbox and a directory of this host are needed");
    else if (code == EXIT_OK && strchr(argv[a.next], '/'))
        code = args_usage(a.cmd, "the sandbox goes first, then the directory of this host");
    else if (code == EXIT_OK && split(argv[a.next + 1], &here, &inside) < 0)
        code = args_usage(a.cmd, "the directory is DIR, or DIR:/PATH with a path inside");
    else if (code == EXIT_OK)
        code = go(&a, &w, argv[a.next], here, inside);
    free(here);
    strlist_done(&w.patterns);
    return code < 0 ? EXIT_OK : code;
}
