/* durward trace: follows the requests of one sandbox through the roles, step by step, as the daemon
 * says them. */
#include "api_client.h"
#include "commands.h"
#include "exec_session.h"
#include "out.h"
#include "slice.h"
#include "which.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { TRACE_SECONDS = 60, TRACE_SECONDS_MAX = 600, TRACE_LINE_MAX = 8192, TRACE_KNOWN = 64 };

static int cmd_trace(int argc, char **argv);

static const struct arg_option options[] = {
    {'t', "time", "TIME", "for so long (60s; at most 10m)"},
    {0},
};

const struct command command_trace = {
    "trace",
    "[-t TIME] [--json] SANDBOX",
    "Follow a sandbox's requests through the roles of the daemon, with times.",
    options,
    "One line a step: the request's number here, microseconds since it began, the role, the step.\n"
    "It says names, sizes and codes, and never what a credential, a query, a path or a body "
    "holds.\n"
    "A sandbox has one trace at a time; each role says at most 256 lines a second.\n",
    cmd_trace,
};

/* Numbers for requests, in the order in which they were first seen here; of the last few. */
struct numbers {
    json_int_t begun[TRACE_KNOWN];
    unsigned long last;
};

static unsigned long number_of(struct numbers *n, json_int_t begun)
{
    for (unsigned long i = n->last; i > 0 && n->last - i < TRACE_KNOWN; i--)
        if (n->begun[i % TRACE_KNOWN] == begun)
            return i;
    n->begun[++n->last % TRACE_KNOWN] = begun;
    return n->last;
}

static int print_line(struct numbers *n, const struct args *a, const char *line)
{
    char step[64], text[512];
    json_t *o = json_loads(line, 0, NULL);
    if (!json_is_object(o)) {
        json_decref(o);
        out_error("the daemon says something that cannot be read");
        return -1;
    }
    const json_t *left_out = json_object_get(o, "left_out");
    if (a->json)
        printf("%s\n", line);
    else if (left_out)
        printf("# %lld lines were left out here\n", (long long)json_integer_value(left_out));
    else
        printf("#%-4lu %9lld us  %-8s  %-16s  %s\n",
               number_of(n, json_integer_value(json_object_get(o, "request"))),
               (long long)json_integer_value(json_object_get(o, "us")), out_member(o, "role"),
               out_clean(out_member(o, "step"), step, sizeof step),
               out_clean(out_member(o, "text"), text, sizeof text));
    json_decref(o);
    return out_flush();
}

/* Whole lines of what came; the rest stays. */
static int print_lines(struct buf *in, struct numbers *n, const struct args *a)
{
    ssize_t end;
    while ((end = slice_find(buf_slice(in), '\n')) >= 0) {
        char *line = (char *)buf_data(in);
        line[end] = 0;
        if (print_line(n, a, line) < 0)
            return -1;
        buf_drain(in, (size_t)end + 1);
    }
    return 0;
}

static int follow(int sock, struct buf *in, const struct args *a)
{
    struct numbers n = {.last = 0};
    struct timeval none = {0};
    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
    for (;;) {
        if (print_lines(in, &n, a) < 0)
            return EXIT_NO;
        unsigned char *to = buf_reserve(in, TRACE_LINE_MAX);
        ssize_t got = to ? read(sock, to, TRACE_LINE_MAX) : -1;
        if (got <= 0)
            return got == 0 ? EXIT_OK : EXIT_NO;
        buf_commit(in, (size_t)got);
    }
}

static int cmd_trace(int argc, char **argv)
{
    struct args a = {.cmd = &command_trace, .argc = argc, .argv = argv};
    struct err err = {0};
    unsigned seconds = TRACE_SECONDS;
    char path[160], id[WHICH_ID_MAX + 1];
    struct buf in;
    int o;
    while ((o = args_next(&a)) != ARGS_END) {
        if (o == ARGS_STOP)
            return a.exit_code;
        if (args_duration(a.value, TRACE_SECONDS_MAX, &seconds) < 0)
            return args_usage(a.cmd, "a time is 1s to 10m");
    }
    if (argc - a.next != 1)
        return args_usage(a.cmd, "a sandbox's id or name is needed");
    if (which_one(a.socket, WHICH_SANDBOX, argv[a.next], id, &err) < 0)
        return out_fail(&err);
    snprintf(path, sizeof path, "/v1/sandboxes/%s/trace?seconds=%u", id, seconds);
    int sock = exec_upgrade(a.socket, path, "durward-trace", NULL, &in, &err);
    if (sock < 0) {
        buf_free(&in);
        out_error("%s", err.text);
        return EXIT_NO;
    }
    int r = follow(sock, &in, &a);
    buf_free(&in);
    close(sock);
    return r;
}
