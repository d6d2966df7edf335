/* durward sandbox: sandboxes of the daemon, by its API. */
#include <stdlib.h>
#include <string.h>

#include "api_client.h"
#include "commands.h"
#include "out.h"

enum {
    OPT_POLICY = 256,
    OPT_NAME,
    OPT_LABEL,
    OPT_TTL,
    OPT_IDLE,
    OPT_REUSE,
    OPT_STATE,
    OPT_BACKEND,
    OPT_IMAGE,
    OPT_SNAPSHOT,
    OPT_ON_IDLE,
    OPT_NO_RESUME,
    OPT_PUBLISH
};
enum { TTL_MAX = 30 * 86400, PATH_BYTES = 16 * 1024 };

static int run_create(int argc, char **argv);
static int run_ls(int argc, char **argv);
static int run_show(int argc, char **argv);
static int run_rm(int argc, char **argv);
static int run_pause(int argc, char **argv);
static int run_stop(int argc, char **argv);
static int run_resume(int argc, char **argv);
static int run_fork(int argc, char **argv);

static const struct arg_option create_options[] = {
    {OPT_POLICY, "policy", "NAME", "the policy, where there is more than one"},
    {OPT_NAME, "name", "NAME", "a name of your own for it"},
    {OPT_LABEL, "label", "K=V", "a label; may be repeated"},
    {'e', "env", "K=V", "set a variable inside; may be repeated"},
    {OPT_TTL, "ttl", "T",
     "end it after T whatever it does (90s, 15m, 7d; default: the policy's, 24h)"},
    {OPT_IDLE, "idle-ttl", "T",
     "end it when nothing was done in it for T (default: the policy's, 1h; 0: never)"},
    {OPT_BACKEND, "backend", "NAME", "what makes it: bwrap or docker (default: the policy's)"},
    {OPT_IMAGE, "image", "NAME", "its root: an imported image, or with docker one of the engine's"},
    {OPT_ON_IDLE, "on-idle", "WHAT",
     "then delete, pause or stop it (default: the policy's, delete)"},
    {OPT_SNAPSHOT, "snapshot", "NAME", "begin with the files of a snapshot"},
    {OPT_PUBLISH, "publish", "[[ADDR:]H:]S",
     "reach its port S at H of this host (127.0.0.1; any free port); may be repeated"},
    {OPT_NO_RESUME, "no-auto-resume", NULL, "paused or stopped, it stays so until 'resume'"},
    {OPT_REUSE, "get-or-create", NULL, "take the one with these labels if there is one"},
    {0},
};

static const struct arg_option fork_options[] = {
    {OPT_NAME, "name", "NAME", "a name of your own for it"},
    {OPT_LABEL, "label", "K=V", "a label; may be repeated"},
    {'e', "env", "K=V", "set a variable inside; may be repeated (default: the same ones)"},
    {OPT_TTL, "ttl", "T",
     "end it after T whatever it does (90s, 15m, 7d; default: the policy's, 24h)"},
    {OPT_IDLE, "idle-ttl", "T",
     "end it when nothing was done in it for T (default: the policy's, 1h; 0: never)"},
    {OPT_ON_IDLE, "on-idle", "WHAT",
     "then delete, pause or stop it (default: the policy's, delete)"},
    {OPT_NO_RESUME, "no-auto-resume", NULL, "paused or stopped, it stays so until 'resume'"},
    {0},
};

static const struct arg_option ls_options[] = {
    {OPT_LABEL, "label", "K=V", "only with this label; may be repeated"},
    {OPT_STATE, "state", "STATE",
     "only creating, running, paused, resuming, stopped or stopping ones"},
    {0},
};

static const struct arg_option no_options[] = {{0}};

enum { CREATE, LS, SHOW, EXEC, CP, FORWARD, RM, PAUSE, STOP, RESUME, SNAPSHOT, RESTORE, FORK };

const struct command sandbox_verbs[] = {
    [CREATE] =
        {"sandbox create", "[--policy NAME] [--image NAME] [--label K=V]... [--ttl T] [OPTION...]",
         "Make a sandbox; prints its id.", create_options,
         "It runs when the id is printed. At its time to live, when it is idle too long, or by\n"
         "'durward sandbox rm' it ends, and its files go; the daemon's end stops it only.\n",
         run_create},
    [LS] = {"sandbox ls", "[--label K=V]... [--state STATE] [--json]", "List sandboxes.",
            ls_options, NULL, run_ls},
    [SHOW] = {"sandbox show", "[--json] ID", "Show a sandbox.", no_options, NULL, run_show},
    [EXEC] =
        {"sandbox exec", "[-i] [-t] [-e K=V]... [--workdir DIR] [--timeout T] ID [--] CMD...",
         "Run a command in a sandbox.", sandbox_exec_options,
         "Exit status: CMD's own, 128+N after signal N, 124 after --timeout, 125 when Durward\n"
         "failed (usage errors too), 126 when CMD cannot be executed, 127 when it was not\n"
         "found.\n",
         verb_exec},
    [CP] = {"sandbox cp", "SRC ID:PATH | ID:PATH DST",
            "Copy a file or a directory into or out of a sandbox.", no_options,
            "Regular files and directories; links and devices are left out, and said so. A file\n"
            "may have 64 MiB.\n",
            verb_cp},
    [FORWARD] = {"sandbox forward", "ID PORT [LOCAL]",
                 "Listen on 127.0.0.1 and forward to a port inside.", no_options,
                 "LOCAL is PORT by default; 0 takes a free one. Prints the address, then serves\n"
                 "until it is interrupted.\n",
                 verb_forward},
    [RM] = {"sandbox rm", "ID...", "End sandboxes and forget them.", no_options,
            "One that is not there is no error.\n", run_rm},
    [PAUSE] = {"sandbox pause", "ID", "Freeze a sandbox's processes.", no_options,
               "Where the daemon may use a freezer of control groups: as root, or in a delegated\n"
               "unit. A command, a copy or a forwarded port resumes it.\n",
               run_pause},
    [STOP] = {"sandbox stop", "ID", "End a sandbox's processes and keep its files.", no_options,
              "A command, a copy or a forwarded port makes it run again, above its files.\n",
              run_stop},
    [RESUME] = {"sandbox resume", "ID", "Let a paused or stopped sandbox run again.", no_options,
                NULL, run_resume},
    [SNAPSHOT] =
        {"sandbox snapshot",
         "[--reuse] ID NAME | ls | rm NAME... | export [--force] [-o FILE] NAME |\n"
         "                                import [NAME] FILE",
         "Keep a copy of a sandbox's files, by name.", sandbox_snapshot_options,
         "Of one that runs, each file is as it is just then. 'create --snapshot NAME' makes a\n"
         "sandbox of it, 'restore ID NAME' puts it in place of a sandbox's files. 'export NAME'\n"
         "writes an archive (NAME.tar, or -o FILE; one that is there stays unless you say "
         "--force),\n"
         "'import [NAME] FILE' makes a snapshot of such a one (FILE - is standard input; the name "
         "is\n"
         "the file's without .tar) where its image is known. The archive holds whatever the "
         "sandbox's files hold.\n",
         verb_snapshot},
    [RESTORE] = {"sandbox restore", "ID NAME", "Put a snapshot's files in place of a sandbox's.",
                 no_options, "What runs in it is ended; it runs again if it ran.\n", verb_restore},
    [FORK] = {"sandbox fork", "[--name NAME] [--label K=V]... [--ttl T] [OPTION...] ID",
              "Make another sandbox with a copy of its files; prints its id.", fork_options,
              "It has the same policy, placeholders of its own, and runs, or is paused if ID is.\n",
              run_fork},
    {0},
};

/* ---- create ---- */

static int put_time(const struct command *cmd, json_t *body, const char *key, const char *text,
                    bool zero)
{
    unsigned s = 0;
    if (!(zero && strcmp(text, "0") == 0) && args_duration(text, TTL_MAX, &s) < 0)
        return args_usage(cmd, "%s: a time such as 90s, 15m or 24h, at most 720h", text);
    json_object_set_new(body, key, json_integer(s));
    return EXIT_OK;
}

/* "80", "8080:80", "127.0.0.2:8080:80", "[::1]:8080:80" */
static int put_port(const struct command *cmd, json_t *body, const char *text)
{
    char address[96];
    uint64_t port;
    const char *last = strrchr(text, ':');
    size_t n = last ? (size_t)(last - text) : 0;
    if (slice_u64(slice_str(last ? last + 1 : text), 65535, &port) < 0 || port == 0 || n > 80 ||
        last == text)
        return args_usage(cmd, "--publish: %s is not [[ADDRESS:]PORT:]PORT", text);
    bool bare = memchr(text, ':', n) == NULL;
    snprintf(address, sizeof address, "%s%.*s%s", bare ? "127.0.0.1:" : "", (int)n, text,
             n ? "" : "0");
    if (json_object_get(body, "publish") == NULL)
        json_object_set_new(body, "publish", json_array());
    json_array_append_new(json_object_get(body, "publish"),
                          json_pack("{s:s, s:I}", "address", address, "port", (json_int_t)port));
    return EXIT_OK;
}

static int take_option(const struct args *a, int id, json_t *body)
{
    switch (id) {
    case OPT_POLICY:
        json_object_set_new(body, "policy", json_string(a->value));
        return EXIT_OK;
    case OPT_NAME:
        json_object_set_new(body, "name", json_string(a->value));
        return EXIT_OK;
    case OPT_BACKEND:
        json_object_set_new(body, "backend", json_string(a->value));
        return EXIT_OK;
    case OPT_IMAGE:
        json_object_set_new(body, "image", json_string(a->value));
        return EXIT_OK;
    case OPT_SNAPSHOT:
        json_object_set_new(body, "snapshot", json_string(a->value));
        return EXIT_OK;
    case OPT_ON_IDLE:
        json_object_set_new(body, "on_idle", json_string(a->value));
        return EXIT_OK;
    case OPT_NO_RESUME:
        json_object_set_new(body, "auto_resume", json_false());
        return EXIT_OK;
    case OPT_REUSE:
        json_object_set_new(body, "get_or_create", json_true());
        return EXIT_OK;
    case OPT_TTL:
        return put_time(a->cmd, body, "ttl", a->value, false);
    case OPT_IDLE:
        return put_time(a->cmd, body, "idle_ttl", a->value, true);
    case OPT_PUBLISH:
        return put_port(a->cmd, body, a->value);
    default:
        if (api_put_pair(body, id == 'e' ? "env" : "labels", a->value) == 0)
            return EXIT_OK;
        return args_usage(a->cmd, "%s must be NAME=VALUE", id == 'e' ? "-e" : "--label");
    }
}

/* The options; EXIT_OK when all of them are read. */
static int read_options(struct args *a, json_t *body)
{
    int id, code = EXIT_OK;
    while (code == EXIT_OK && (id = args_next(a)) != ARGS_END)
        code = id == ARGS_STOP ? ARGS_STOP : take_option(a, id, body);
    return code;
}

/* Ask for it, and print its id. */
static int make(const struct args *a, const char *path, const json_t *body)
{
    struct err err = {0};
    json_t *reply = NULL;
    if (api_call(a->socket, "POST", path, body, &reply, &err) < 0)
        return out_fail(&err);
    if (a->json)
        return out_json(reply) < 0 ? EXIT_NO : EXIT_OK;
    printf("%s\n", out_member(reply, "id"));
    json_decref(reply);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

static int run_create(int argc, char **argv)
{
    struct args a = {.cmd = &sandbox_verbs[CREATE], .argc = argc, .argv = argv};
    json_t *body = json_object();
    int code = read_options(&a, body);
    if (code == ARGS_STOP)
        code = a.exit_code;
    else if (code == EXIT_OK && a.next < argc)
        code = args_usage(a.cmd, "unexpected argument %s", argv[a.next]);
    else if (code == EXIT_OK)
        code = make(&a, "/v1/sandboxes", body);
    json_decref(body);
    return code;
}

/* ---- ls ---- */

static void add_query(struct buf *path, const char *name, const char *value)
{
    struct buf text;
    buf_init(&text, PATH_BYTES);
    api_quote(&text, value);
    if (buf_printf(path, "%c%s=%.*s", memchr(buf_data(path), '?', buf_len(path)) ? '&' : '?', name,
                   SL(buf_slice(&text))) < 0)
        buf_clear(path);
    buf_free(&text);
}

/* All pages. */
static json_t *get_all(const struct args *a, const struct buf *base, struct err *err)
{
    json_t *list = json_array(), *page = NULL;
    char after[32] = "";
    do {
        struct buf path;
        buf_init(&path, PATH_BYTES);
        if (buf_append_slice(&path, buf_slice(base)) < 0)
            buf_clear(&path);
        add_query(&path, "limit", "1000");
        if (*after)
            add_query(&path, "after", after);
        int bad = buf_append(&path, "", 1);
        if (bad ||
            api_call(a->socket, "GET", (const char *)buf_data(&path), NULL, &page, err) < 0) {
            buf_free(&path);
            json_decref(list);
            return NULL;
        }
        buf_free(&path);
        json_array_extend(list, json_object_get(page, "sandboxes"));
        snprintf(after, sizeof after, "%s", out_member(page, "next"));
        json_decref(page);
    } while (*after);
    return list;
}

static void print_list(const json_t *list)
{
    static const char *const titles[] = {"ID",    "NAME",  "POLICY", "BACKEND",
                                         "IMAGE", "STATE", "LABELS", NULL};
    size_t i;
    json_t *s, *value;
    const char *key;
    if (json_array_size(list) == 0) {
        fputs("durward: there are no sandboxes\n", stderr);
        return;
    }
    struct out_table *t = out_table_new(titles);
    json_array_foreach(list, i, s)
    {
        char labels[256] = "", clean[256], image[256];
        json_object_foreach(json_object_get(s, "labels"), key, value)
        {
            size_t at = strlen(labels);
            snprintf(labels + at, sizeof labels - at, "%s%s=%s", at ? "," : "", key,
                     json_string_value(value));
        }
        out_table_cell(t, out_member(s, "id"));
        out_table_cell(t, *out_member(s, "name") ? out_member(s, "name") : "-");
        out_table_cell(t, out_member(s, "policy"));
        out_table_cell(t, out_member(s, "backend"));
        out_table_cell(t, out_clean(out_member(s, "image"), image, sizeof image));
        out_table_cell(t, out_member(s, "state"));
        out_table_cell(t, *labels ? out_clean(labels, clean, sizeof clean) : "-");
    }
    out_table_print(t);
}

static int run_ls(int argc, char **argv)
{
    struct args a = {.cmd = &sandbox_verbs[LS], .argc = argc, .argv = argv};
    struct err err = {0};
    struct buf path;
    int id;
    buf_init(&path, PATH_BYTES);
    if (buf_append_str(&path, "/v1/sandboxes") < 0)
        return EXIT_NO;
    while ((id = args_next(&a)) != ARGS_END) {
        if (id == ARGS_STOP) {
            buf_free(&path);
            return a.exit_code;
        }
        add_query(&path, id == OPT_LABEL ? "label" : "state", a.value);
    }
    json_t *list = a.next < argc ? NULL : get_all(&a, &path, &err);
    buf_free(&path);
    if (a.next < argc)
        return args_usage(a.cmd, "unexpected argument %s", argv[a.next]);
    if (list == NULL)
        return out_fail(&err);
    if (a.json)
        return out_json(list) < 0 ? EXIT_NO : EXIT_OK;
    print_list(list);
    json_decref(list);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

/* ---- one ---- */

static bool id_ok(const char *id)
{
    size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return n > 0 && n <= 64 && id[n] == 0;
}

static int call_one(const struct args *a, const char *method, const char *id, const char *tail,
                    json_t **ret, struct err *err)
{
    char path[128];
    if (!id_ok(id))
        return err_set(err, ERR_PARSE, "'%.64s' is not a sandbox's id", id);
    snprintf(path, sizeof path, "/v1/sandboxes/%s%s", id, tail);
    return api_call(a->socket, method, path, NULL, ret, err);
}

static void print_one(const json_t *s)
{
    static const char *const shown[] = {"id",    "name",   "policy",  "backend", "image",
                                        "state", "reason", "workdir", "parent",  "snapshot"};
    const char *key;
    char clean[512];
    json_t *value;
    size_t i;
    for (i = 0; i < ARRAY_LEN(shown); i++)
        if (*out_member(s, shown[i]))
            printf("%-11s %s\n", shown[i], out_clean(out_member(s, shown[i]), clean, sizeof clean));
    printf("%-11s %lld\n", "generation",
           (long long)json_integer_value(json_object_get(s, "generation")));
    json_object_foreach(json_object_get(s, "labels"), key, value) printf(
        "%-11s %s=%s\n", "label", key, out_clean(json_string_value(value), clean, sizeof clean));
    printf("%-11s %lld s, idle %lld s\n", "ttl",
           (long long)json_integer_value(json_object_get(s, "ttl")),
           (long long)json_integer_value(json_object_get(s, "idle_ttl")));
    json_array_foreach(json_object_get(s, "published"), i, value) printf(
        "%-11s %s to %lld\n", "published", out_clean(out_member(value, "address"), clean, 200),
        (long long)json_integer_value(json_object_get(value, "port")));
    json_array_foreach(json_object_get(s, "denied"), i, value) printf(
        "%-11s %s (%s) x%lld\n", "denied", out_clean(out_member(value, "target"), clean, 200),
        out_member(value, "code"), (long long)json_integer_value(json_object_get(value, "count")));
}

/* ARGS_END when there are words left to work on, else what to return. */
static int read_ids(struct args *a, bool many)
{
    if (args_next(a) == ARGS_STOP)
        return a->exit_code;
    if (a->next == a->argc)
        return args_usage(a->cmd, "which sandbox?");
    if (!many && a->next + 1 < a->argc)
        return args_usage(a->cmd, "unexpected argument %s", a->argv[a->next + 1]);
    return ARGS_END;
}

static int show(const struct args *a, json_t *reply)
{
    if (a->json)
        return out_json(reply) < 0 ? EXIT_NO : EXIT_OK;
    print_one(reply);
    json_decref(reply);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

static int run_show(int argc, char **argv)
{
    struct args a = {.cmd = &sandbox_verbs[SHOW], .argc = argc, .argv = argv};
    struct err err = {0};
    json_t *reply;
    int code = read_ids(&a, false);
    if (code != ARGS_END)
        return code;
    return call_one(&a, "GET", argv[a.next], "", &reply, &err) < 0 ? out_fail(&err)
                                                                   : show(&a, reply);
}

static int run_rm(int argc, char **argv)
{
    struct args a = {.cmd = &sandbox_verbs[RM], .argc = argc, .argv = argv};
    json_t *reply;
    int code = read_ids(&a, true);
    if (code != ARGS_END)
        return code;
    code = EXIT_OK;
    for (int i = a.next; i < argc; i++) {
        struct err err = {0};
        if (call_one(&a, "DELETE", argv[i], "", &reply, &err) < 0)
            code = out_fail(&err);
    }
    return code;
}

static int change(const struct command *cmd, const char *tail, int argc, char **argv)
{
    struct args a = {.cmd = cmd, .argc = argc, .argv = argv};
    struct err err = {0};
    json_t *reply;
    int code = read_ids(&a, false);
    if (code != ARGS_END)
        return code;
    return call_one(&a, "POST", argv[a.next], tail, &reply, &err) < 0 ? out_fail(&err)
                                                                      : show(&a, reply);
}

static int run_pause(int argc, char **argv)
{
    return change(&sandbox_verbs[PAUSE], "/pause", argc, argv);
}

static int run_stop(int argc, char **argv)
{
    return change(&sandbox_verbs[STOP], "/stop", argc, argv);
}

static int run_resume(int argc, char **argv)
{
    return change(&sandbox_verbs[RESUME], "/resume", argc, argv);
}

static int run_fork(int argc, char **argv)
{
    struct args a = {.cmd = &sandbox_verbs[FORK], .argc = argc, .argv = argv};
    char path[128];
    json_t *body = json_object();
    int code = read_options(&a, body);
    if (code == ARGS_STOP)
        code = a.exit_code;
    else if (code == EXIT_OK && a.next + 1 != argc)
        code = args_usage(a.cmd, "which sandbox?");
    else if (code == EXIT_OK && !id_ok(argv[a.next]))
        code = args_usage(a.cmd, "'%.64s' is not a sandbox's id", argv[a.next]);
    else if (code == EXIT_OK) {
        snprintf(path, sizeof path, "/v1/sandboxes/%s/fork", argv[a.next]);
        code = make(&a, path, body);
    }
    json_decref(body);
    return code;
}

int cmd_sandbox(int argc, char **argv)
{
    static const struct command self = {
        "sandbox",
        "create|ls|show|exec|cp|forward|rm|pause|stop|resume|snapshot|restore|fork [OPTION...]",
        "Sandboxes of the daemon ('durward serve').",
        no_options,
        "'durward sandbox VERB --help' tells more.\n",
        cmd_sandbox};
    struct args a = {.cmd = &self, .argc = argc, .argv = argv, .in_order = true};
    for (size_t i = 0; argc > 1 && sandbox_verbs[i].name; i++)
        if (strcmp(argv[1], strchr(sandbox_verbs[i].name, ' ') + 1) == 0)
            return sandbox_verbs[i].run(argc - 1, argv + 1);
    if (args_next(&a) == ARGS_STOP)
        return a.exit_code;
    if (a.next == argc)
        return args_usage(&self, "create, ls, show, exec, cp, forward, rm, pause, stop, resume, "
                                 "snapshot, restore or fork?");
    return args_usage(&self, "there is no 'sandbox %s'", argv[a.next]);
}
