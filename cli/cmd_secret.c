/* durward secret ls|test: the secrets of the configuration, by name. Values are never shown. */
#include "commands.h"
#include "out.h"
#include "secret_try.h"
#include "settings.h"
#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run_ls(int argc, char **argv);
static int run_test(int argc, char **argv);

static const struct arg_option options[] = {
    ARG_CONFIG,
    {0},
};

const struct command secret_verbs[] = {
    {"secret ls", "[-c FILE] [--json]", "List the secrets with their stores.", options,
     "Values are neither read nor shown.\n", run_ls},
    {"secret test", "[-c FILE] [--json] [NAME...]", "Try to read secrets from their stores.",
     options,
     "Reads each (or those named) as the daemon would, and says ok with a rough length, or what\n"
     "is wrong. Exit status 1 when one cannot be read. Environment variables are this shell's;\n"
     "the daemon has those of its own start. What an endpoint has is asked for by a vault and a\n"
     "dialer that run meanwhile; each AppRole login counts for its secret_id. Tokens with a\n"
     "refresh token are not tried: that would use it up.\n",
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
    case STORE_LOGIN:
        return "login";
    case STORE_AGENT:
        return "ssh_agent";
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
    return n < 8      ? "under 8 bytes, too short for most credentials"
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

/* What can be read here. */
static void read_here(const struct config_secret *s, struct secret_trial *ret)
{
    struct err err = {0};
    struct secret *v = store_read(s, &err);
    ret->ok = v != NULL;
    ret->bytes = v ? (uint32_t)secret_slice(v).n : 0;
    snprintf(ret->why, sizeof ret->why, "%s", err.text);
    secret_unref(v);
}

/* How it went; `report` is the JSON answer, or NULL for text. 0, or -1 when it did not. */
static int say(const struct secret_trial *t, bool pair, json_t *report)
{
    char clean[sizeof t->why];
    const char *length = pair ? "a key that signs" : length_class(t->bytes);
    out_clean(t->why, clean, sizeof clean);
    if (report) {
        json_array_append_new(
            report, t->ok ? json_pack("{s:s, s:b, s:s}", "name", t->name, "ok", 1, "length", length)
                          : json_pack("{s:s, s:b, s:s}", "name", t->name, "ok", 0, "error", clean));
        return t->ok ? 0 : -1;
    }
    printf("%s: ", t->name);
    out_coloured(stdout, t->ok ? COLOUR_GREEN : COLOUR_RED, t->ok ? "ok" : "failed");
    printf(": %s\n", t->ok ? length : clean);
    return t->ok ? 0 : -1;
}

/* All of the list: what is read here at once, what an endpoint has in one go afterwards, since the
 * start of its processes wipes our environment. */
static int test_list(const struct config *c, const struct config_secret **list, size_t n,
                     json_t *report)
{
    int r = 0;
    size_t remote = 0, at = 0;
    struct secret_trial *far = calloc(n + 1, sizeof *far), *near = calloc(n + 1, sizeof *near);
    if (far == NULL || near == NULL)
        abort(); /* memory is out */
    for (size_t i = 0; i < n; i++) {
        near[i].name = list[i]->name;
        if (config_secret_asks(list[i]))
            far[remote++].name = list[i]->name;
        else
            read_here(list[i], &near[i]);
    }
    if (remote)
        secret_try(c, far, remote);
    for (size_t i = 0; i < n; i++)
        r |= say(config_secret_asks(list[i]) ? &far[at++] : &near[i], config_secret_signs(list[i]),
                 report);
    free(far);
    free(near);
    return r;
}

static int test_named(const struct config *c, char **names, size_t n, json_t *report)
{
    const struct config_secret **list = calloc(n + 1, sizeof *list);
    for (size_t i = 0; list && i < n; i++)
        list[i] = config_secret(c, names[i]);
    int r = list ? test_list(c, list, n, report) : -1;
    free(list);
    return r;
}

static int test_all(const struct config *c, json_t *report)
{
    size_t n, picked = 0;
    const struct config_secret *all = config_secrets(c, &n);
    const struct config_secret **list = calloc(n + 1, sizeof *list);
    for (size_t i = 0; list && i < n; i++) /* parts of what is put together here are in the list */
        if (!all[i].hidden && (all[i].store != STORE_MINT || config_secret_asks(&all[i])))
            list[picked++] = &all[i];
    int r = list ? test_list(c, list, picked, report) : -1;
    if (n == 0)
        fputs("durward: the configuration has no secrets\n", stderr);
    free(list);
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
        int r = a.next < argc ? test_named(c, argv + a.next, (size_t)(argc - a.next), report)
                              : test_all(c, report);
        int out = report ? out_json(report) : out_flush();
        code = r < 0 || out < 0 ? EXIT_NO : EXIT_OK;
    }
    config_unref(c);
    return code;
}

const struct command command_secret = {
    .name = "secret",
    .usage = "ls|test [OPTION...]",
    .summary = "List secrets by name, or test that they can be read.",
    .verbs = secret_verbs,
};
