/* durward sandbox watch: what happens to the files of a sandbox, a line an event. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "api_client.h"
#include "commands.h"
#include "exec_session.h"
#include "out.h"
#include "slice.h"
#include "which.h"

enum { LINE_BYTES = 16384, SHOWN = 4096 * 4 };

const struct arg_option sandbox_watch_options[] = {
    {'s', "skip", "NAME", "do not look at files and directories of this name; may be repeated"},
    {0},
};

/* The path as it is shown: what is no plain text is escaped. */
static void print_event(const json_t *o)
{
    char text[SHOWN];
    const char *type = out_member(o, "type");
    if (strcmp(type, "ready") == 0)
        return; /* said where it is waited for: a script sees it with --json */
    if (strcmp(type, "overflow") == 0)
        printf("overflow\t%s\n", strcmp(out_member(o, "reason"), "events") == 0
                                     ? "events were lost"
                                     : "there are more directories than can be watched");
    else
        printf("%s\t%s%s%s\n", type,
               strcmp(out_member(o, "encoding"), "base64") == 0 ? "base64:" : "",
               out_clean(out_member(o, "path"), text, sizeof text),
               json_is_true(json_object_get(o, "directory")) ? "/" : "");
}

/* One line of the daemon's. 1: it was the last; -1: it cannot be read, or nobody reads ours. */
static int take_line(const struct args *a, const char *line)
{
    json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    int r = json_is_object(o) && json_is_string(json_object_get(o, "type")) ? 0 : -1;
    bool last = r == 0 && strcmp(out_member(o, "type"), "end") == 0;
    if (r < 0)
        out_error("the daemon says something that cannot be read");
    else if (last)
        out_error("the watch ended: %s", out_member(o, "message"));
    else if (a->json)
        printf("%s\n", line);
    else
        print_event(o);
    json_decref(o);
    return r < 0 || out_flush() < 0 ? -1 : last;
}

static int take_lines(const struct args *a, struct buf *in)
{
    ssize_t end;
    while ((end = slice_find(buf_slice(in), '\n')) >= 0) {
        char *line = (char *)buf_data(in);
        line[end] = 0;
        int r = take_line(a, line);
        if (r != 0)
            return r;
        buf_drain(in, (size_t)end + 1);
    }
    return 0;
}

/* Until it ends, which is never well: the sandbox or the directory is gone. */
static void follow(const struct args *a, int sock, struct buf *in)
{
    struct timeval none = {0};
    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
    while (take_lines(a, in) == 0) {
        unsigned char *to = buf_reserve(in, LINE_BYTES);
        ssize_t got = to ? read(sock, to, LINE_BYTES) : -1;
        if (got <= 0) {
            out_error("the daemon is gone");
            return;
        }
        buf_commit(in, (size_t)got);
    }
}

/* "ID" or "ID:/PATH". */
static int split(const char *word, char id[WHICH_ID_MAX + 1], json_t *body)
{
    size_t n = strcspn(word, ":");
    if (n == 0 || n > WHICH_ID_MAX || (word[n] && word[n + 1] != '/'))
        return -1;
    snprintf(id, WHICH_ID_MAX + 1, "%.*s", (int)n, word);
    return word[n] ? json_object_set_new(body, "path", json_string(word + n + 1)) : 0;
}

static int watch(const struct args *a, const char *word, const json_t *body)
{
    struct err err = {0};
    struct buf in;
    char path[160], id[WHICH_ID_MAX + 1];
    if (which_one(a->socket, WHICH_SANDBOX, word, id, &err) < 0)
        return out_fail(&err);
    snprintf(path, sizeof path, "/v1/sandboxes/%s/files/watch", id);
    int sock = exec_upgrade(a->socket, path, "durward-watch", body, &in, &err);
    if (sock >= 0)
        follow(a, sock, &in);
    else
        out_error("%s%s%s", out_member(body, "path"), *out_member(body, "path") ? ": " : "",
                  err.text);
    buf_free(&in);
    if (sock >= 0)
        close(sock);
    return EXIT_NO;
}

int verb_watch(int argc, char **argv)
{
    struct args a = {.argc = argc, .argv = argv};
    char word[WHICH_ID_MAX + 1];
    json_t *skip = json_array(), *body = json_pack("{s:o}", "skip", skip);
    int id, code = EXIT_OK;
    for (const struct command *v = sandbox_verbs; v->name; v++)
        if (v->run == verb_watch)
            a.cmd = v;
    while ((id = args_next(&a)) == 's')
        json_array_append_new(skip, json_string(a.value));
    if (id == ARGS_STOP)
        code = a.exit_code;
    else if (argc - a.next != 1 || split(argv[a.next], word, body) < 0)
        code = args_usage(a.cmd, "a sandbox's id or name is needed, and perhaps :/PATH behind it");
    else
        code = watch(&a, word, body);
    json_decref(body);
    return code;
}
