/* durward sandbox exec */
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

enum { OPT_WORKDIR = 256, OPT_TIMEOUT, TIMEOUT_MAX = 30 * 86400 };

const struct arg_option sandbox_exec_options[] = {
    {'i', "interactive", NULL, "standard input goes to the command"},
    {'t', "tty", NULL, "the command has a terminal of its own"},
    {'e', "env", "K=V", "set a variable for it; may be repeated"},
    {OPT_WORKDIR, "workdir", "DIR", "start in this directory (default /workspace)"},
    {OPT_TIMEOUT, "timeout", "T", "end it after T (90s, 15m, 1h)"},
    {0},
};

struct wish {
    bool input, tty;
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
    json_object_set_new(w->body, "split", json_boolean(!a->json));
    if (json_array_size(argv) == 0)
        return args_usage(a->cmd, "which command?");
    for (size_t i = 0; i < json_array_size(argv); i++)
        if (json_array_get(argv, i) == NULL)
            return args_usage(a->cmd, "a word of the command is no UTF-8");
    if ((size_t)(a->argc - first) != json_array_size(argv))
        return args_usage(a->cmd, "a word of the command is no UTF-8");
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
    if (w->input || w->tty)
        return args_usage(a->cmd, "--json goes with neither -i nor -t"), EXIT_DURWARD_FAILED;
    if (api_await(a->socket, "POST", path, w->body, &reply, &err) < 0) {
        out_error("%s", err.text);
        return EXIT_DURWARD_FAILED;
    }
    int code = (int)json_integer_value(json_object_get(reply, "exit_code"));
    return out_json(reply) < 0 ? EXIT_DURWARD_FAILED : code;
}

static int talk(const struct args *a, const char *path, const struct wish *w)
{
    struct err err = {0};
    struct exec_result result = {0};
    struct buf ahead;
    char clean[1024];
    int sock = exec_upgrade(a->socket, path, "durward-exec", w->body, &ahead, &err);
    if (sock < 0) {
        out_error("%s", err.text);
        buf_free(&ahead);
        return EXIT_DURWARD_FAILED;
    }
    exec_session(sock, buf_data(&ahead), buf_len(&ahead), w->input, w->tty, &result);
    buf_free(&ahead);
    if (result.text[0])
        out_error("%s", out_clean(result.text, clean, sizeof clean));
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
    code = a.json ? answer_json(&a, path, &w) : talk(&a, path, &w);
    json_decref(w.body);
    return code;
}
