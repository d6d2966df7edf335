/* durward sandbox: sandboxes of the daemon, by its API. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api_client.h"
#include "commands.h"
#include "out.h"
#include "which.h"

enum { TTL_MAX = 30 * 86400, PATH_BYTES = 16 * 1024 };

static int run_create(int argc, char **argv);
static int run_ls(int argc, char **argv);
static int run_show(int argc, char **argv);
static int run_rm(int argc, char **argv);
static int run_pause(int argc, char **argv);
static int run_stop(int argc, char **argv);
static int run_resume(int argc, char **argv);
static int run_fork(int argc, char **argv);

static int put_port(const struct args *a, json_t *body);

/* Rows that create and fork share. */
#define NAME_ROW                                                      \
    {                                                                 \
        0, "name", "NAME", "a name of your own for it", .key = "name" \
    }
#define ENV_ROW(text)                                             \
    {                                                             \
        'e', "env", "K=V", text, .key = "env", .member = ARG_PAIR \
    }
#define TTL_ROW                                                                           \
    {                                                                                     \
        0, "ttl", "T",                                                                    \
            "end it after T whatever it does (90s, 15m, 7d; default: the policy's, 24h)", \
            .key = "ttl", .member = ARG_TIME, .most = TTL_MAX                             \
    }
#define IDLE_TTL_ROW                                                                          \
    {                                                                                         \
        0, "idle-ttl", "T",                                                                   \
            "end it when nothing was done in it for T (default: the policy's, 1h; 0: never)", \
            .key = "idle_ttl", .member = ARG_TIME_OR_NONE, .most = TTL_MAX                    \
    }
#define ON_IDLE_ROW                                                                            \
    {                                                                                          \
        0, "on-idle", "WHAT", "then delete, pause or stop it (default: the policy's, delete)", \
            .key = "on_idle"                                                                   \
    }
#define SOFT_TTL_ROW                                                                        \
    {                                                                                       \
        0, "soft-ttl", "T",                                                                 \
            "stop it when it has run for T at a stretch (default: the policy's, 0: never)", \
            .key = "soft_ttl", .member = ARG_TIME_OR_NONE, .most = TTL_MAX                  \
    }
#define ON_SOFT_TTL_ROW                                                                  \
    {                                                                                    \
        0, "on-soft-ttl", "WHAT", "then stop or pause it (default: the policy's, stop)", \
            .key = "on_soft_ttl"                                                         \
    }
#define NO_RESUME_ROW                                                               \
    {                                                                               \
        0, "no-auto-resume", NULL, "paused or stopped, it stays so until 'resume'", \
            .key = "auto_resume", .member = ARG_FALSE                               \
    }

static const struct arg_option create_options[] = {
    {0, "policy", "NAME", "the policy, where there is more than one", .key = "policy"},
    {0, "template", "NAME",
     "one of this template ('durward template'), from its pool if that has one", .key = "template"},
    NAME_ROW,
    ARG_LABEL,
    ENV_ROW("set a variable inside; may be repeated"),
    TTL_ROW,
    IDLE_TTL_ROW,
    {0, "backend", "NAME",
     "what makes it: bwrap, docker, gvisor, kubernetes or microvm (default: the policy's)",
     .key = "backend"},
    {0, "image", "NAME", "its root: an imported image, or one of the engine's or cluster's",
     .key = "image"},
    ON_IDLE_ROW,
    SOFT_TTL_ROW,
    ON_SOFT_TTL_ROW,
    {0, "snapshot", "NAME", "begin with the files of a snapshot", .key = "snapshot"},
    {0, "publish", "[[ADDR:]H:]S",
     "reach its port S at H of this host (127.0.0.1; any free port); may be repeated",
     .put = put_port},
    {0, "volume", "NAME:/PATH[:ro]",
     "mount a volume of its policy ('durward volume'); may be repeated", .key = "volumes",
     .member = ARG_ITEM},
    NO_RESUME_ROW,
    {0, "get-or-create", NULL, "take the one with these labels if there is one",
     .key = "get_or_create"},
    {0},
};

static const struct arg_option fork_options[] = {
    NAME_ROW,
    ARG_LABEL,
    ENV_ROW("set a variable inside; may be repeated (default: the same ones)"),
    TTL_ROW,
    IDLE_TTL_ROW,
    ON_IDLE_ROW,
    SOFT_TTL_ROW,
    ON_SOFT_TTL_ROW,
    NO_RESUME_ROW,
    {0},
};

enum { OPT_LABEL = 256, OPT_STATE };

static const struct arg_option ls_options[] = {
    {OPT_LABEL, "label", "K=V", "only with this label; may be repeated"},
    {OPT_STATE, "state", "STATE",
     "only creating, running, paused, resuming, stopped or stopping ones"},
    {0},
};

enum {
    CREATE,
    LS,
    SHOW,
    EXEC,
    ATTACH,
    CP,
    WATCH,
    SYNC,
    FORWARD,
    SERVICES,
    PREVIEW,
    RM,
    PAUSE,
    STOP,
    RESUME,
    SNAPSHOT,
    RESTORE,
    FORK
};

const struct command sandbox_verbs[] = {
    [CREATE] =
        {"sandbox create", "[--policy NAME] [--image NAME] [--label K=V]... [--ttl T] [OPTION...]",
         "Make a sandbox; prints its id.", create_options,
         "It runs when the id is printed. At its time to live, when it is idle too long, or by\n"
         "'durward sandbox rm' it ends, and its files go; the daemon's end stops it only. It sees\n"
         "no file of this host: 'sandbox cp' and 'sandbox sync' bring some in, --volume mounts "
         "one\n"
         "that stays, and 'durward run' binds a directory.\n",
         run_create},
    [LS] = {"sandbox ls", "[--label K=V]... [--state STATE] [--json]", "List sandboxes.",
            ls_options,
            "AGE since it was made, EXPIRES until its end, or its sleep, if it is not used, USED "
            "since its last\n"
            "use, REFUSED what was denied to it since it runs.\n",
            run_ls},
    [SHOW] = {"sandbox show", "[--json] ID", "Show a sandbox.", NULL, NULL, run_show},
    [EXEC] =
        {"sandbox exec",
         "[-i] [-t] [--keep | -d] [-e K=V]... [--workdir DIR] [--timeout T] ID [--] CMD...",
         "Run a command in a sandbox.", sandbox_exec_options,
         "Exit status: CMD's own, 128+N after signal N, 124 after --timeout, 125 when Durward\n"
         "failed (usage errors too), 126 when CMD cannot be executed, 127 when it was not\n"
         "found. With --keep the command goes on when this client leaves (^P ^Q on a terminal, a\n"
         "line that breaks, SIGHUP); -d leaves it at once.\n",
         verb_exec},
    [ATTACH] = {"sandbox attach", "ID [COMMAND]",
                "Come back to a command that was started with --keep or -d.", NULL,
                "COMMAND is the id that -d printed; leave it out where there is only one. You see "
                "what it\n"
                "wrote last (256 KiB), then what it writes, and what you type goes to it. A client "
                "that was\n"
                "attached before is sent away. ^P ^Q leaves again. Exit status: as of exec.\n\n"
                "  durward sandbox exec -it --keep my-box bash\n"
                "  durward sandbox attach my-box\n",
                verb_attach},
    [CP] =
        {"sandbox cp", "[--json] SRC ID:PATH | ID:PATH DST",
         "Copy a file or a directory into or out of a sandbox.", NULL,
         "Regular files and directories, with their permissions as far as the umask leaves them;\n"
         "links and devices are left out, and said so. A file may have 64 MiB. --json prints how "
         "many files and bytes were copied.\n",
         verb_cp},
    [WATCH] =
        {"sandbox watch", "[--skip NAME]... [--json] ID[:PATH]",
         "Tell what happens to a sandbox's files.", sandbox_watch_options,
         "A line for each file or directory below PATH (/workspace) that is created, modified or\n"
         "deleted, or gets other attributes, until it is interrupted. A move is a deletion and a\n"
         "creation. 'overflow' says that something was missed. With --json each line is the "
         "API's,\n"
         "the first is 'ready'. Exit status 1 when the sandbox or the directory is gone.\n\n"
         "  durward sandbox watch --skip node_modules --skip .git my-box:/workspace/site\n",
         verb_watch},
    [SYNC] =
        {"sandbox sync",
         "[--once] [--direction WHICH] [--ignore PATTERN]... [OPTION...] ID DIR[:/PATH]",
         "Keep a directory of this host and one of a sandbox the same.", sandbox_sync_options,
         "What is saved on either side is carried to the other, until it is interrupted. PATH is\n"
         "/workspace. Where both changed a file, DIR's goes on and the sandbox's is kept beside\n"
         "it as NAME.conflict-ID-N. Regular files are carried; links, devices, files that hold\n"
         "credentials, and what .durwardignore names stay where they are; .git goes in only,\n"
         "unless you say --git-metadata. Exit status: 1 when something failed, with --once 3 when\n"
         "a conflict was kept.\n\n"
         "  durward sandbox sync --ignore node_modules my-box ~/site:/workspace/site\n",
         verb_sync},
    [FORWARD] = {"sandbox forward", "ID PORT [LOCAL]",
                 "Listen on 127.0.0.1 and forward to a port inside.", NULL,
                 "LOCAL is PORT by default; 0 takes a free one. Prints the address, then serves\n"
                 "until it is interrupted.\n",
                 verb_forward},
    [SERVICES] =
        {"sandbox services", "[--json] ID", "Show the services that a sandbox's policy names.",
         NULL,
         "Each is looked at now: a connection inside, or a GET of its health path. STATE is\n"
         "healthy, unhealthy, closed (nothing listens), or asleep with its sandbox, which\n"
         "this does not wake.\n",
         verb_services},
    [PREVIEW] = {"sandbox preview", "[--ttl T] [--json] ID SERVICE | --revoke ID [SERVICE]",
                 "Make a link by which a browser sees a service of a sandbox.",
                 sandbox_preview_options,
                 "SERVICE is one that the policy names, or a port. The link is good once, for ten\n"
                 "minutes; the browser that opened it may look for T. Where previews are on:\n"
                 "'controller: { preview: ADDRESS:PORT }' and, in the policy,\n"
                 "'sandbox: { previews: true }'. --revoke ends what was given out for SERVICE, or "
                 "for all\n"
                 "of the sandbox: links, tokens, cookies, and connections that are open.\n\n"
                 "  durward sandbox preview my-box web\n"
                 "  durward sandbox preview --revoke my-box web\n",
                 verb_preview},
    [RM] = {"sandbox rm", "ID...", "End sandboxes and forget them.", NULL,
            "The whole id of one that has ended meanwhile is not an error.\n", run_rm},
    [PAUSE] = {"sandbox pause", "ID", "Freeze a sandbox's processes.", NULL,
               "Where the daemon may use a freezer of control groups: as root, or in a delegated\n"
               "unit. A command, a copy or a forwarded port resumes it.\n",
               run_pause},
    [STOP] = {"sandbox stop", "ID", "End a sandbox's processes and keep its files.", NULL,
              "A command, a copy or a forwarded port makes it run again, above its files.\n",
              run_stop},
    [RESUME] = {"sandbox resume", "ID", "Let a paused or stopped sandbox run again.", NULL, NULL,
                run_resume},
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
                 NULL, "What runs in it is ended; it runs again if it ran.\n", verb_restore},
    [FORK] = {"sandbox fork", "[--name NAME] [--label K=V]... [--ttl T] [OPTION...] ID",
              "Make another sandbox with a copy of its files; prints its id.", fork_options,
              "It has the same policy, placeholders of its own, and runs, or is paused if ID is.\n",
              run_fork},
    {0},
};

/* ---- create ---- */

/* "80", "8080:80", "127.0.0.2:8080:80", "[::1]:8080:80" */
static int put_port(const struct args *a, json_t *body)
{
    const char *text = a->value;
    char address[96];
    uint64_t port;
    const char *last = strrchr(text, ':');
    size_t n = last ? (size_t)(last - text) : 0;
    if (slice_u64(slice_str(last ? last + 1 : text), 65535, &port) < 0 || port == 0 || n > 80 ||
        last == text)
        return args_usage(a->cmd, "--publish: %s is not [[ADDRESS:]PORT:]PORT", text);
    bool bare = memchr(text, ':', n) == NULL;
    snprintf(address, sizeof address, "%s%.*s%s", bare ? "127.0.0.1:" : "", (int)n, text,
             n ? "" : "0");
    if (json_object_get(body, "publish") == NULL)
        json_object_set_new(body, "publish", json_array());
    json_array_append_new(json_object_get(body, "publish"),
                          json_pack("{s:s, s:I}", "address", address, "port", (json_int_t)port));
    return EXIT_OK;
}

static int run_create(int argc, char **argv)
{
    struct args a = {.cmd = &sandbox_verbs[CREATE], .argc = argc, .argv = argv};
    json_t *body = json_object();
    int code = args_body(&a, body, 0, 0, "");
    if (code == ARGS_END)
        code = api_print(&a, "POST", "/v1/sandboxes", body, api_print_id);
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

static int64_t number(const json_t *s, const char *key)
{
    return json_integer_value(json_object_get(s, key));
}

/* How far off a time is; "-": there is no such time. */
static const char *span_text(const json_t *at, int64_t sign, char *to, size_t size)
{
    if (!json_is_integer(at))
        return "-";
    return out_span(sign * (json_integer_value(at) - (int64_t)time(NULL)), to, size);
}

static void cell_span(struct out_table *t, const json_t *at, int64_t sign)
{
    char text[24];
    out_table_cell(t, span_text(at, sign, text, sizeof text));
}

/* The nearest of its ends. */
static const json_t *ends_at(const json_t *s)
{
    static const char *const keys[] = {"idle_expires_at", "soft_expires_at"};
    const json_t *ret = json_object_get(s, "expires_at");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const json_t *at = json_object_get(s, keys[i]);
        if (json_is_integer(at) && json_integer_value(at) < json_integer_value(ret))
            ret = at;
    }
    return ret;
}

static void cell_refused(struct out_table *t, const json_t *s)
{
    int64_t n = 0;
    size_t i;
    const json_t *one;
    json_array_foreach(json_object_get(s, "denied"), i, one) n += number(one, "count");
    out_table_number(t, n);
}

static void cell_labels(struct out_table *t, const json_t *s)
{
    char labels[256] = "", clean[256];
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(s, "labels"), key, value)
    {
        size_t at = strlen(labels);
        snprintf(labels + at, sizeof labels - at, "%s%s=%s", at ? "," : "", key,
                 json_string_value(value));
    }
    out_table_cell(t, *labels ? out_clean(labels, clean, sizeof clean) : "-");
}

static void print_row(struct out_table *t, const json_t *s)
{
    char image[256];
    out_table_cell(t, out_member(s, "id"));
    out_table_cell(t, *out_member(s, "name") ? out_member(s, "name") : "-");
    out_table_cell(t, out_member(s, "policy"));
    out_table_cell(t, out_member(s, "backend"));
    out_table_cell(t, out_clean(out_member(s, "image"), image, sizeof image));
    out_table_cell(t, out_member(s, "state"));
    cell_span(t, json_object_get(s, "created_at"), -1);
    cell_span(t, ends_at(s), 1);
    cell_span(t, json_object_get(s, "used_at"), -1);
    cell_refused(t, s);
    cell_labels(t, s);
}

static int run_ls(int argc, char **argv)
{
    static const char *const titles[] = {"ID",  "NAME",    "POLICY", "BACKEND", "IMAGE",  "STATE",
                                         "AGE", "EXPIRES", "USED",   "REFUSED", "LABELS", NULL};
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
    int bad = buf_append(&path, "", 1);
    json_t *list = bad || a.next < argc
                       ? NULL
                       : which_pages(a.socket, (const char *)buf_data(&path), "sandboxes", &err);
    buf_free(&path);
    if (a.next < argc)
        return args_usage(a.cmd, "unexpected argument %s", argv[a.next]);
    return list ? out_list(list, a.json, titles, "there are no sandboxes", print_row)
                : out_fail(&err);
}

/* ---- one ---- */

/* It acts on one: `call` shows what is answered, or says only what failed. */
static int call_one(const struct args *a, const char *method, const char *word, const char *tail,
                    const json_t *body, void (*print)(const json_t *reply))
{
    struct err err = {0};
    char path[WHICH_ID_MAX + 64], id[WHICH_ID_MAX + 1];
    if (which_one(a->socket, WHICH_SANDBOX, word, id, &err) < 0)
        return out_fail(&err);
    snprintf(path, sizeof path, "/v1/sandboxes/%s%s", id, tail);
    return api_print(a, method, path, body, print);
}

static void print_counts(const json_t *s, const char *key)
{
    char clean[200];
    const json_t *one;
    size_t i;
    json_array_foreach(json_object_get(s, key), i, one) printf(
        "%-11s %s (%s) x%lld\n", key, out_clean(out_member(one, "target"), clean, sizeof clean),
        out_member(one, "code"), (long long)number(one, "count"));
}

static void print_span(const char *name, const json_t *at, int64_t sign)
{
    char text[24];
    printf("%-11s %s\n", name, span_text(at, sign, text, sizeof text));
}

/* For how long it may live and idle, and the columns of `ls`. */
static void print_times(const json_t *s)
{
    char ttl[24], idle[24];
    printf("%-11s %s, idle %s\n", "ttl", out_span(number(s, "ttl"), ttl, sizeof ttl),
           number(s, "idle_ttl") > 0 ? out_span(number(s, "idle_ttl"), idle, sizeof idle) : "-");
    print_span("age", json_object_get(s, "created_at"), -1);
    print_span("expires", ends_at(s), 1);
    print_span("last used", json_object_get(s, "used_at"), -1);
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
    print_times(s);
    json_array_foreach(json_object_get(s, "published"), i, value) printf(
        "%-11s %s to %lld\n", "published", out_clean(out_member(value, "address"), clean, 200),
        (long long)json_integer_value(json_object_get(value, "port")));
    json_array_foreach(json_object_get(s, "volumes"), i, value)
        printf("%-11s %s\n", "volume", out_clean(json_string_value(value), clean, sizeof clean));
    print_counts(s, "denied");
    print_counts(s, "failed");
}

static int run_show(int argc, char **argv)
{
    struct args a = {.cmd = &sandbox_verbs[SHOW], .argc = argc, .argv = argv};
    int code = args_plain(&a, 1, 1, "which sandbox?");
    return code != ARGS_END ? code : call_one(&a, "GET", argv[a.next], "", NULL, print_one);
}

static int run_rm(int argc, char **argv)
{
    struct args a = {.cmd = &sandbox_verbs[RM], .argc = argc, .argv = argv};
    int code = args_plain(&a, 1, INT_MAX, "which sandbox?");
    return code != ARGS_END ? code : which_remove(&a, WHICH_SANDBOX);
}

static int change(const struct command *cmd, const char *tail, int argc, char **argv)
{
    struct args a = {.cmd = cmd, .argc = argc, .argv = argv};
    int code = args_plain(&a, 1, 1, "which sandbox?");
    return code != ARGS_END ? code : call_one(&a, "POST", argv[a.next], tail, NULL, print_one);
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
    json_t *body = json_object();
    int code = args_body(&a, body, 1, 1, "which sandbox?");
    if (code == ARGS_END)
        code = call_one(&a, "POST", argv[a.next], "/fork", body, api_print_id);
    json_decref(body);
    return code;
}

const struct command command_sandbox = {
    .name = "sandbox",
    .usage = "create|ls|show|exec|cp|... [OPTION...]",
    .summary = "Sandboxes of the daemon ('durward serve').",
    .more = "An ID is the id, the name, or the first letters of an id that no other sandbox has.\n",
    .verbs = sandbox_verbs,
};
