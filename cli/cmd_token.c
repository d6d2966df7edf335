/* durward token create|ls|revoke: who may ask the daemon's API over TLS, and for what. */
#include "api_client.h"
#include "commands.h"
#include "out.h"
#include "which.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { TTL_MAX = 366 * 86400, SANDBOXES_MAX = 4096 };

static int run_create(int argc, char **argv);
static int run_ls(int argc, char **argv);
static int run_revoke(int argc, char **argv);

static const struct arg_option create_options[] = {
    {0, "scope", "NAME", "read, sandboxes, exec, approvals, identities or admin; may be repeated",
     .key = "scopes", .member = ARG_ITEM,
     .words = "read sandboxes exec approvals identities admin"},
    {0, "name", "NAME", "what it is called in lists and the audit log", .key = "name"},
    {0, "policy", "NAME", "only sandboxes of this policy; may be repeated", .key = "policies",
     .member = ARG_ITEM},
    {0, "label", "K=V", "only sandboxes with this label; may be repeated", .key = "labels",
     .member = ARG_PAIR},
    {0, "ttl", "T", "how long it is good (default 2160h, at most 8784h)", .key = "ttl",
     .member = ARG_TIME, .most = TTL_MAX},
    {0, "volume-bytes", "SIZE",
     "its volumes have at most so much together, as in 10GiB (default: not limited)",
     .key = "volume_bytes", .member = ARG_SIZE},
    {0, "max-sandboxes", "N",
     "there are at most N sandboxes made with it at a time (default: not limited)",
     .key = "max_sandboxes", .member = ARG_NUMBER, .most = SANDBOXES_MAX},
    {0},
};
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
    [LS] = {"token ls", "[--json]", "List tokens; their text is not kept.", NULL,
            "Exit status 0, 1 when there is no daemon, 2 for a usage error.\n\n"
            "  durward token ls --json\n",
            run_ls},
    [REVOKE] =
        {"token revoke", "ID...", "Revoke tokens: from now on they are refused.", NULL,
         "What is open with them ends. An ID is the id, the name, or the first letters of an id;\n"
         "a whole id that is not there is no error.\n"
         "Exit status 0, 1 when there is no daemon or it refuses, 2 for a usage error.\n\n"
         "  durward token revoke tk-2f6c0d1e\n",
         run_revoke},
    {0},
};

/* ---- create ---- */

static void print_token(const json_t *reply)
{
    printf("%s\n", out_member(reply, "token"));
}

static int run_create(int argc, char **argv)
{
    struct args a = {.cmd = &token_verbs[CREATE], .argc = argc, .argv = argv};
    json_t *body = json_object();
    int code = args_body(&a, body, 0, 0, "");
    if (code == ARGS_END && json_object_get(body, "scopes") == NULL)
        code = args_usage(a.cmd, "--scope says what it may do");
    if (code == ARGS_END)
        code = api_print(&a, "POST", "/v1/tokens", body, print_token);
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

static void print_row(struct out_table *t, const json_t *o)
{
    static const char *const sets[] = {"scopes", "policies", "labels"};
    char text[512], clean[512];
    int64_t left = json_integer_value(json_object_get(o, "expires_at")) - (int64_t)time(NULL);
    out_table_cell(t, out_member(o, "id"));
    out_table_cell(t, out_clean(out_member(o, "name"), clean, sizeof clean));
    for (size_t k = 0; k < ARRAY_LEN(sets); k++) {
        words(json_object_get(o, sets[k]), text, sizeof text);
        out_table_cell(t, out_clean(text, clean, sizeof clean));
    }
    out_table_cell(t, out_span(left > 0 ? left : 0, text, sizeof text));
}

static int run_ls(int argc, char **argv)
{
    static const char *const titles[] = {"ID",     "NAME", "SCOPES", "POLICIES",
                                         "LABELS", "LEFT", NULL};
    struct args a = {.cmd = &token_verbs[LS], .argc = argc, .argv = argv};
    struct err err = {0};
    int code = args_plain(&a, 0, 0, "");
    if (code != ARGS_END)
        return code;
    json_t *list = which_list(a.socket, WHICH_TOKEN, &err);
    return list ? out_list(list, a.json, titles, "there are no tokens", print_row) : out_fail(&err);
}

/* ---- revoke ---- */

static int run_revoke(int argc, char **argv)
{
    struct args a = {.cmd = &token_verbs[REVOKE], .argc = argc, .argv = argv};
    int code = args_plain(&a, 1, INT_MAX, "which? 'durward token ls' lists them");
    return code != ARGS_END ? code : which_remove(&a, WHICH_TOKEN);
}

const struct command command_token = {
    .name = "token",
    .usage = "create|ls|revoke [OPTION...]",
    .summary = "Tokens for the API over TLS.",
    .more =
        "`controller: { https: ADDRESS:PORT }` serves the API over TLS. A client elsewhere sets\n"
        "DURWARD_URL=https://NAME:PORT, DURWARD_TOKEN_FILE (or DURWARD_TOKEN) and DURWARD_CA.\n"
        "Exit status 0 when it is done, 1 when it failed, 2 for a usage error.\n",
    .verbs = token_verbs,
};
