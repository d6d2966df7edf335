/* durward token create|ls|revoke: who may ask the daemon's API over TLS, and for what. */
#include "api_client.h"
#include "commands.h"
#include "out.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { OPT_NAME = 256, OPT_SCOPE, OPT_POLICY, OPT_LABEL, OPT_TTL };
enum { TTL_MAX = 366 * 86400, ID_MAX = 64 };

static int run_create(int argc, char **argv);
static int run_ls(int argc, char **argv);
static int run_revoke(int argc, char **argv);

static const struct arg_option create_options[] = {
    {OPT_SCOPE, "scope", "NAME",
     "read, sandboxes, exec, approvals, identities or admin; may be repeated"},
    {OPT_NAME, "name", "NAME", "what it is called in lists and the audit log"},
    {OPT_POLICY, "policy", "NAME", "only sandboxes of this policy; may be repeated"},
    {OPT_LABEL, "label", "K=V", "only sandboxes with this label; may be repeated"},
    {OPT_TTL, "ttl", "T", "how long it is good (default 2160h, at most 8784h)"},
    {0},
};
static const struct arg_option no_options[] = {{0}};

enum { CREATE, LS, REVOKE };

const struct command token_verbs[] = {
    [CREATE] =
        {"token create",
         "--scope NAME... [--name NAME] [--policy NAME]... [--label K=V]... [--ttl T]",
         "Make a token; prints it, this once.", create_options,
         "read: what there is; sandboxes: make, change and end them; exec: commands, files\n"
         "and ports in them; approvals: decide; identities: of remote sandboxes; admin: all\n"
         "of it, tokens and reload too. With --policy or --label only such sandboxes exist for "
         "it,\n"
         "and what it makes gets the labels.\n"
         "Exit status 0, 1 when there is no daemon or it refuses, 2 for a usage error.\n\n"
         "  durward token create --scope sandboxes --scope exec --policy coder --ttl 720h\n",
         run_create},
    [LS] = {"token ls", "[--json]", "List tokens; their text is not kept.", no_options,
            "Exit status 0, 1 when there is no daemon, 2 for a usage error.\n\n"
            "  durward token ls --json\n",
            run_ls},
    [REVOKE] = {"token revoke", "ID...", "Make tokens good for nothing, at once.", no_options,
                "What is open with them ends. One that is not there is no error.\n"
                "Exit status 0, 1 when there is no daemon or it refuses, 2 for a usage error.\n\n"
                "  durward token revoke tk-2f6c0d1e\n",
                run_revoke},
    {0},
};

/* ---- create ---- */

static void add(json_t *body, const char *key, const char *value)
{
    if (json_object_get(body, key) == NULL)
        json_object_set_new(body, key, json_array());
    json_array_append_new(json_object_get(body, key), json_string(value));
}

static int take_option(const struct args *a, int id, json_t *body)
{
    unsigned seconds;
    switch (id) {
    case OPT_NAME:
        json_object_set_new(body, "name", json_string(a->value));
        return EXIT_OK;
    case OPT_SCOPE:
        add(body, "scopes", a->value);
        return EXIT_OK;
    case OPT_POLICY:
        add(body, "policies", a->value);
        return EXIT_OK;
    case OPT_LABEL:
        return api_put_pair(body, "labels", a->value) == 0
                   ? EXIT_OK
                   : args_usage(a->cmd, "--label must be NAME=VALUE");
    default:
        if (args_duration(a->value, TTL_MAX, &seconds) < 0)
            return args_usage(a->cmd, "%s: a time such as 15m or 24h, at most 8784h", a->value);
        json_object_set_new(body, "ttl", json_integer(seconds));
        return EXIT_OK;
    }
}

static int make(const struct args *a, const json_t *body)
{
    struct err err = {0};
    json_t *reply = NULL;
    if (api_call(a->socket, "POST", "/v1/tokens", body, &reply, &err) < 0)
        return out_fail(&err);
    if (a->json)
        return out_json(reply) < 0 ? EXIT_NO : EXIT_OK;
    printf("%s\n", out_member(reply, "token"));
    json_decref(reply);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

static int run_create(int argc, char **argv)
{
    struct args a = {.cmd = &token_verbs[CREATE], .argc = argc, .argv = argv};
    json_t *body = json_object();
    int id, code = EXIT_OK;
    while (code == EXIT_OK && (id = args_next(&a)) != ARGS_END)
        code = id == ARGS_STOP ? ARGS_STOP : take_option(&a, id, body);
    if (code == ARGS_STOP)
        code = a.exit_code;
    else if (code == EXIT_OK && a.next < argc)
        code = args_usage(a.cmd, "unexpected argument %s", argv[a.next]);
    else if (code == EXIT_OK && json_object_get(body, "scopes") == NULL)
        code = args_usage(a.cmd, "--scope says what it may do");
    else if (code == EXIT_OK)
        code = make(&a, body);
    json_decref(body);
    return code;
}

/* ---- ls ---- */

/* "a b" of a list, "K=V …" of an object. */
static void words(const json_t *v, char *to, size_t size)
{
    size_t at = 0, i;
    const char *key;
    json_t *item;
    to[0] = 0;
    json_array_foreach(v, i, item) if (at < size) at +=
        (size_t)snprintf(to + at, size - at, "%s%s", at ? " " : "", json_string_value(item));
    json_object_foreach((json_t *)(uintptr_t)v, key, item) if (at < size) at += (size_t)snprintf(
        to + at, size - at, "%s%s=%s", at ? " " : "", key, json_string_value(item));
}

static void print_list(const json_t *list)
{
    static const char *const titles[] = {"ID",     "NAME", "SCOPES", "POLICIES",
                                         "LABELS", "LEFT", NULL};
    static const char *const sets[] = {"scopes", "policies", "labels"};
    struct out_table *t = out_table_new(titles);
    size_t i;
    json_t *o;
    json_array_foreach(list, i, o)
    {
        char text[512], clean[512];
        long long left =
            json_integer_value(json_object_get(o, "expires_at")) - (long long)time(NULL);
        out_table_cell(t, out_member(o, "id"));
        out_table_cell(t, out_clean(out_member(o, "name"), clean, sizeof clean));
        for (size_t k = 0; k < ARRAY_LEN(sets); k++) {
            words(json_object_get(o, sets[k]), text, sizeof text);
            out_table_cell(t, out_clean(text, clean, sizeof clean));
        }
        snprintf(text, sizeof text, "%lldh", left > 0 ? left / 3600 : 0);
        out_table_cell(t, text);
    }
    out_table_print(t);
}

static int run_ls(int argc, char **argv)
{
    struct args a = {.cmd = &token_verbs[LS], .argc = argc, .argv = argv};
    struct err err = {0};
    json_t *reply = NULL;
    if (args_next(&a) == ARGS_STOP)
        return a.exit_code;
    if (a.next < argc)
        return args_usage(a.cmd, "unexpected argument %s", argv[a.next]);
    if (api_call(a.socket, "GET", "/v1/tokens", NULL, &reply, &err) < 0)
        return out_fail(&err);
    const json_t *list = json_object_get(reply, "tokens");
    if (a.json)
        return out_json(json_incref((json_t *)(uintptr_t)list)) < 0 ? EXIT_NO : EXIT_OK;
    if (json_array_size(list) == 0)
        printf("there are no tokens\n");
    else
        print_list(list);
    json_decref(reply);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

/* ---- revoke ---- */

static int run_revoke(int argc, char **argv)
{
    struct args a = {.cmd = &token_verbs[REVOKE], .argc = argc, .argv = argv};
    int code = EXIT_OK;
    if (args_next(&a) == ARGS_STOP)
        return a.exit_code;
    if (a.next == argc)
        return args_usage(a.cmd, "which? 'durward token ls' lists them");
    for (int i = a.next; i < argc; i++) {
        struct err err = {0};
        json_t *reply = NULL;
        char path[ID_MAX + 40];
        size_t n = strspn(argv[i], "abcdefghijklmnopqrstuvwxyz0123456789-");
        if (n == 0 || n > ID_MAX || argv[i][n])
            return args_usage(a.cmd, "that is no id; 'durward token ls' lists them");
        snprintf(path, sizeof path, "/v1/tokens/%s", argv[i]);
        if (api_call(a.socket, "DELETE", path, NULL, &reply, &err) < 0)
            code = out_fail(&err);
        else
            json_decref(reply);
    }
    return code;
}

int cmd_token(int argc, char **argv)
{
    static const struct command self = {
        "token",
        "create|ls|revoke [OPTION...]",
        "Tokens for the API over TLS.",
        no_options,
        "  create  Make a token; prints it, this once.\n"
        "  ls      List tokens.\n"
        "  revoke  Make tokens good for nothing, at once.\n\n"
        "`controller: { https: ADDRESS:PORT }` serves the API over TLS. A client elsewhere sets\n"
        "DURWARD_URL=https://NAME:PORT, DURWARD_TOKEN_FILE (or DURWARD_TOKEN) and DURWARD_CA.\n"
        "'durward token create --help' and so on tell more. Exit status 0 done, 1 it failed, 2 "
        "usage.\n",
        cmd_token};
    struct args a = {.cmd = &self, .argc = argc, .argv = argv, .in_order = true};
    for (size_t i = 0; argc > 1 && token_verbs[i].name; i++)
        if (strcmp(argv[1], strchr(token_verbs[i].name, ' ') + 1) == 0)
            return token_verbs[i].run(argc - 1, argv + 1);
    if (args_next(&a) == ARGS_STOP)
        return a.exit_code;
    if (a.next == argc)
        return args_usage(&self, "create, ls or revoke?");
    return args_usage(&self, "there is no 'token %s'", argv[a.next]);
}
