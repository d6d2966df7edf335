/* durward secret ls|test: the secrets of the configuration, by name. Values are never shown. */
#include "commands.h"
#include "out.h"
#include "settings.h"
#include "store.h"

#include <stdlib.h>
#include <string.h>

static int run_ls(int argc, char **argv);
static int run_test(int argc, char **argv);

static const struct arg_option options[] = {
    {'c', "config", "FILE", "the configuration (default: the first that exists)"},
    {0},
};

static const struct arg_option no_options[] = {{0}};

const struct command secret_verbs[] = {
    {"secret ls", "[-c FILE] [--json]", "List the secrets with their stores.", options,
     "Values are neither read nor shown.\n", run_ls},
    {"secret test", "[-c FILE] [--json] [NAME...]", "Try to read secrets from their stores.",
     options,
     "Reads each (or those named) as the daemon would, and says ok with a rough length, or what\n"
     "is wrong. Exit status 1 when one cannot be read. Environment variables are this shell's;\n"
     "the daemon has those of its own start.\n",
     run_test},
    {0},
};

static const char *store_name(enum store_kind k)
{
    switch (k) {
    case STORE_ENV:
        return "env";
    case STORE_FILE:
        return "file";
    case STORE_COMMAND:
        return "command";
    case STORE_MINT:
        return "made";
    }
    return "unknown";
}

/* What the value is read from. Of a command the program only: its arguments may tell too much. */
static const char *source_of(const struct config_secret *s)
{
    if (s->store == STORE_COMMAND)
        return s->command && s->command[0] ? s->command[0] : "";
    if (s->store == STORE_MINT)
        return s->endpoint ? s->endpoint : "other secrets";
    return s->source ? s->source : "";
}

/* Enough to see a truncated or a wrong value, too little to help guess one. */
static const char *length_class(size_t n)
{
    return n < 8      ? "under 8 bytes, very short for a credential"
           : n < 32   ? "8 to 31 bytes"
           : n < 128  ? "32 to 127 bytes"
           : n < 1024 ? "128 to 1023 bytes"
                      : "1 KiB or more";
}

static struct config *load(const char *file)
{
    struct err err = {0};
    struct config *c = settings_load(file, &err);
    if (c == NULL)
        out_error("%s", err.text);
    return c;
}

static int read_args(struct args *a, const char **file)
{
    int id;
    while ((id = args_next(a)) >= 0)
        *file = a->value;
    return id;
}

/* ---- ls ---- */

static int list_json(const struct config_secret *list, size_t n)
{
    json_t *v = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(v,
                              json_pack("{s:s, s:s, s:s, s:s, s:I}", "name", list[i].name, "store",
                                        store_name(list[i].store), "source", source_of(&list[i]),
                                        "kind", list[i].kind, "ttl", (json_int_t)list[i].ttl));
    return out_json(v);
}

static int list_table(const struct config_secret *list, size_t n)
{
    static const char *const titles[] = {"NAME", "STORE", "SOURCE", "KIND", NULL};
    if (n == 0) {
        fputs("durward: the configuration has no secrets\n", stderr);
        return 0;
    }
    struct out_table *t = out_table_new(titles);
    for (size_t i = 0; i < n; i++) {
        out_table_cell(t, list[i].name);
        out_table_cell(t, store_name(list[i].store));
        out_table_cell(t, source_of(&list[i]));
        out_table_cell(t, list[i].kind[0] ? list[i].kind : "-");
    }
    out_table_print(t);
    return out_flush();
}

static int run_ls(int argc, char **argv)
{
    struct args a = {.cmd = &secret_verbs[0], .argc = argc, .argv = argv};
    const char *file = NULL;
    size_t n;
    if (read_args(&a, &file) == ARGS_STOP)
        return a.exit_code;
    if (a.next < argc)
        return args_usage(a.cmd, "unexpected argument %s", argv[a.next]);
    struct config *c = load(file);
    if (c == NULL)
        return EXIT_NO;
    const struct config_secret *list = config_secrets(c, &n);
    while (n > 0 && list[n - 1].hidden) /* logins are part of what uses them */
        n--;
    int r = a.json ? list_json(list, n) : list_table(list, n);
    config_unref(c);
    return r < 0 ? EXIT_NO : EXIT_OK;
}

/* ---- test ---- */

/* Reads one and says how it went; `report` is the JSON answer, or NULL for text. */
static int test_one(const struct config_secret *s, json_t *report)
{
    struct err err = {0};
    struct secret *v = store_read(s, &err);
    const char *length = v ? length_class(secret_slice(v).n) : NULL;
    int r = v ? 0 : -1;
    secret_unref(v);
    if (report) {
        json_array_append_new(
            report,
            length ? json_pack("{s:s, s:b, s:s}", "name", s->name, "ok", 1, "length", length)
                   : json_pack("{s:s, s:b, s:s}", "name", s->name, "ok", 0, "error", err.text));
        return r;
    }
    printf("%s: ", s->name);
    out_coloured(stdout, length ? COLOUR_GREEN : COLOUR_RED, length ? "ok" : "failed");
    printf(": %s\n", length ? length : err.text);
    return r;
}

static int test_named(const struct config *c, char **names, int n, json_t *report)
{
    int r = 0;
    for (int i = 0; i < n; i++)
        r |= test_one(config_secret(c, names[i]), report);
    return r;
}

static int test_all(const struct config *c, json_t *report)
{
    size_t n;
    int r = 0;
    const struct config_secret *list = config_secrets(c, &n);
    for (size_t i = 0; i < n; i++)
        if (list[i].store != STORE_MINT) /* the daemon makes it; its parts are in the list */
            r |= test_one(&list[i], report);
    if (n == 0)
        fputs("durward: the configuration has no secrets\n", stderr);
    return r;
}

static int run_test(int argc, char **argv)
{
    struct args a = {.cmd = &secret_verbs[1], .argc = argc, .argv = argv};
    const char *file = NULL;
    if (read_args(&a, &file) == ARGS_STOP)
        return a.exit_code;
    struct config *c = load(file);
    if (c == NULL)
        return EXIT_NO;
    int code = EXIT_OK;
    for (int i = a.next; i < argc && code == EXIT_OK; i++)
        if (config_secret(c, argv[i]) == NULL)
            code = args_usage(
                a.cmd, "the configuration has no secret '%s'; 'durward secret ls' lists them",
                argv[i]);
    if (code == EXIT_OK) {
        json_t *report = a.json ? json_array() : NULL;
        int r = a.next < argc ? test_named(c, argv + a.next, argc - a.next, report)
                              : test_all(c, report);
        int out = report ? out_json(report) : out_flush();
        code = r < 0 || out < 0 ? EXIT_NO : EXIT_OK;
    }
    config_unref(c);
    return code;
}

int cmd_secret(int argc, char **argv)
{
    static const struct command self = {
        "secret",
        "ls|test [OPTION...]",
        "List secrets by name, or test that they can be read.",
        no_options,
        "'durward secret ls --help' and 'durward secret test --help' tell more.\n",
        cmd_secret};
    struct args a = {.cmd = &self, .argc = argc, .argv = argv, .in_order = true};
    for (size_t i = 0; argc > 1 && secret_verbs[i].name; i++)
        if (strcmp(argv[1], strchr(secret_verbs[i].name, ' ') + 1) == 0)
            return secret_verbs[i].run(argc - 1, argv + 1);
    if (args_next(&a) == ARGS_STOP)
        return a.exit_code;
    if (a.next == argc)
        return args_usage(&self, "ls or test?");
    return args_usage(&self, "there is no 'secret %s'", argv[a.next]);
}
