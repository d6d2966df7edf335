/* durward login ls: whose logins `durward run --login` can use, and whether they are here. */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "commands.h"
#include "out.h"
#include "run_login.h"

static int run_ls(int argc, char **argv);

const struct command login_verbs[] = {
    {"login ls", "[--json]", "List the logins that can be used from their files.", NULL,
     "None is used unasked: `durward run --login NAME` says so for its file.\n", run_ls},
    {0},
};

static int run_ls(int argc, char **argv)
{
    static const char *const titles[] = {"LOGIN", "FILE", "HERE", "WHOSE", NULL};
    struct args a = {.cmd = &login_verbs[0], .argc = argc, .argv = argv};
    struct err err = {0};
    json_t *all = json_array();
    while (args_next(&a) != ARGS_END)
        return a.exit_code;
    struct out_table *table = a.json ? NULL : out_table_new(titles);
    for (size_t i = 0; login_builtin(i); i++) {
        char path[PATH_MAX];
        struct login_format *f = login_format_new(login_builtin(i), &err);
        if (f == NULL)
            return out_fail(&err);
        run_login_path(f, path);
        bool here = access(path, F_OK) == 0;
        if (table) {
            out_table_cell(table, login_name(f));
            out_table_cell(table, path);
            out_table_cell(table, here ? "yes" : "no");
            out_table_cell(table, login_about(f));
        } else {
            json_array_append_new(all,
                                  json_pack("{s:s, s:s, s:b, s:s}", "login", login_name(f), "file",
                                            path, "here", here, "about", login_about(f)));
        }
        login_format_free(f);
    }
    int r = 0;
    if (table)
        out_table_print(table);
    else
        r = out_json(json_pack("{s:O}", "logins", all));
    json_decref(all);
    return r < 0 || out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

const struct command command_login = {
    .name = "login",
    .usage = "ls [OPTION...]",
    .summary = "Logins of other programs that a sandbox may use.",
    .verbs = login_verbs,
};
