/* durward home ls|logout|renew|rm: the homes that 'durward run' keeps for profiles. */
#include <string.h>
#include <time.h>

#include "commands.h"
#include "home.h"
#include "out.h"
#include "settings.h"

static int run_ls(int argc, char **argv);
static int run_logout(int argc, char **argv);
static int run_renew(int argc, char **argv);
static int run_rm(int argc, char **argv);

static const struct arg_option options[] = {
    {'c', "config", "FILE", "the configuration that `run` was given with -c"}, {0}};

const struct command home_verbs[] = {
    {"home ls", "[-c FILE] [--json]", "List the homes that are kept.", options, NULL, run_ls},
    {"home logout", "[-c FILE] NAME", "Forget the logins that were made inside a home.", options,
     "Who issued them may still take them for good: log out there, too.\n", run_logout},
    {"home renew", "[-c FILE] NAME", "Give a home other placeholders.", options,
     "What it had so far is worth nothing from then on, logins made inside among it. The files\n"
     "that its profile writes are written anew by the next run.\n",
     run_renew},
    {"home rm", "[-c FILE] NAME", "Remove a home and all that is in it.", options, NULL, run_rm},
    {0},
};

struct listing {
    json_t *all;
    struct out_table *table; /* NULL: JSON */
    size_t n;
};

static void add_login(void *arg, const char *policy, const char *secrets, time_t when)
{
    char day[32];
    struct tm tm;
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&when, &tm));
    json_array_append_new(
        arg, json_pack("{s:s, s:s, s:s}", "policy", policy, "secrets", secrets, "written", day));
}

static void list_one(void *arg, const char *name, bool used, int dir)
{
    struct listing *l = arg;
    json_t *logins = json_array(), *one;
    size_t i;
    l->n++;
    home_each_login(dir, add_login, logins);
    if (l->table == NULL) {
        json_array_append_new(
            l->all, json_pack("{s:s, s:b, s:o}", "home", name, "used", used, "logins", logins));
        return;
    }
    struct buf text;
    buf_init(&text, 4096);
    int bad = 0;
    json_array_foreach(logins, i, one) bad |= buf_printf(
        &text, "%s%s of %s, %s", i ? "; " : "", json_string_value(json_object_get(one, "secrets")),
        json_string_value(json_object_get(one, "policy")),
        json_string_value(json_object_get(one, "written")));
    if (json_array_size(logins) == 0)
        bad |= buf_append(&text, "-", 1);
    bad |= buf_append(&text, "", 1);
    out_table_cell(l->table, name);
    out_table_cell(l->table, used ? "in use" : "-");
    out_table_cell(l->table, bad ? "many" : (const char *)buf_data(&text));
    buf_free(&text);
    json_decref(logins);
}

/* Its options; NULL in *ret is no configuration. -1: *code is the exit code. */
static int read_options(struct args *a, struct config **ret, int *code)
{
    struct err err = {0};
    const char *file = NULL;
    int id;
    while ((id = args_next(a)) != ARGS_END) {
        if (id == ARGS_STOP) {
            *code = a->exit_code;
            return -1;
        }
        file = a->value;
    }
    if (settings_load_if_any(file, ret, &err) == 0)
        return 0;
    *code = out_fail(&err);
    return -1;
}

static int run_ls(int argc, char **argv)
{
    static const char *const titles[] = {"HOME", "STATE", "LOGINS MADE INSIDE", NULL};
    struct args a = {.cmd = &home_verbs[0], .argc = argc, .argv = argv};
    struct config *c = NULL;
    struct err err = {0};
    int code;
    if (read_options(&a, &c, &code) < 0)
        return code;
    struct listing l = {.all = json_array(), .table = a.json ? NULL : out_table_new(titles)};
    int r = home_each(c, list_one, &l, &err);
    if (r == 0 && l.table && l.n == 0)
        out_error("there are no homes");
    if (l.table)
        out_table_print(l.table);
    else if (out_json(json_pack("{s:O}", "homes", l.all)) < 0)
        r = -1;
    json_decref(l.all);
    config_unref(c);
    if (err.code != ERR_NONE)
        return out_fail(&err);
    return r < 0 || out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

/* done: the member of the answer in JSON that names the home. */
static int with_name(const struct command *cmd, const char *done,
                     int (*fn)(const struct config *c, const char *name, struct err *err), int argc,
                     char **argv)
{
    struct args a = {.cmd = cmd, .argc = argc, .argv = argv};
    struct config *c = NULL;
    struct err err = {0};
    int code;
    if (read_options(&a, &c, &code) < 0)
        return code;
    if (argc - a.next != 1)
        code = args_usage(cmd, "a home's name is needed; 'durward home ls' lists them");
    else
        code = fn(c, argv[a.next], &err) < 0 ? out_fail(&err) : EXIT_OK;
    if (code == EXIT_OK && a.json && out_json(json_pack("{s:[s]}", done, argv[a.next])) < 0)
        code = EXIT_NO;
    config_unref(c);
    return code;
}

static int run_logout(int argc, char **argv)
{
    return with_name(&home_verbs[1], "logged_out", home_logout, argc, argv);
}

static int run_renew(int argc, char **argv)
{
    return with_name(&home_verbs[2], "renewed", home_renew, argc, argv);
}

static int run_rm(int argc, char **argv)
{
    return with_name(&home_verbs[3], "removed", home_remove, argc, argv);
}

static void put_name(void *arg, const char *name, bool used UNUSED, int dir UNUSED)
{
    (*(void (**)(const char *))arg)(name);
}

static int names(void (*put)(const char *name))
{
    struct err err = {0};
    struct config *c = NULL;
    if (settings_load_if_any(NULL, &c, &err) < 0)
        return -1;
    int r = home_each(c, put_name, &put, &err);
    config_unref(c);
    return r;
}

const struct command command_home = {
    .name = "home",
    .usage = "ls|logout|renew|rm [OPTION...]",
    .summary = "Homes that are kept for profiles.",
    .verbs = home_verbs,
    .names = names,
};
