/* durward profile ls|show|new: what programs need to run in a sandbox as they are. Nothing is asked
 * or sent. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "node.h"
#include "out.h"
#include "paths.h"
#include "profile_find.h"

static int run_ls(int argc, char **argv);
static int run_show(int argc, char **argv);
static int run_new(int argc, char **argv);

enum { OPT_FROM = 256 };

static const struct arg_option options[] = {{0}};
static const struct arg_option new_options[] = {
    {OPT_FROM, "from", "NAME", "begin with this profile's text"}, {0}};

const struct command profile_verbs[] = {
    {"profile ls", "[--json]", "List the profiles.", options, NULL, run_ls},
    {"profile show", "[--json] NAME", "Print a profile.", options,
     "Example: durward profile show claude\n", run_show},
    {"profile new", "[--from NAME] NAME", "Write a profile of your own.", new_options,
     "The file lies beside your configuration, in profiles/NAME.yaml, and comes before a built in\n"
     "profile of the same name. Example: durward profile new --from claude claude\n",
     run_new},
    {0},
};

static const char skeleton[] =
    "# %s: which program this is, and with which version it was tried.\n"
    "about: one line for `durward profile ls`\n"
    "# The program, and words that stand before the user's own.\n"
    "command: [%s]\n"
    "# Where its model is: a preset (durward preset ls), and the variables that hold the key on "
    "the\n"
    "# host. Inside they hold a placeholder. One place of the list has to have its key.\n"
    "model:\n"
    "  - { use: openai, env: OPENAI_API_KEY }\n"
    "# Further hosts, without a credential.\n"
    "rules: []\n"
    "# Variables inside.\n"
    "env: {}\n"
    "# Hosts that it reports to (with --telemetry), and what keeps it quiet (without).\n"
    "telemetry:\n"
    "  rules: []\n"
    "  quiet: {}\n"
    "# Files of its home, written when they are not there, and what of it is not kept.\n"
    "files: {}\n";

/* ---- ls ---- */

struct listing {
    json_t *all;
    struct out_table *table; /* NULL: JSON */
    bool bad;
};

static void list_one(void *arg, const char *name)
{
    struct listing *l = arg;
    struct err err = {0};
    char *file = NULL;
    struct profile *p = profile_load(name, &file, &err);
    const char *from = file ? file : "built in";
    if (p == NULL) {
        out_error("%s", err.text);
        l->bad = true;
    } else if (l->table) {
        out_table_cell(l->table, name);
        out_table_cell(l->table, profile_word(p, 0));
        out_table_cell(l->table, profile_about(p));
        out_table_cell(l->table, from);
    } else {
        json_array_append_new(l->all, json_pack("{s:s, s:s, s:s, s:s}", "profile", name, "command",
                                                profile_word(p, 0), "about", profile_about(p),
                                                "from", from));
    }
    profile_free(p);
    free(file);
}

static int run_ls(int argc, char **argv)
{
    static const char *const titles[] = {"PROFILE", "COMMAND", "ABOUT", "FROM", NULL};
    struct args a = {.cmd = &profile_verbs[0], .argc = argc, .argv = argv};
    if (args_next(&a) == ARGS_STOP)
        return a.exit_code;
    if (a.next < argc)
        return args_usage(a.cmd, "it takes no argument");
    struct listing l = {.all = json_array(), .table = a.json ? NULL : out_table_new(titles)};
    profile_each(list_one, &l);
    if (l.table)
        out_table_print(l.table);
    int r = a.json ? out_json(json_pack("{s:O}", "profiles", l.all)) : out_flush();
    json_decref(l.all);
    return r < 0 || l.bad ? EXIT_NO : EXIT_OK;
}

/* ---- show ---- */

static int run_show(int argc, char **argv)
{
    struct args a = {.cmd = &profile_verbs[1], .argc = argc, .argv = argv};
    struct err err = {0};
    char *file = NULL;
    if (args_next(&a) == ARGS_STOP)
        return a.exit_code;
    if (argc - a.next != 1)
        return args_usage(a.cmd, "a profile's name is needed");
    char *text = profile_load_text(argv[a.next], &file, &err);
    struct profile *p = text ? profile_load(argv[a.next], &file, &err) : NULL;
    int r = EXIT_NO;
    if (text && a.json)
        r = out_json(json_pack("{s:s, s:s, s:s}", "profile", argv[a.next], "from",
                               file ? file : "built in", "text", text)) < 0
                ? EXIT_NO
                : EXIT_OK;
    else if (text) {
        fputs(text, stdout);
        r = out_flush() < 0 ? EXIT_NO : EXIT_OK;
    }
    if (p == NULL) { /* it was printed all the same: what is wrong is in it */
        out_error("%s", err.text);
        r = EXIT_NO;
    }
    profile_free(p);
    free(text);
    free(file);
    return r;
}

/* ---- new ---- */

static int write_file(const char *file, const char *text, struct err *err)
{
    int r = out_file(file, 0600, false, text, strlen(text), err);
    if (r < 0 && errno == EEXIST)
        err_set(err, ERR_DENIED, "%s is there already; edit it, or remove it first", file);
    return r;
}

static int make(const char *name, const char *from, bool json, struct err *err)
{
    char leaf[80], *file = NULL, *text = NULL, *source = NULL;
    char *dir = paths_profiles_dir(err);
    if (dir == NULL || paths_make_private(dir, err) < 0) {
        free(dir);
        return -1;
    }
    snprintf(leaf, sizeof leaf, "%s.yaml", name);
    file = paths_join(dir, leaf);
    if (from)
        text = profile_load_text(from, &source, err);
    else if (asprintf(&text, skeleton, name, name) < 0)
        text = NULL;
    int r = text ? write_file(file, text, err) : -1;
    if (r == 0 && json)
        r = out_json(json_pack("{s:s, s:s}", "profile", name, "file", file));
    else if (r == 0)
        printf("%s\n", file);
    free(source);
    free(text);
    free(file);
    free(dir);
    return r;
}

static int run_new(int argc, char **argv)
{
    struct args a = {.cmd = &profile_verbs[2], .argc = argc, .argv = argv};
    struct err err = {0};
    const char *from = NULL;
    int id;
    while ((id = args_next(&a)) != ARGS_END) {
        if (id == ARGS_STOP)
            return a.exit_code;
        from = a.value;
    }
    if (argc - a.next != 1)
        return args_usage(a.cmd, "a name for the profile is needed");
    if (!node_name_ok(argv[a.next]))
        return args_usage(a.cmd, "a profile's name has letters, digits, _ . -");
    if (make(argv[a.next], from, a.json, &err) < 0)
        return err.code != ERR_NONE ? out_fail(&err) : EXIT_NO;
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

static void put_name(void *arg, const char *name)
{
    (*(void (**)(const char *))arg)(name);
}

static int names(void (*put)(const char *name))
{
    profile_each(put_name, &put);
    return 0;
}

const struct command command_profile = {
    .name = "profile",
    .usage = "ls|show|new [OPTION...]",
    .summary = "List, print or write profiles of programs.",
    .verbs = profile_verbs,
    .names = names,
};
