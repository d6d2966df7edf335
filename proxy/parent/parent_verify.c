/* W_VERIFY: the whole audit log, checked by a process of its own: `durward audit verify` on the
 * directory that the logger writes, as the logger's user (reading what that one wrote is no work
 * for the parent's rights). One at a time: who asks meanwhile is told the same. */
#include "parent.h"

#include "program.h"

#include "buf.h"
#include "wire.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    COMMAND_FD = 3,
    VERIFY_SECONDS = 120, /* for all tries */
    VERIFY_TRIES = 2,     /* a file may be compressed or removed by retention under its eyes */
    VERIFY_PIECE = 16 * 1024,
    VERIFY_NICE = 10,
};

struct verifying {
    struct parent *parent;
    pid_t pid; /* 0: none runs */
    int fd;    /* what it says; -1: no more */
    struct buf said;
    struct event *readable, *over;
    unsigned tries;
    const char *failed; /* why what it says is no answer; NULL: it is one */
};

/* ---- the process ---- */

/* In the child: never returns. The directory is its standard input, so that no path can lead
 * elsewhere, and no name of it is needed. */
static NORETURN void run(int command, int dir, int out)
{
    static const int defaults[] = {SIGPIPE, SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGCHLD};
    static const char *const argv[] = {"durward", "audit",           "verify",
                                       "--json",  "/proc/self/fd/0", NULL};
    struct err err = {0};
    sigset_t none;
    for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
        signal(defaults[i], SIG_DFL);
    int niceness = nice(VERIFY_NICE); /* a wish */
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

static int start(struct verifying *v, struct err *err)
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
        run(v->parent->command_fd, dir, out[1]);
    int e = errno;
    close(dir);
    if (out[1] >= 0)
        close(out[1]);
    if (pid < 0) {
        if (out[0] >= 0)
            close(out[0]);
        errno = e;
        return err_sys(err, "cannot start the verification");
    }
    v->fd = out[0];
    v->pid = pid;
    v->tries++;
    return 0;
}

/* ---- the answer ---- */

static void answer(struct parent *p, const struct verifying *v, const char *failed)
{
    struct child *c = p->controller;
    struct err err = {0};
    struct msg m;
    int fd = -1;
    if (c == NULL || c->ch == NULL)
        return; /* whoever asked is gone with it */
    if (failed == NULL) {
        struct slice s = buf_slice(&v->said);
        fd = ipc_memfd("verified", s.p, s.n, &err);
        if (fd < 0)
            failed = err.text;
    }
    msg_init(&m, W_VERIFIED);
    msg_put_u8(&m, failed == NULL);
    msg_put_str(&m, failed ? failed : "");
    if (failed == NULL)
        msg_put_fd(&m, fd);
    ipc_send(c->ch, &m);
}

static void stop_reading(struct verifying *v)
{
    if (v->readable)
        event_free(v->readable);
    v->readable = NULL;
    if (v->fd >= 0)
        close(v->fd);
    v->fd = -1;
}

static void give_up(struct verifying *v, const char *why)
{
    if (v->failed == NULL)
        v->failed = why;
    if (v->pid > 0)
        kill(v->pid, SIGKILL); /* answered when it is reaped */
}

static void read_said(struct verifying *v)
{
    while (v->fd >= 0) {
        unsigned char piece[VERIFY_PIECE];
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
    give_up(arg, "it took more than 120 s: run 'durward audit verify' by hand");
}

static int begin(struct verifying *v, struct err *err)
{
    buf_clear(&v->said);
    if (start(v, err) < 0)
        return -1;
    v->readable = event_new(v->parent->base, v->fd, EV_READ | EV_PERSIST, on_readable, v);
    if (v->readable == NULL || event_add(v->readable, NULL) < 0)
        give_up(v, "out of memory");
    return 0;
}

static void finish(struct verifying *v, const char *failed)
{
    event_del(v->over);
    answer(v->parent, v, failed);
    buf_free(&v->said);
}

bool parent_verify_reaped(struct parent *p, pid_t pid, int status)
{
    struct verifying *v = p->verifying;
    struct err err = {0};
    if (v == NULL || v->pid == 0 || pid != v->pid)
        return false;
    v->pid = 0;
    read_said(v);
    stop_reading(v);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (v->failed == NULL && code == 1 && v->tries < VERIFY_TRIES && !p->stopping) {
        if (begin(v, &err) == 0)
            return true;
        v->failed = "it cannot be started";
    }
    if (v->failed == NULL && (code < 0 || code > 1 || buf_len(&v->said) == 0))
        v->failed = "it ended without a result (is key.pub there?): see the daemon's diagnostics";
    finish(v, v->failed);
    return true;
}

/* NULL: out of memory. */
static struct verifying *verifying(struct parent *p)
{
    struct verifying *v = p->verifying;
    if (v)
        return v;
    v = calloc(1, sizeof *v);
    if (v == NULL)
        return NULL;
    v->parent = p;
    v->fd = -1;
    buf_init(&v->said, WIRE_VERIFIED_MAX);
    v->over = evtimer_new(p->base, on_over, v);
    if (v->over == NULL) {
        free(v);
        return NULL;
    }
    return p->verifying = v;
}

int parent_verify(struct child *controller, struct msg *m)
{
    struct parent *p = controller->parent;
    struct timeval limit = {VERIFY_SECONDS, 0};
    struct err err = {0};
    if (msg_end(m) < 0)
        return -1;
    struct verifying *v = verifying(p);
    if (v == NULL) {
        answer(p, NULL, "out of memory");
        return 0;
    }
    if (v->pid > 0)
        return 0; /* its answer is this one's too */
    v->tries = 0;
    v->failed = NULL;
    event_add(v->over, &limit);
    if (begin(v, &err) < 0)
        finish(v, err.text);
    return 0;
}
