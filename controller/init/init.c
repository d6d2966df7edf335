/* durward-init: process 1 of a local sandbox. Static, small, not dumpable.
 *
 * usage: init [layered | engine | engine-writable] [nested] [ssh-agent] [relayed]     what its root
 * is (selftest.h); without a word it is read-only. ssh-agent: it has a socket for that
 * (agent_socket.h). engine: it is in a container and fetches its descriptors (handover.h). nested:
 * programs may make namespaces, and it has capabilities for its children. relayed: it runs under
 * gVisor (command.h), its channel is descriptor 0 at first and brings the filter.
 *
 * With the word `pod` it is something in a pod of a cluster (pod_inside.h).
 *
 * By the name durward-mcp it is no process 1 but an end of MCP over stdio (stdio_mcp.h), by the
 * name crun an OCI runtime for containers inside (oci_runtime.h), by the name netavark the network
 * backend of podman there (network_backend.h).
 *
 * Tests the sandbox from inside, says so on descriptor 3 (W_INIT_READY), then starts commands that
 * are asked for there, and reaps whatever is left of them. The end of descriptor 3
 * is its end, and with it that of everything in the sandbox. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "handover.h"
#include "inside.h"
#include "ipc_msg.h"
#include "network_backend.h"
#include "oci_runtime.h"
#include "pod_inside.h"
#include "selftest.h"
#include "agent_socket.h"
#include "connection_relay.h"
#include "stdio_mcp.h"
#include "wire.h"

enum { CONTROL = 3, SIGNAL_STATUS = 128, COMMANDS_MAX = 256, FAILED = 125, PART = 8 };

/* No descriptor can be given out (command.h), as its kernel is gVisor's; or, where it is a guest,
 * one like the host's in a machine of its own. */
static bool relayed, guest;

/* A dead far end shows as end of file in the loop. -1: it was not sent. */
static int post(struct msg *m)
{
    int r = msg_send(CONTROL, m);
    msg_done(m);
    return r < 0 ? -1 : 0;
}

static void post_exit(uint32_t number, uint32_t status, const char *text)
{
    struct msg m;
    msg_init(&m, W_INIT_EXIT);
    msg_put_u32(&m, number);
    msg_put_u32(&m, status);
    msg_put_str(&m, text);
    (void)post(&m);
}

/* What the kernel counts by uid for the whole host, ours and the others' sandboxes together, and
 * compares with the limit of who asks: ours is a part of that, so that one sandbox does not have
 * it all. */
static int take_part(int what)
{
    struct rlimit r;
    if (getrlimit(what, &r) < 0)
        return -1;
    if (r.rlim_max == RLIM_INFINITY)
        return 0;
    r.rlim_max /= PART;
    if (r.rlim_cur > r.rlim_max)
        r.rlim_cur = r.rlim_max;
    return setrlimit(what, &r);
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
    if (!relayed && (take_part(RLIMIT_MSGQUEUE) < 0 || take_part(RLIMIT_SIGPENDING) < 0))
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

/* The mounts that we came with belong to a user namespace above ours: ours are copies, of which the
 * kernel locks what they were, and in which mounts can be added. bubblewrap leaves its descriptors
 * of namespaces, and the bounding set. */
static int nest(void)
{
    if (syscall(SYS_close_range, CONTROL + 1, ~0U, 0) < 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -1;
    for (int c = 0; prctl(PR_CAPBSET_READ, c) >= 0; c++)
        if (!(SELFTEST_NESTED_CAPS >> c & 1) && prctl(PR_CAPBSET_DROP, c) < 0)
            return -1;
    return 0;
}

static bool test(enum selftest_root root, bool nested)
{
    static struct selftest_result results[SELFTEST_MAX];
    unsigned n = selftest_run(CONTROL, root,
                              guest     ? SELFTEST_IN_GUEST
                              : relayed ? SELFTEST_OF_GVISOR
                              : nested  ? SELFTEST_NESTED
                                        : SELFTEST_PLAIN,
                              results);
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
    return post(&m) == 0 && ok;
}

/* ---- commands ---- */

static struct command commands[COMMANDS_MAX];

static struct command *find(uint32_t number)
{
    for (unsigned i = 0; i < COMMANDS_MAX; i++)
        if (commands[i].pid > 0 && commands[i].number == number)
            return &commands[i];
    return NULL;
}

/* The descriptors move into the message. A command that nobody hears of is ended, which is told. */
static void post_started(uint32_t number, const int *fds, unsigned n)
{
    struct msg m;
    msg_init(&m, W_INIT_STARTED);
    msg_put_u32(&m, number);
    msg_put_u32(&m, n);
    for (unsigned i = 0; i < n; i++)
        msg_put_fd(&m, fds[i]);
    struct command *c = post(&m) < 0 ? find(number) : NULL;
    if (c)
        kill(-c->pid, SIGKILL);
}

/* NULL with *bad: the message is nonsense; else there is no room, which is said. */
static struct command *begin(struct msg *m, uint32_t *number, bool *bad)
{
    *bad = msg_get_u32(m, number) < 0 || find(*number);
    for (unsigned i = 0; i < COMMANDS_MAX && !*bad; i++)
        if (commands[i].pid == 0) {
            command_init(&commands[i]);
            commands[i].number = *number;
            return &commands[i];
        }
    if (!*bad)
        post_exit(*number, FAILED, "too many commands run in this sandbox");
    return NULL;
}

static int on_exec(struct msg *m)
{
    struct command_failure why;
    uint32_t number;
    bool bad;
    struct command *c = begin(m, &number, &bad);
    if (c == NULL)
        return bad ? -1 : 0;
    int r = command_start(c, m, &why);
    if (r == 1)
        post_exit(number, why.status, why.text);
    if (r != 0)
        return r < 0 ? -1 : 0;
    c->number = number;
    int master = c->master >= 0 && !relayed ? fcntl(c->master, F_DUPFD_CLOEXEC, 3) : -1;
    if (master >= 0)
        post_started(number, &master, 1);
    else
        post_started(number, c->outer, c->n_outer);
    c->n_outer = 0; /* given away */
    return 0;
}

/* A child of ours that does not exec: what it has of us is nothing that it could not see. */
static pid_t fork_worker(void)
{
    sigset_t none;
    pid_t pid = fork();
    if (pid == 0) {
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        (void)setsid();
    }
    return pid;
}

static void started_worker(struct command *c, uint32_t number, pid_t pid)
{
    c->number = number;
    c->pid = pid < 0 ? 0 : pid;
    if (pid < 0)
        post_exit(number, (uint32_t)errno, "");
}

/* A worker's: the inner end, and the outer one, -1 where the inner came in. 0, or an errno; -1: the
 * message is nonsense. */
static int open_pipe(struct msg *m, bool in, int *inner, int *outer)
{
    int p[2];
    *outer = -1;
    if (relayed)
        return msg_get_fd(m, inner) < 0 || msg_end(m) < 0 ? -1 : 0;
    if (msg_end(m) < 0)
        return -1;
    if (pipe2(p, O_CLOEXEC) < 0)
        return errno;
    *inner = p[!in];
    *outer = p[in];
    return 0;
}

static int on_file(struct msg *m)
{
    static char path[INSIDE_PATH], version[INSIDE_VERSION];
    uint8_t op;
    uint32_t number, mode;
    bool bad;
    int inner, outer;
    struct command *c = begin(m, &number, &bad);
    if (c == NULL)
        return bad ? -1 : 0;
    if (msg_get_u8(m, &op) < 0 || op == 0 || op >= INSIDE_END ||
        msg_get_str(m, path, sizeof path) < 0 || msg_get_u32(m, &mode) < 0 ||
        msg_get_str(m, version, sizeof version) < 0)
        return -1;
    int e = open_pipe(m, op == INSIDE_WRITE || op == INSIDE_WRITE_NEW, &inner, &outer);
    if (e > 0)
        post_exit(number, (uint32_t)e, "");
    if (e != 0)
        return e < 0 ? -1 : 0;
    pid_t pid = fork_worker();
    if (pid == 0) {
        close(CONTROL);
        if (outer >= 0)
            close(outer);
        umask(022);
        _exit(inside_do((enum inside_op)op, path, mode & 0777, version, inner));
    }
    close(inner);
    post_started(number, &outer, outer >= 0);
    started_worker(c, number, pid);
    return 0;
}

/* Names of a W_INIT_WATCH. -1: nonsense. */
static int get_names(struct msg *m, char room[INSIDE_SKIPPED][NAME_MAX + 1],
                     char *names[INSIDE_SKIPPED], uint32_t *n)
{
    if (msg_get_u32(m, n) < 0 || *n > INSIDE_SKIPPED)
        return -1;
    for (uint32_t i = 0; i < *n; i++) {
        names[i] = room[i];
        if (msg_get_str(m, room[i], NAME_MAX + 1) < 0)
            return -1;
    }
    return 0;
}

static int on_watch(struct msg *m)
{
    static char path[INSIDE_PATH], room[INSIDE_SKIPPED][NAME_MAX + 1];
    char *names[INSIDE_SKIPPED];
    uint32_t number, n;
    bool bad;
    int inner, outer;
    struct command *c = begin(m, &number, &bad);
    if (c == NULL)
        return bad ? -1 : 0;
    if (msg_get_str(m, path, sizeof path) < 0 || get_names(m, room, names, &n) < 0)
        return -1;
    int e = open_pipe(m, false, &inner, &outer);
    if (e > 0)
        post_exit(number, (uint32_t)e, "");
    if (e != 0)
        return e < 0 ? -1 : 0;
    pid_t pid = fork_worker();
    if (pid == 0) {
        close(CONTROL);
        if (outer >= 0)
            close(outer);
        _exit(inside_watch(path, names, n, inner));
    }
    close(inner);
    post_started(number, &outer, outer >= 0);
    started_worker(c, number, pid);
    return 0;
}

static int on_connect(struct msg *m)
{
    uint32_t number, port;
    bool bad;
    struct command *c = begin(m, &number, &bad);
    if (c == NULL)
        return bad ? -1 : 0;
    int end = -1;
    if (msg_get_u32(m, &port) < 0 || port == 0 || port > 65535 ||
        (guest && msg_get_fd(m, &end) < 0) || msg_end(m) < 0)
        return -1;
    pid_t pid = fork_worker();
    if (pid == 0) {
        int fd = inside_connect(port);
        if (fd < 0)
            _exit(errno);
        if (end >= 0 && connection_relay(fd, end, CONTROL) < 0)
            _exit(errno);
        post_started(number, &fd, end < 0);
        _exit(0);
    }
    if (end >= 0)
        close(end);
    started_worker(c, number, pid);
    return 0;
}

static void reap(void)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        agent_socket_reaped(pid);
        for (unsigned i = 0; i < COMMANDS_MAX; i++) {
            if (pid != commands[i].pid)
                continue;
            uint32_t code = WIFSIGNALED(status) ? (uint32_t)(SIGNAL_STATUS + WTERMSIG(status))
                                                : (uint32_t)WEXITSTATUS(status);
            uint32_t number = commands[i].number;
            command_reset(&commands[i]);
            post_exit(number, code, "");
        }
    }
}

/* Nobody waits for what runs now. What a command left in the background stays, as it would. */
static int on_reset(struct msg *m)
{
    struct msg done;
    if (msg_end(m) < 0)
        return -1;
    for (unsigned i = 0; i < COMMANDS_MAX; i++) {
        if (commands[i].pid == 0)
            continue;
        kill(-commands[i].pid, SIGKILL);
        command_reset(&commands[i]); /* its process is reaped as any orphan */
    }
    msg_init(&done, W_INIT_RESET);
    post(&done);
    return 0;
}

static int on_signal(struct msg *m)
{
    uint32_t number, sig;
    if (msg_get_u32(m, &number) < 0 || msg_get_u32(m, &sig) < 0 || msg_end(m) < 0)
        return -1;
    struct command *c = find(number);
    if (c) /* else it has ended meanwhile */
        command_signal(c, sig < NSIG ? (int)sig : 0);
    return 0;
}

static int on_winsize(struct msg *m)
{
    uint32_t number, rows, cols;
    if (msg_get_u32(m, &number) < 0 || msg_get_u32(m, &rows) < 0 || msg_get_u32(m, &cols) < 0 ||
        msg_end(m) < 0)
        return -1;
    struct command *c = find(number);
    if (c)
        command_winsize(c, rows, cols);
    return 0;
}

static int on_message(struct msg *m)
{
    switch (m->type) {
    case W_INIT_EXEC:
        return on_exec(m);
    case W_INIT_FILE:
        return on_file(m);
    case W_INIT_WATCH:
        return on_watch(m);
    case W_INIT_CONNECT:
        return on_connect(m);
    case W_INIT_SIGNAL:
        return on_signal(m);
    case W_INIT_WINSIZE:
        return on_winsize(m);
    case W_INIT_RESET:
        return on_reset(m);
    default:
        return -1;
    }
}

static void serve(int signals, int agent)
{
    struct pollfd p[3] = {{.fd = CONTROL, .events = POLLIN},
                          {.fd = signals, .events = POLLIN},
                          {.fd = agent, .events = POLLIN}};
    for (;;) {
        if (poll(p, 3, -1) < 0 && errno != EINTR)
            return;
        struct signalfd_siginfo info;
        if (p[1].revents && read(signals, &info, sizeof info) > 0)
            reap();
        if (p[2].revents)
            agent_socket_accept(agent, CONTROL);
        if (p[0].revents == 0)
            continue;
        struct msg m;
        int got = msg_recv(CONTROL, &m);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (got <= 0)
            return;
        int r = on_message(&m);
        msg_done(&m);
        if (r < 0)
            return;
    }
}

static enum selftest_root root_of(const char *word)
{
    if (word == NULL)
        return SELFTEST_READ_ONLY;
    return strcmp(word, "layered") == 0  ? SELFTEST_LAYERED
           : strcmp(word, "engine") == 0 ? SELFTEST_READ_ONLY
                                         : SELFTEST_ENGINE;
}

int main(int argc, char **argv)
{
    const char *word = NULL;
    unsigned long files = 0;
    bool nested = false, agent = false;
    int status;
    if (stdio_main(argc, argv, &status) || oci_main(argc, argv, &status) ||
        network_main(argc, argv, &status) || pod_inside_main(argc, argv, &status))
        return status;
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], COMMAND_FILES, sizeof COMMAND_FILES - 1) == 0)
            files = strtoul(argv[i] + sizeof COMMAND_FILES - 1, NULL, 10);
        else if (strcmp(argv[i], COMMAND_NESTED) == 0)
            nested = true;
        else if (strcmp(argv[i], COMMAND_AGENT) == 0)
            agent = true;
        else if (strcmp(argv[i], COMMAND_RELAYED) == 0)
            relayed = true;
        else if (strcmp(argv[i], COMMAND_GUEST) == 0)
            guest = true;
        else
            word = argv[i];
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    if (word && strncmp(word, "engine", 6) == 0 && handover_take(CONTROL) < 0)
        return 1;
    if (relayed && (dup2(STDIN_FILENO, CONTROL) < 0 || handover_filter(CONTROL) < 0))
        return 1;
    if (relayed)
        command_relay();
    if (nested && nest() < 0)
        return 1;
    if (prepare() < 0 || command_files(files) < 0 || !test(root_of(word), nested))
        return 1;
    if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
        return 1;
    int signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0)
        return 1;
    serve(signals, agent ? agent_socket_listen() : -1);
    return 0;
}
