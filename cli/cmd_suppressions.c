/* durward suppressions ls|show|add|accept|lift: findings that notices and the console's first view
 * leave out until a date. */
#include "api_client.h"
#include "commands.h"
#include "out.h"
#include "which.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { CLEAN_MAX = 1024, FOR_MAX = 90 * 86400 };
enum { LS, SHOW, ADD, ACCEPT, LIFT };

struct wish {
    const char *policy, *code, *host, *method, *path, *sandbox, *reason, *lasts;
};

static int run_ls(int argc, char **argv);
static int run_show(int argc, char **argv);
static int run_add(int argc, char **argv);
static int run_accept(int argc, char **argv);
static int run_lift(int argc, char **argv);

static const struct arg_option add_options[] = {
    {0, "code", "CODE", "the findings' code, as no_rule", offsetof(struct wish, code)},
    {0, "host", "HOST", "the name or address in them, or *.NAME", offsetof(struct wish, host)},
    {0, "reason", "TEXT", "why nobody has to look at them", offsetof(struct wish, reason)},
    {0, "for", "T", "how long, as 12h or 720h; at most 2160h", offsetof(struct wish, lasts)},
    {0, "policy", "NAME", "their policy (default: the only one)", offsetof(struct wish, policy)},
    {0, "method", "NAME", "only those of this method", offsetof(struct wish, method)},
    {0, "path", "PATH", "only those of this path; /** at its end: and below",
     offsetof(struct wish, path)},
    {0, "sandbox", "ID", "only those of this sandbox", offsetof(struct wish, sandbox)},
    {0},
};

const struct command suppressions_verbs[] = {
    [LS] = {"suppressions ls", "[--json] [--socket PATH]", "List suppressions.", NULL,
            "Those that ended stay in the list for a while.\n"
            "Exit status 0, 1 when there is no daemon, 2 for a usage error.\n\n"
            "  durward suppressions ls\n",
            run_ls},
    [SHOW] = {"suppressions show", "[--json] [--socket PATH] ID",
              "Show a suppression, and how to look at what it hides.", NULL,
              "Exit status 0, 1 when there is none of that id, 2 for a usage error.\n\n"
              "  durward suppressions show su-4xk2\n",
              run_show},
    [ADD] = {"suppressions add",
             "--code CODE --host HOST --reason TEXT --for T [--policy NAME] [--method NAME] "
             "[--path PATH] [--sandbox ID]",
             "Write a suppression; it hides nothing before it is accepted.", add_options,
             "A finding is something that was refused. One whose code is critical is suppressed\n"
             "for 7 days (168h) at most.\n"
             "Exit status 0, 1 when it cannot be written, 2 for a usage error.\n\n"
             "  durward suppressions add --code no_rule --host telemetry.example.com \\\n"
             "      --reason 'telemetry that the tool cannot switch off' --for 720h\n",
             run_add},
    [ACCEPT] = {"suppressions accept", "[--socket PATH] ID...", "Accept suppressions.", NULL,
                "From then on, until they end, notices and the console's first view leave such\n"
                "findings out. The audit log has all of them.\n"
                "Exit status 0, 1 when it cannot be accepted, 2 for a usage error.\n\n"
                "  durward suppressions accept su-4xk2\n",
                run_accept},
    [LIFT] = {"suppressions lift", "[--socket PATH] ID...", "End suppressions now.", NULL,
              "Exit status 0, 1 when there is none of that id, 2 for a usage error.\n\n"
              "  durward suppressions lift su-4xk2\n",
              run_lift},
    {0},
};

/* ---- ls, show ---- */

static int64_t number(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

/* Method, host and path, as far as it says. */
static const char *about(const json_t *o, char *to, size_t size)
{
    const char *method = out_member(o, "method");
    snprintf(to, size, "%s%s%s%s", method, *method ? " " : "", out_member(o, "host"),
             out_member(o, "path"));
    out_harmless(to);
    return to;
}

static const char *left(const json_t *o, char *to, size_t size)
{
    const char *state = out_member(o, "state");
    int64_t rest = number(o, "expires") - (int64_t)time(NULL);
    if (strcmp(state, "lifted") == 0 || strcmp(state, "expired") == 0)
        return "";
    return out_span(rest > 0 ? rest : 0, to, size);
}

static void print_list(const json_t *reply)
{
    static const char *const titles[] = {"ID",   "STATE", "LEFT",   "POLICY",
                                         "CODE", "ABOUT", "REASON", NULL};
    const json_t *list = json_object_get(reply, "suppressions");
    if (json_array_size(list) == 0) {
        out_error("nothing is suppressed");
        return;
    }
    struct out_table *t = out_table_new(titles);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        char text[CLEAN_MAX], clean[CLEAN_MAX], span[32];
        out_table_cell(t, out_member(o, "id"));
        out_table_cell(t, out_member(o, "state"));
        out_table_cell(t, left(o, span, sizeof span));
        out_table_cell(t, out_member(o, "policy"));
        out_table_cell(t, out_member(o, "code"));
        out_table_cell(t, about(o, text, sizeof text));
        out_table_cell(t, out_clean(out_member(o, "reason"), clean, sizeof clean));
    }
    out_table_print(t);
}

static int run_ls(int argc, char **argv)
{
    struct args a = {.cmd = &suppressions_verbs[LS], .argc = argc, .argv = argv};
    int code = args_plain(&a, 0, 0, "");
    return code != ARGS_END ? code : api_print(&a, "GET", "/v1/suppressions", NULL, print_list);
}

static void field(const char *name, const char *value)
{
    char clean[CLEAN_MAX];
    if (*value)
        printf("%-11s %s\n", name, out_clean(value, clean, sizeof clean));
}

static void date(const char *name, int64_t seconds, const char *by)
{
    char text[CLEAN_MAX], day[32];
    struct tm tm;
    time_t t = (time_t)seconds;
    if (seconds == 0)
        return;
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
    snprintf(text, sizeof text, "%s%s%s", day, *by ? " by " : "", by);
    field(name, text);
}

static void print_one(const json_t *o)
{
    static const char *const fields[] = {"id",   "state",  "policy", "code",    "severity",
                                         "host", "method", "path",   "sandbox", "reason"};
    char host[CLEAN_MAX], code[CLEAN_MAX];
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        field(fields[i], out_member(o, fields[i]));
    date("written", number(o, "created"), out_member(o, "made_by"));
    date("accepted", number(o, "accepted"), out_member(o, "accepted_by"));
    date("lifted", number(o, "lifted"), out_member(o, "lifted_by"));
    date("expires", number(o, "expires"), "");
    out_clean(out_member(o, "code"), code, sizeof code);
    out_clean(out_member(o, "host"), host, sizeof host);
    if (strncmp(host, "*.", 2) == 0)
        printf("\ndurward audit query --decision deny --code %s --since 24h\n", code);
    else
        printf("\ndurward audit query --decision deny --code %s --host '%s' --since 24h\n", code,
               host);
}

static int path_of(const struct args *a, const char *word, const char *verb, char *path,
                   size_t size, struct err *err)
{
    char id[WHICH_ID_MAX + 1];
    if (which_one(a->socket, WHICH_SUPPRESSION, word, id, err) < 0)
        return -1;
    snprintf(path, size, "/v1/suppressions/%s%s", id, verb);
    return 0;
}

static int run_show(int argc, char **argv)
{
    struct args a = {.cmd = &suppressions_verbs[SHOW], .argc = argc, .argv = argv};
    char path[WHICH_ID_MAX + 40];
    struct err err = {0};
    int code = args_plain(&a, 1, 1, "which? 'durward suppressions ls' lists them");
    if (code != ARGS_END)
        return code;
    if (path_of(&a, argv[a.next], "", path, sizeof path, &err) < 0)
        return out_fail(&err);
    return api_print(&a, "GET", path, NULL, print_one);
}

/* ---- add ---- */

static void put(json_t *body, const char *key, const char *value)
{
    if (value)
        json_object_set_new(body, key, json_string(value));
}

static void print_added(const json_t *o)
{
    const char *state = out_member(o, "state");
    if (strcmp(state, "open") == 0)
        fprintf(stderr, "durward: it hides nothing yet: durward suppressions accept %s\n",
                out_member(o, "id"));
    printf("%s\n", out_member(o, "id"));
}

static int send(const struct args *a, const struct wish *w, unsigned seconds)
{
    json_t *body = json_object();
    put(body, "policy", w->policy);
    put(body, "code", w->code);
    put(body, "host", w->host);
    put(body, "method", w->method);
    put(body, "path", w->path);
    put(body, "sandbox", w->sandbox);
    put(body, "reason", w->reason);
    json_object_set_new(body, "expires_in", json_integer(seconds));
    int code = api_print(a, "POST", "/v1/suppressions", body, print_added);
    json_decref(body);
    return code;
}

static int run_add(int argc, char **argv)
{
    struct args a = {.cmd = &suppressions_verbs[ADD], .argc = argc, .argv = argv};
    struct wish w = {0};
    char id[WHICH_ID_MAX + 1];
    struct err err = {0};
    unsigned seconds;
    int code = args_into(&a, &w);
    if (code != ARGS_END)
        return code;
    if (a.next < argc)
        return args_usage(a.cmd, "unexpected argument %s", argv[a.next]);
    if (!w.code || !w.host || !w.reason || !w.lasts)
        return args_usage(a.cmd, "--code, --host, --reason and --for are needed");
    if (args_duration(w.lasts, FOR_MAX, &seconds) < 0)
        return args_usage(a.cmd, "%s: a time such as 12h or 720h, at most 2160h", w.lasts);
    if (w.sandbox) {
        if (which_one(a.socket, WHICH_SANDBOX, w.sandbox, id, &err) < 0)
            return out_fail(&err);
        w.sandbox = id;
    }
    return send(&a, &w, seconds);
}

/* ---- accept, lift ---- */

static int each(struct args *a, const char *method, const char *verb, const char *done)
{
    int code = args_plain(a, 1, INT_MAX, "which? 'durward suppressions ls' lists them");
    if (code != ARGS_END)
        return code;
    code = EXIT_OK;
    for (int i = a->next; i < a->argc; i++) {
        struct err err = {0};
        json_t *reply = NULL;
        char path[WHICH_ID_MAX + 40];
        if (path_of(a, a->argv[i], verb, path, sizeof path, &err) < 0 ||
            api_call(a->socket, method, path, NULL, &reply, &err) < 0) {
            code = out_fail(&err);
            continue;
        }
        printf("%s: %s\n", out_member(reply, "id"), done);
        json_decref(reply);
    }
    return code;
}

static int run_accept(int argc, char **argv)
{
    struct args a = {.cmd = &suppressions_verbs[ACCEPT], .argc = argc, .argv = argv};
    return each(&a, "POST", "/accept", "accepted");
}

static int run_lift(int argc, char **argv)
{
    struct args a = {.cmd = &suppressions_verbs[LIFT], .argc = argc, .argv = argv};
    return each(&a, "DELETE", "", "lifted");
}

const struct command command_suppressions = {
    .name = "suppressions",
    .usage = "ls|show|add|accept|lift [OPTION...]",
    .summary = "Findings that were looked at, left out of notices until a date.",
    .more =
        "Notices and the console's first view leave out what an accepted suppression is about.\n"
        "The audit log has all of it, and a threshold that pauses or kills counts it.\n",
    .verbs = suppressions_verbs,
};
