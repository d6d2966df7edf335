/* durward sandbox exec and attach */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api_client.h"
#include "commands.h"
#include "exec_session.h"
#include "out.h"
#include "run.h"
#include "terminal.h"
#include "which.h"

enum { OPT_WORKDIR = 256, OPT_KEEP, OPT_TIMEOUT, TIMEOUT_MAX = 30 * 86400 };

const struct arg_option sandbox_exec_options[] = {
    {'i', "interactive", NULL, "standard input goes to the command"},
    {'t', "tty", NULL, "the command has a terminal of its own"},
    {'e', "env", "K=V", "set a variable for it; may be repeated"},
    {OPT_WORKDIR, "workdir", "DIR", "start in this directory (default /workspace)"},
    {OPT_KEEP, "keep", NULL,
     "the command outlives this client: ^P ^Q leaves it, 'sandbox attach' comes back"},
    {'d', "detach", NULL, "start it, print its id and leave it; 'sandbox attach' comes to it"},
    {OPT_TIMEOUT, "timeout", "T", "end it after T (90s, 15m, 1h)"},
    {0},
};

struct wish {
    bool input, tty, keep, detach;
    json_t *body;
};

static int take(struct args *a, int id, struct wish *w)
{
    unsigned seconds;
    char name[256];
    size_t n;
    switch (id) {
    case 'i':
        w->input = true;
        return EXIT_OK;
    case 't':
        w->tty = true;
        return EXIT_OK;
    case OPT_KEEP:
        w->keep = true;
        return EXIT_OK;
    case 'd':
        w->keep = w->detach = true;
        return EXIT_OK;
    case OPT_WORKDIR:
        json_object_set_new(w->body, "cwd", json_string(a->value));
        return EXIT_OK;
    case OPT_TIMEOUT:
        if (args_duration(a->value, TIMEOUT_MAX, &seconds) < 0)
            return args_usage(a->cmd, "%s: a time such as 90s, 15m or 1h", a->value);
        json_object_set_new(w->body, "timeout", json_integer(seconds));
        return EXIT_OK;
    default:
        n = strcspn(a->value, "=");
        if (n == 0 || n >= sizeof name || a->value[n] == 0)
            return args_usage(a->cmd, "-e must be NAME=VALUE");
        snprintf(name, sizeof name, "%.*s", (int)n, a->value);
        json_object_set_new(json_object_get(w->body, "env"), name, json_string(a->value + n + 1));
        return EXIT_OK;
    }
}

static int fill(struct args *a, struct wish *w)
{
    json_t *argv = json_array();
    int first = a->next + 1;
    if (first < a->argc && strcmp(a->argv[first], "--") == 0)
        first++;
    for (int i = first; i < a->argc; i++)
        json_array_append_new(argv, json_string(a->argv[i]));
    json_object_set_new(w->body, "argv", argv);
    json_object_set_new(w->body, "split", json_boolean(!a->json || w->detach));
    if (w->keep)
        json_object_set_new(w->body, "keep", json_true());
    if (json_array_size(argv) == 0)
        return args_usage(a->cmd, "which command?");
    for (size_t i = 0; i < json_array_size(argv); i++)
        if (json_array_get(argv, i) == NULL)
            return args_usage(a->cmd, "a word of the command is not UTF-8");
    if ((size_t)(a->argc - first) != json_array_size(argv))
        return args_usage(a->cmd, "a word of the command is not UTF-8");
    if (!w->tty)
        return EXIT_OK;
    uint32_t rows, cols;
    const char *term = getenv("TERM");
    terminal_size(STDOUT_FILENO, &rows, &cols);
    json_object_set_new(w->body, "tty", json_true());
    json_object_set_new(w->body, "rows", json_integer(rows));
    json_object_set_new(w->body, "cols", json_integer(cols));
    if (term && json_object_get(json_object_get(w->body, "env"), "TERM") == NULL)
        json_object_set_new(json_object_get(w->body, "env"), "TERM", json_string(term));
    return EXIT_OK;
}

static int answer_json(const struct args *a, const char *path, const struct wish *w)
{
    struct err err = {0};
    json_t *reply;
    if (w->input || w->tty || w->keep)
        return args_usage(a->cmd, "--json does not go with -i, -t or --keep"), EXIT_DURWARD_FAILED;
    if (api_await(a->socket, "POST", path, w->body, &reply, &err) < 0) {
        out_error("%s", err.text);
        return EXIT_DURWARD_FAILED;
    }
    int code = (int)json_integer_value(json_object_get(reply, "exit_code"));
    return out_json(reply) < 0 ? EXIT_DURWARD_FAILED : code;
}

/* It is started, and nobody waits for it. */
static int leave(const struct args *a, const char *path, const struct wish *w)
{
    struct err err = {0};
    json_t *reply;
    if (w->input)
        return args_usage(a->cmd, "-i goes with --keep, not with -d"), EXIT_DURWARD_FAILED;
    if (api_call(a->socket, "POST", path, w->body, &reply, &err) < 0) {
        out_error("%s", err.text);
        return EXIT_DURWARD_FAILED;
    }
    if (a->json)
        return out_json(reply) < 0 ? EXIT_DURWARD_FAILED : EXIT_OK;
    printf("%s\n", out_member(reply, "id"));
    json_decref(reply);
    return out_flush() < 0 ? EXIT_DURWARD_FAILED : EXIT_OK;
}

static int talk(const struct args *a, const char *box, const char *path, const json_t *body,
                const struct exec_wishes *wishes)
{
    struct err err = {0};
    struct exec_result result = {0};
    struct buf ahead;
    char clean[1024];
    int sock = exec_upgrade(a->socket, path, "durward-exec", body, &ahead, &err);
    if (sock < 0) {
        out_error("%s", err.text);
        buf_free(&ahead);
        return EXIT_DURWARD_FAILED;
    }
    exec_session(sock, buf_data(&ahead), buf_len(&ahead), wishes, &result);
    buf_free(&ahead);
    if (result.text[0])
        out_error("%s", out_clean(result.text, clean, sizeof clean));
    if (result.detached)
        out_error("detached; 'durward sandbox attach %s %s' comes back", box,
                  out_clean(result.id, clean, sizeof clean));
    return result.status;
}

int verb_exec(int argc, char **argv)
{
    struct args a = {.cmd = NULL, .argc = argc, .argv = argv, .in_order = true};
    struct wish w = {.body = json_object()};
    struct err err = {0};
    char path[128], box[WHICH_ID_MAX + 1];
    int id, code = EXIT_OK;
    for (const struct command *v = sandbox_verbs; v->name; v++)
        if (v->run == verb_exec)
            a.cmd = v;
    json_object_set_new(w.body, "env", json_object());
    json_object_set_new(w.body, "timeout", json_integer(0));
    while (code == EXIT_OK && (id = args_next(&a)) != ARGS_END) {
        if (id == ARGS_STOP) {
            json_decref(w.body);
            return a.exit_code == EXIT_OK ? EXIT_OK : EXIT_DURWARD_FAILED;
        }
        code = take(&a, id, &w);
    }
    if (code == EXIT_OK)
        code = a.next == argc ? args_usage(a.cmd, "which sandbox?") : fill(&a, &w);
    if (code == EXIT_OK && which_one(a.socket, WHICH_SANDBOX, argv[a.next], box, &err) < 0)
        code = out_fail(&err);
    if (code != EXIT_OK) {
        json_decref(w.body);
        return EXIT_DURWARD_FAILED; /* 2 could be the command's own */
    }
    snprintf(path, sizeof path, "/v1/sandboxes/%s/exec", box);
    const struct exec_wishes wishes = {.input = w.input, .tty = w.tty, .kept = w.keep};
    code = w.detach ? leave(&a, path, &w)
           : a.json ? answer_json(&a, path, &w)
                    : talk(&a, box, path, w.body, &wishes);
    json_decref(w.body);
    return code;
}

/* ---- attach ---- */

static void add_shown(char *text, size_t size, const json_t *o)
{
    char clean[EXEC_ID_MAX + 1];
    size_t at = strlen(text);
    if (at < size)
        snprintf(text + at, size - at, "%s%s", at ? ", " : "",
                 out_clean(out_member(o, "id"), clean, sizeof clean));
}

/* The kept command that is meant: by its id, or the only one. Borrowed of the list; NULL with err.
 */
static const json_t *which_kept(const json_t *list, const char *word, struct err *err)
{
    char all[600] = "";
    const json_t *o, *found = NULL;
    size_t i, n = 0;
    json_array_foreach(list, i, o)
    {
        if (!json_is_true(json_object_get(o, "kept")) ||
            (word && strcmp(word, out_member(o, "id")) != 0))
            continue;
        found = o;
        n++;
        add_shown(all, sizeof all, o);
    }
    if (n == 1)
        return found;
    if (n > 1)
        err_set(err, ERR_PARSE, "which of them: %s?", all);
    else if (word)
        err_set(err, ERR_UNREADY, "no kept command '%.64s' runs in it", word);
    else
        err_set(err, ERR_UNREADY, "no command runs in it that was started with --keep or -d");
    return NULL;
}

static int attach(const struct args *a, const char *box, const char *word)
{
    struct err err = {0};
    char path[WHICH_ID_MAX + EXEC_ID_MAX + 64];
    json_t *reply = NULL;
    snprintf(path, sizeof path, "/v1/sandboxes/%s/exec", box);
    const json_t *one = api_call(a->socket, "GET", path, NULL, &reply, &err) < 0
                            ? NULL
                            : which_kept(json_object_get(reply, "execs"), word, &err);
    if (one == NULL) {
        json_decref(reply);
        out_error("%s", err.text);
        return EXIT_DURWARD_FAILED;
    }
    const struct exec_wishes wishes = {
        .input = true,
        .tty = json_is_true(json_object_get(one, "tty")),
        .kept = true,
        .later = true,
    };
    snprintf(path, sizeof path, "/v1/sandboxes/%s/exec/%.64s/attach", box, out_member(one, "id"));
    json_decref(reply);
    return talk(a, box, path, NULL, &wishes);
}

int verb_attach(int argc, char **argv)
{
    struct args a = {.argc = argc, .argv = argv};
    struct err err = {0};
    char box[WHICH_ID_MAX + 1];
    for (const struct command *v = sandbox_verbs; v->name; v++)
        if (v->run == verb_attach)
            a.cmd = v;
    if (args_next(&a) == ARGS_STOP)
        return a.exit_code == EXIT_OK ? EXIT_OK : EXIT_DURWARD_FAILED;
    if (argc - a.next < 1 || argc - a.next > 2)
        return args_usage(a.cmd, "which sandbox, and which of its commands?"), EXIT_DURWARD_FAILED;
    if (a.json)
        return args_usage(a.cmd, "--json does not go with attach: what the command writes is "
                                 "passed on as it is"),
               EXIT_DURWARD_FAILED;
    if (which_one(a.socket, WHICH_SANDBOX, argv[a.next], box, &err) < 0)
        return out_fail(&err), EXIT_DURWARD_FAILED;
    return attach(&a, box, argc - a.next == 2 ? argv[a.next + 1] : NULL);
}
