/* durward login: those of remote MCP servers are made by ../login; ls: whose logins `durward run
 * --login` can use, and whether they are here. */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "commands.h"
#include "out.h"
#include "run_login.h"

static int run_ls(int argc, char **argv);

const struct command login_verbs[] = {
    {"login mcp", "[OPTION...] NAME URL", "Log in at a remote MCP server, for sandboxes.",
     login_mcp_options,
     "Asks the server at URL who lets one in (RFC 9728), registers there as a client where none "
     "is\n"
     "named (RFC 7591), opens a browser, and keeps the tokens for URL under NAME in a file that\n"
     "this user alone can read. A sandbox whose rule uses them sees a server that wants no login.\n"
     "Tokens are never shown; they are refreshed on the host. NAME's former login is replaced.\n",
     login_mcp},
    {"login ls", "[--json]", "List the logins that can be used from their files.", NULL,
     "None is used unasked: 'durward run --login NAME' says so for its file.\n", run_ls},
    {0},
};

struct listing {
    struct out_table *table; /* NULL: as JSON, in all */
    json_t *all;
    const struct login_format *format;
};

/* of: whose it is, where each server has a file; NULL: the format has one. */
static void list_one(struct listing *l, const char *of, const char *path, bool here)
{
    char name[128];
    const struct login_format *f = l->format;
    snprintf(name, sizeof name, "%s%s%s", login_name(f), of ? "@" : "", of ? of : "");
    if (l->table) {
        out_table_cell(l->table, name);
        out_table_cell(l->table, path);
        out_table_cell(l->table, here ? "yes" : "no");
        out_table_cell(l->table, login_about(f));
    } else {
        json_array_append_new(l->all, json_pack("{s:s, s:s, s:b, s:s}", "login", name, "file", path,
                                                "here", here, "about", login_about(f)));
    }
}

static void list_of(void *arg, const char *of)
{
    struct listing *l = arg;
    char path[PATH_MAX];
    run_login_path(l->format, of, path);
    list_one(l, of, path, true);
}

static int run_ls(int argc, char **argv)
{
    static const char *const titles[] = {"LOGIN", "FILE", "HERE", "WHOSE", NULL};
    struct args a = {.cmd = args_verb(login_verbs, "login ls"), .argc = argc, .argv = argv};
    struct err err = {0};
    while (args_next(&a) != ARGS_END)
        return a.exit_code;
    struct listing l = {.table = a.json ? NULL : out_table_new(titles), .all = json_array()};
    for (size_t i = 0; login_builtin(i); i++) {
        char path[PATH_MAX];
        struct login_format *f = login_format_new(login_builtin(i), &err);
        if (f == NULL)
            return out_fail(&err);
        l.format = f;
        if (login_is_many(f)) {
            run_login_each(f, list_of, &l);
        } else {
            run_login_path(f, NULL, path);
            list_one(&l, NULL, path, access(path, F_OK) == 0);
        }
        login_format_free(f);
    }
    int r = 0;
    if (l.table)
        out_table_print(l.table);
    else
        r = out_json(json_pack("{s:O}", "logins", l.all));
    json_decref(l.all);
    return r < 0 || out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

const struct command command_login = {
    .name = "login",
    .usage = "mcp|ls [OPTION...]",
    .summary = "Logins of other programs and at MCP servers that a sandbox may use.",
    .verbs = login_verbs,
};
