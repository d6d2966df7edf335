/* Starts `durward audit ...` on the log's directory in a process of its own, collects what it says
 * and ends it where it takes too long or says too much. */
#include "log_command.h"

#include "parent.h"
#include "program.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COMMAND_FD = 3, LOG_COMMAND_PIECE = 16 * 1024, LOG_COMMAND_NICE = 10 };

struct log_command {
    struct parent *parent;
    pid_t pid;
    int fd; /* what it says; -1: no more */
    struct buf said;
    struct event *readable, *over;
    const char *failed; /* NULL: nothing yet */
    log_command_fn ended;
    void *arg;
    LIST_ENTRY(log_command) link;
};

/* ---- the process ---- */

/* In the child: never returns. */
static NORETURN void run(int command, int dir, int out, const char *const *argv)
{
    static const int defaults[] = {SIGPIPE, SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGCHLD};
    struct err err = {0};
    sigset_t none;
    for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
        signal(defaults[i], SIG_DFL);
    int niceness = nice(LOG_COMMAND_NICE); /* a wish */
    (void)niceness;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (setpgid(0, 0) == 0 && dup2(dir, 0) == 0 && dup2(out, 1) == 1 &&
        dup3(command, COMMAND_FD, O_CLOEXEC) == COMMAND_FD &&
        syscall(SYS_close_range, COMMAND_FD + 1, ~0U, 0) == 0 &&
        proc_become(ROLE_LOGGER, &err) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        prctl(PR_SET_PDEATHSIG, SIGKILL) == 0)
        program_exec(COMMAND_FD, (char *const *)argv, proc_environment());
    _exit(127);
}

/* Above 10, so that the child's dup2 to 0 and 1 hits none. */
static int raised(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 10);
    if (fd >= 0)
        close(fd);
    return high;
}

static int begin(struct log_command *v, const char *const *argv, struct err *err)
{
    int out[2];
    int dir = fcntl(v->parent->audit_dir_fd, F_DUPFD_CLOEXEC, 10);
    if (dir < 0)
        return err_sys(err, "the audit directory");
    if (pipe2(out, O_CLOEXEC) < 0) {
        close(dir);
        return err_sys(err, "pipe");
    }
    out[0] = raised(out[0]);
    out[1] = raised(out[1]);
    pid_t pid = -1;
    if (out[0] >= 0 && out[1] >= 0 && fcntl(out[0], F_SETFL, O_NONBLOCK) == 0)
        pid = fork();
    if (pid == 0)
        run(v->parent->command_fd, dir, out[1], argv);
    int e = errno;
    close(dir);
    if (out[1] >= 0)
        close(out[1]);
    if (pid < 0) {
        if (out[0] >= 0)
            close(out[0]);
        errno = e;
        return err_sys(err, "cannot start what reads the log");
    }
    v->fd = out[0];
    v->pid = pid;
    return 0;
}

/* ---- what it says ---- */

static void stop_reading(struct log_command *v)
{
    if (v->readable)
        event_free(v->readable);
    v->readable = NULL;
    if (v->fd >= 0)
        close(v->fd);
    v->fd = -1;
}

static void give_up(struct log_command *v, const char *why)
{
    if (v->failed == NULL)
        v->failed = why;
    if (v->pid > 0)
        kill(v->pid, SIGKILL); /* told when it is reaped */
}

static void read_said(struct log_command *v)
{
    while (v->fd >= 0) {
        unsigned char piece[LOG_COMMAND_PIECE];
        ssize_t n = read(v->fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n > 0 && buf_append(&v->said, piece, (size_t)n) == 0)
            continue;
        stop_reading(v);
        if (n != 0)
            give_up(v, n < 0 ? "its result cannot be read" : "its result is too long");
    }
}

static void on_readable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    read_said(arg);
}

static void on_over(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    give_up(arg, "it took too long: run 'durward audit' by hand");
}

/* ---- begin and end ---- */

static void log_command_free(struct log_command *v)
{
    stop_reading(v);
    if (v->over)
        event_free(v->over);
    buf_free(&v->said);
    free(v);
}

struct log_command *log_command_start(struct parent *p, const struct log_command_order *o,
                                      struct err *err)
{
    struct timeval limit = {(time_t)o->seconds, 0};
    struct log_command *v = calloc(1, sizeof *v);
    if (v == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    *v = (struct log_command){.parent = p, .fd = -1, .ended = o->ended, .arg = o->arg};
    buf_init(&v->said, o->most);
    v->over = evtimer_new(p->base, on_over, v);
    if (v->over == NULL || event_add(v->over, &limit) < 0) {
        err_set(err, ERR_INTERNAL, "out of memory");
        log_command_free(v);
        return NULL;
    }
    if (begin(v, o->argv, err) < 0) {
        log_command_free(v);
        return NULL;
    }
    LIST_INSERT_HEAD(&p->log_commands, v, link);
    v->readable = event_new(p->base, v->fd, EV_READ | EV_PERSIST, on_readable, v);
    if (v->readable == NULL || event_add(v->readable, NULL) < 0)
        give_up(v, "out of memory");
    return v;
}

bool log_command_reaped(struct parent *p, pid_t pid, int status)
{
    struct log_command *v;
    LIST_FOREACH(v, &p->log_commands, link)
    if (v->pid == pid)
        break;
    if (v == NULL)
        return false;
    LIST_REMOVE(v, link);
    v->pid = 0;
    read_said(v);
    stop_reading(v);
    v->ended(v->arg, WIFEXITED(status) ? WEXITSTATUS(status) : -1, v->failed, &v->said);
    log_command_free(v);
    return true;
}
