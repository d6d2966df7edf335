/* durward approve ls|allow|deny: requests that an `ask` rule of the daemon holds. */
#include "api_client.h"
#include "commands.h"
#include "out.h"
#include "which.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int run_ls(int argc, char **argv);
static int run_allow(int argc, char **argv);
static int run_deny(int argc, char **argv);

enum { WAIT_SECONDS = 30 };

static const struct arg_option ls_options[] = {
    {'w', "wait", NULL, "where nothing is held, wait until something is"},
    {0},
};
const struct command approve_verbs[] = {
    {"approve ls", "[-w] [--json] [--socket PATH]", "List what waits for somebody's word.",
     ls_options,
     "A request that is held has sent nothing yet; when its time is over it is denied.\n", run_ls},
    {"approve allow", "[--socket PATH] ID...", "Let requests go.", NULL,
     "The audit log names who said so.\n", run_allow},
    {"approve deny", "[--socket PATH] ID...", "Refuse requests.", NULL,
     "Their clients get 403 approval_denied.\n", run_deny},
    {0},
};

static void body_text(const json_t *o, char *buf, size_t size)
{
    const json_t *n = json_object_get(o, "upload_bytes");
    if (json_is_integer(n))
        snprintf(buf, size, "%lld", (long long)json_integer_value(n));
    else
        snprintf(buf, size, "?");
}

static void print_list(const json_t *list)
{
    static const char *const titles[] = {"ID",   "LEFT",       "SANDBOX", "METHOD", "URL",
                                         "BODY", "CREDENTIAL", "RULE",    NULL};
    struct out_table *t = out_table_new(titles);
    size_t i;
    json_t *o;
    json_array_foreach(list, i, o)
    {
        char left[32], body[32], clean[4600];
        long long s = json_integer_value(json_object_get(o, "expires")) - (long long)time(NULL);
        snprintf(left, sizeof left, "%llds", s > 0 ? s : 0);
        body_text(o, body, sizeof body);
        out_table_cell(t, out_member(o, "id"));
        out_table_cell(t, left);
        out_table_cell(t, out_member(o, "sandbox"));
        out_table_cell(t, out_member(o, "method"));
        out_table_cell(t, out_clean(out_member(o, "url"), clean, sizeof clean));
        out_table_cell(t, body);
        out_table_cell(t, out_member(o, "credential"));
        out_table_cell(t, out_clean(out_member(o, "rule"), clean, sizeof clean));
    }
    out_table_print(t);
}

static int fetch(const char *socket, bool wait, json_t **ret, struct err *err)
{
    char path[64];
    snprintf(path, sizeof path, "/v1/approvals?wait=%d", wait ? WAIT_SECONDS : 0);
    do {
        if (api_call(socket, "GET", path, NULL, ret, err) < 0)
            return -1;
        if (!wait || json_array_size(json_object_get(*ret, "approvals")) > 0)
            return 0;
        json_decref(*ret);
    } while (true);
}

static int run_ls(int argc, char **argv)
{
    struct args a = {.cmd = &approve_verbs[0], .argc = argc, .argv = argv};
    struct err err = {0};
    json_t *reply = NULL;
    bool wait = false;
    int id;
    while ((id = args_next(&a)) != ARGS_END) {
        if (id == ARGS_STOP)
            return a.exit_code;
        wait = true;
    }
    if (a.next < argc)
        return args_usage(a.cmd, "unexpected argument %s", argv[a.next]);
    if (fetch(a.socket, wait, &reply, &err) < 0) {
        out_error("%s", err.text);
        return EXIT_NO;
    }
    const json_t *list = json_object_get(reply, "approvals");
    if (a.json)
        return out_json(reply) < 0 ? EXIT_NO : EXIT_OK;
    if (json_array_size(list) == 0)
        out_error("nothing waits");
    else
        print_list(list);
    json_decref(reply);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

static int decide(const struct command *cmd, int argc, char **argv, const char *verb)
{
    struct args a = {.cmd = cmd, .argc = argc, .argv = argv};
    int code = args_plain(&a, 1, INT_MAX, "which? 'durward approve ls' lists them");
    if (code != ARGS_END)
        return code;
    code = EXIT_OK;
    for (int i = a.next; i < argc; i++) {
        struct err err = {0};
        json_t *reply = NULL;
        char path[WHICH_ID_MAX + 40], id[WHICH_ID_MAX + 1];
        if (which_one(a.socket, WHICH_APPROVAL, argv[i], id, &err) < 0) {
            code = out_fail(&err);
            continue;
        }
        snprintf(path, sizeof path, "/v1/approvals/%s/%s", id, verb);
        if (api_call(a.socket, "POST", path, NULL, &reply, &err) < 0) {
            out_error("%s: %s", id, err.text);
            code = EXIT_NO;
            continue;
        }
        if (a.json)
            out_json(reply);
        else {
            const char *waits = json_is_false(json_object_get(reply, "taken"))
                                    ? ", as soon as its host takes that"
                                    : "";
            printf("%s: %s%s\n", id, strcmp(verb, "allow") == 0 ? "allowed" : "denied", waits);
            json_decref(reply);
        }
    }
    return code;
}

static int run_allow(int argc, char **argv)
{
    return decide(&approve_verbs[1], argc, argv, "allow");
}

static int run_deny(int argc, char **argv)
{
    return decide(&approve_verbs[2], argc, argv, "deny");
}

const struct command command_approve = {
    .name = "approve",
    .usage = "ls|allow|deny [OPTION...]",
    .summary = "Decide on requests that wait for approval.",
    .more =
        "Rules written with `ask` hold each request until somebody decides; see durward.yaml(5).\n"
        "In 'durward run --ask' the terminal is asked.\n",
    .verbs = approve_verbs,
};
