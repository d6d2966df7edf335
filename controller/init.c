/* durward-init: process 1 of a local sandbox. Static, small, not dumpable.
 *
 * Tests the sandbox from inside, says so on descriptor 3 (W_INIT_READY), then starts commands that
 * are asked for there, one at a time, and reaps whatever is left of them. The end of descriptor 3
 * is its end, and with it that of everything in the sandbox. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "ipc_msg.h"
#include "selftest.h"
#include "wire.h"

enum { CONTROL = 3, SIGNAL_STATUS = 128 };

/* Sends and forgets; a dead far end shows as end of file in the loop. */
static void post(struct msg *m)
{
    (void)msg_send(CONTROL, m);
    msg_done(m);
}

static void post_exit(uint32_t status, const char *text)
{
    struct msg m;
    msg_init(&m, W_INIT_EXIT);
    msg_put_u32(&m, status);
    msg_put_str(&m, text);
    post(&m);
}

/* The descriptors that we came with are the host's; ours are of the sandbox. */
static int prepare(void)
{
    int type = 0;
    socklen_t len = sizeof type;
    struct rlimit none = {0, 0};
    if (getsockopt(CONTROL, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_SEQPACKET ||
        fcntl(CONTROL, F_SETFD, FD_CLOEXEC) < 0)
        return -1;
    if (prctl(PR_SET_DUMPABLE, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
        return -1;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return -1;
    for (int i = 0; i < 3; i++)
        if (dup2(null, i) < 0)
            return -1;
    if (null > 2)
        close(null);
    return 0;
}

static bool test(bool writable)
{
    static struct selftest_result results[SELFTEST_MAX];
    unsigned n = selftest_run(CONTROL, writable, results);
    struct msg m;
    bool ok = true;
    for (unsigned i = 0; i < n; i++)
        ok = ok && results[i].ok;
    msg_init(&m, W_INIT_READY);
    msg_put_u8(&m, ok);
    msg_put_u32(&m, n);
    for (unsigned i = 0; i < n; i++) {
        msg_put_str(&m, results[i].probe);
        msg_put_u8(&m, results[i].ok);
        msg_put_str(&m, results[i].detail);
    }
    post(&m);
    return ok;
}

static int on_exec(struct command *c, struct msg *m)
{
    struct command_failure why;
    if (c->pid != 0)
        return -1; /* one at a time; there is no number to tell two apart */
    command_reset(c);
    int r = command_start(c, m, &why);
    if (r == 1)
        post_exit(why.status, why.text);
    if (r != 0)
        return r < 0 ? -1 : 0;
    struct msg started;
    msg_init(&started, W_INIT_STARTED);
    if (c->master >= 0)
        msg_put_fd_dup(&started, c->master);
    post(&started);
    return 0;
}

static int on_message(struct command *c, struct msg *m)
{
    uint32_t a, b;
    switch (m->type) {
    case W_INIT_EXEC:
        return on_exec(c, m);
    case W_INIT_SIGNAL:
        if (msg_get_u32(m, &a) < 0 || msg_end(m) < 0)
            return -1;
        command_signal(c, a < NSIG ? (int)a : 0);
        return 0;
    case W_INIT_WINSIZE:
        if (msg_get_u32(m, &a) < 0 || msg_get_u32(m, &b) < 0 || msg_end(m) < 0)
            return -1;
        command_winsize(c, a, b);
        return 0;
    default:
        return -1;
    }
}

static void reap(struct command *c)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid != c->pid)
            continue;
        uint32_t code = WIFSIGNALED(status) ? (uint32_t)(SIGNAL_STATUS + WTERMSIG(status))
                                            : (uint32_t)WEXITSTATUS(status);
        command_reset(c);
        post_exit(code, "");
    }
}

static void serve(int signals)
{
    struct command c;
    struct pollfd p[2] = {{.fd = CONTROL, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    command_init(&c);
    for (;;) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return;
        struct signalfd_siginfo info;
        if (p[1].revents && read(signals, &info, sizeof info) > 0)
            reap(&c);
        if (p[0].revents == 0)
            continue;
        struct msg m;
        int got = msg_recv(CONTROL, &m);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (got <= 0)
            return;
        int r = on_message(&c, &m);
        msg_done(&m);
        if (r < 0)
            return;
    }
}

int main(int argc, char **argv)
{
    bool writable = argc > 1 && strcmp(argv[1], "writable") == 0;
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    if (prepare() < 0 || !test(writable))
        return 1;
    if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
        return 1;
    int signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0)
        return 1;
    serve(signals);
    return 0;
}
