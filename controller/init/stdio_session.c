/* The processes of an MCP server: started, written to, read by lines, ended. */
#define _GNU_SOURCE 1
#include "stdio_server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOON = 5, FAILURES = 3, PAUSE_MAX = 60 };

static const char gone[] = "the MCP server has ended";

struct session *stdio_session_find(struct stdio_server *v, const char *id)
{
    for (size_t i = 0; i < STDIO_SESSIONS; i++)
        if (v->sessions[i].pid && id[0] && strcmp(v->sessions[i].id, id) == 0)
            return &v->sessions[i];
    return NULL;
}

static void forget(struct session *s)
{
    close(s->in);
    close(s->out);
    buf_free(&s->to);
    buf_free(&s->from);
    buf_free(&s->queue);
    *s = (struct session){.pid = 0};
}

/* Its whole group: a server starts others (npx, uvx). */
void stdio_session_end(struct stdio_server *v, struct session *s, const char *why)
{
    int status;
    stdio_session_over(v, s, why);
    kill(-s->pid, SIGKILL);
    (void)waitpid(s->pid, &status, 0); /* a killed child ends at once */
    forget(s);
}

static bool listens(const struct stdio_server *v, const struct session *s)
{
    for (size_t i = 0; i < STDIO_CONNS; i++)
        if (v->conns[i].fd >= 0 && v->conns[i].session == s)
            return true;
    return false;
}

static bool answers(const struct stdio_server *v, const struct session *s)
{
    for (size_t i = 0; i < STDIO_CONNS; i++)
        if (v->conns[i].fd >= 0 && v->conns[i].session == s && v->conns[i].state == CONN_ANSWERS)
            return true;
    return false;
}

/* A free place, or that of the session that nobody uses for longest. Who only listens may have left
 * long ago: the end of a stream is seen when something is written to it. */
static struct session *place(struct stdio_server *v)
{
    struct session *oldest = NULL;
    for (size_t i = 0; i < STDIO_SESSIONS; i++) {
        struct session *s = &v->sessions[i];
        if (s->pid == 0)
            return s;
        bool better = oldest == NULL || (listens(v, oldest) && !listens(v, s)) ||
                      (listens(v, oldest) == listens(v, s) && s->used < oldest->used);
        if (!answers(v, s) && better)
            oldest = s;
    }
    if (oldest)
        stdio_session_end(v, oldest, "another session took its place");
    return oldest;
}

static void run(char **command, int in, int out)
{
    (void)setpgid(0, 0);
    signal(SIGPIPE, SIG_DFL);
    if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
        execvp(command[0], command);
    fprintf(stderr, STDIO_PROGRAM ": %s: %s\n", command[0], strerror(errno));
    _exit(127);
}

static int start(struct session *s, char **command)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        goto failed;
    s->pid = fork();
    if (s->pid == 0)
        run(command, in[0], out[1]);
    if (s->pid < 0)
        goto failed;
    (void)setpgid(s->pid, s->pid); /* whoever is first */
    close(in[0]);
    close(out[1]);
    s->in = in[1];
    s->out = out[0];
    return fcntl(s->in, F_SETFL, O_NONBLOCK) < 0 || fcntl(s->out, F_SETFL, O_NONBLOCK) < 0 ? -1 : 0;
failed:
    for (int i = 0; i < 2; i++) {
        if (in[i] >= 0)
            close(in[i]);
        if (out[i] >= 0)
            close(out[i]);
    }
    s->pid = 0;
    return -1;
}

static int name(struct session *s)
{
    unsigned char r[16];
    if (getrandom(r, sizeof r, 0) != sizeof r)
        return -1;
    for (size_t i = 0; i < sizeof r; i++)
        snprintf(s->id + 2 * i, 3, "%02x", r[i]);
    return 0;
}

struct session *stdio_session_new(struct stdio_server *v, const char **why)
{
    *why = "the MCP server keeps ending; it is started again in a while";
    if (stdio_now() < v->not_before)
        return NULL;
    struct session *s = place(v);
    *why = "too many sessions";
    if (s == NULL)
        return NULL;
    *why = "the MCP server cannot be started";
    if (name(s) < 0 || start(s, v->command) < 0)
        return NULL;
    buf_init(&s->to, STDIO_BODY_MAX + STDIO_CHUNK);
    buf_init(&s->from, STDIO_LINE_MAX);
    buf_init(&s->queue, STDIO_OUT_MAX + STDIO_LINE_MAX + 1);
    s->begun = s->used = stdio_now();
    return s;
}

void stdio_session_write(struct session *s)
{
    while (buf_len(&s->to) > 0) {
        ssize_t n = write(s->in, buf_data(&s->to), buf_len(&s->to));
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) { /* its end is seen where it is read */
            buf_clear(&s->to);
            return;
        }
        buf_drain(&s->to, (size_t)n);
    }
    buf_shrink(&s->to);
}

/* It ended by itself, or says what is no line. */
static void ended(struct stdio_server *v, struct session *s, const char *why)
{
    bool soon = stdio_now() - s->begun < SOON;
    v->failures = soon ? v->failures + 1 : 0;
    if (v->failures >= FAILURES) {
        unsigned more = v->failures - FAILURES;
        v->not_before = stdio_now() + (more < 5 ? 2 << more : PAUSE_MAX);
    }
    stdio_session_end(v, s, why);
}

static void lines(struct stdio_server *v, struct session *s)
{
    pid_t pid = s->pid;
    while (s->pid == pid) {
        struct slice all = buf_slice(&s->from);
        ssize_t end = slice_find(all, '\n');
        if (end < 0)
            break;
        struct slice line = {all.p, (size_t)end};
        for (ssize_t i = 0; i < end; i++)
            if (all.p[i] == '\r')
                buf_data(&s->from)[i] = ' ';
        stdio_said(v, s, slice_trim(line));
        buf_drain(&s->from, (size_t)end + 1);
    }
    buf_shrink(&s->from);
}

void stdio_session_read(struct stdio_server *v, struct session *s)
{
    size_t room = buf_room(&s->from);
    unsigned char *to = buf_space(&s->from, room < STDIO_CHUNK ? room : STDIO_CHUNK);
    if (to == NULL || room == 0) {
        ended(v, s, "the MCP server wrote a message of more than 8 MiB");
        return;
    }
    ssize_t n = read(s->out, to, room < STDIO_CHUNK ? room : STDIO_CHUNK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        ended(v, s, gone);
        return;
    }
    buf_commit(&s->from, (size_t)n);
    lines(v, s);
}

void stdio_sessions_look(struct stdio_server *v)
{
    int64_t now = stdio_now();
    for (size_t i = 0; i < STDIO_SESSIONS; i++) {
        struct session *s = &v->sessions[i];
        if (s->pid && !listens(v, s) && now - s->used > v->idle)
            stdio_session_end(v, s, "the session was not used");
    }
}
