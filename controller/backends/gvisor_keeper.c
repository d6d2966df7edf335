/* Carries messages between the controller and durward-init under gVisor, and makes what only
 * somebody outside can give out: pipes, terminals, connections to the sandbox's loopback. What the
 * sandbox says is passed on to whoever distrusts it anyway; of it only numbers are looked at. */
#define _GNU_SOURCE 1
#include "gvisor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "command.h"
#include "gvisor_terminal.h"
#include "handover.h"
#include "inside.h"
#include "ipc_msg.h"
#include "launcher_internal.h"
#include "rootfs.h"
#include "wire.h"

enum { SLOTS = 256, FAILED = 125, CWD_MAX = 4096 };

/* What one number of the controller's waits for. */
struct slot {
    bool used;
    uint32_t number;
    int outer[3]; /* for W_INIT_STARTED; owned until given out */
    unsigned n;
    pid_t terminal; /* who carries a terminal's bytes, or makes a connection; or 0 */
    bool connects;  /* the latter, of which the sandbox has nothing to say */
    bool has_ended; /* `end` waits until that has carried them all */
    struct msg end;
};

struct way {
    int to;
    bool full;
    struct msg held;
};

struct keeper {
    struct keeper_children children;
    int status; /* once it has ended */
    int inner, signals;
    unsigned resets; /* that the sandbox has not answered yet */
    struct way in, out;
    struct slot slots[SLOTS];
};

/* ---- sending ---- */

/* At once, or when there is room: then nothing more is taken from where it came. Takes m over. */
static int pass(struct way *w, struct msg *m)
{
    int r = msg_send(w->to, m);
    if (r > 0) {
        w->held = *m;
        w->full = true;
        return 0;
    }
    msg_done(m);
    return r;
}

static int pass_held(struct way *w)
{
    struct msg m = w->held;
    w->full = false;
    return pass(w, &m);
}

/* In a process of its own, which may wait. */
static void say(int to, struct msg *m)
{
    struct pollfd p = {.fd = to, .events = POLLOUT};
    while (msg_send(to, m) > 0 && poll(&p, 1, -1) >= 0) {
    }
    msg_done(m);
}

static int refuse(struct keeper *k, uint32_t number, uint32_t status, const char *text)
{
    struct msg m;
    msg_init(&m, W_INIT_EXIT);
    msg_put_u32(&m, number);
    msg_put_u32(&m, status);
    msg_put_str(&m, text);
    return pass(&k->out, &m);
}

/* ---- slots ---- */

static void slot_free(struct slot *s)
{
    for (unsigned i = 0; i < s->n; i++)
        if (s->outer[i] >= 0)
            close(s->outer[i]);
    if (s->has_ended)
        msg_done(&s->end);
    *s = (struct slot){.used = false};
}

static struct slot *slot_find(struct keeper *k, uint32_t number)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (k->slots[i].used && k->slots[i].number == number)
            return &k->slots[i];
    return NULL;
}

static struct slot *slot_new(struct keeper *k, uint32_t number)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (!k->slots[i].used) {
            k->slots[i] = (struct slot){.used = true, .number = number};
            return &k->slots[i];
        }
    return NULL;
}

/* ---- what goes in with a request ---- */

/* in: the outer end is written to. */
static int add_pipe(struct slot *s, struct msg *m, bool in)
{
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return -1;
    s->outer[s->n++] = p[in];
    msg_put_fd(m, p[!in]);
    return 0;
}

static int add_pipes(struct slot *s, struct msg *m, uint8_t stdio)
{
    return (stdio & COMMAND_INPUT && add_pipe(s, m, true) < 0) || add_pipe(s, m, false) < 0 ||
                   (stdio & COMMAND_SPLIT && add_pipe(s, m, false) < 0)
               ? -1
               : 0;
}

/* Both ends of a connection in this network namespace, as nobody takes another socket for one of a
 * sandbox's port. Who else connects here is not let in between. */
static int connected_pair(int p[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in ours, theirs = {0};
    socklen_t n = sizeof at, m = sizeof ours, k = sizeof theirs;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    p[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    p[1] = -1;
    if (bind(listening, (struct sockaddr *)&at, sizeof at) == 0 && listen(listening, 1) == 0 &&
        getsockname(listening, (struct sockaddr *)&at, &n) == 0 &&
        connect(p[0], (struct sockaddr *)&at, n) == 0 &&
        getsockname(p[0], (struct sockaddr *)&ours, &m) == 0)
        p[1] = accept4(listening, (struct sockaddr *)&theirs, &k, SOCK_CLOEXEC);
    if (listening >= 0)
        close(listening);
    if (p[1] >= 0 && theirs.sin_port == ours.sin_port)
        return 0;
    for (int i = 0; i < 2; i++)
        if (p[i] >= 0)
            close(p[i]);
    return -1;
}

static int add_connection(struct slot *s, struct msg *m)
{
    int p[2];
    if (connected_pair(p) < 0)
        return -1;
    s->outer[s->n++] = p[0];
    msg_put_fd(m, p[1]);
    return 0;
}

static int add_terminal(struct slot *s, struct msg *m, uint32_t rows, uint32_t cols)
{
    int master, inner;
    s->terminal = gvisor_terminal_start(rows, cols, &master, &inner);
    if (s->terminal < 0) {
        s->terminal = 0;
        return -1;
    }
    s->outer[s->n++] = master;
    msg_put_fd(m, inner);
    return 0;
}

static int skip_words(struct msg *m)
{
    struct slice s;
    uint32_t n;
    if (msg_get_u32(m, &n) < 0)
        return -1;
    while (n-- > 0)
        if (msg_get_slice(m, IPC_MSG_MAX, &s) < 0)
            return -1;
    return 0;
}

struct asked {
    uint32_t number, rows, cols;
    uint8_t stdio, op;
};

/* Reads it and leaves it as it was. */
static int look(struct msg *m, struct asked *a)
{
    struct buf whole = m->body;
    struct slice cwd;
    *a = (struct asked){0};
    int r = msg_get_u32(m, &a->number);
    if (m->type == W_INIT_EXEC && r == 0)
        r = skip_words(m) < 0 || skip_words(m) < 0 || msg_get_slice(m, CWD_MAX, &cwd) < 0 ||
                    msg_get_u8(m, &a->stdio) < 0 || msg_get_u32(m, &a->rows) < 0 ||
                    msg_get_u32(m, &a->cols) < 0
                ? -1
                : 0;
    else if (m->type == W_INIT_FILE && r == 0)
        r = msg_get_u8(m, &a->op);
    m->body = whole;
    return r;
}

static int add_ends(struct slot *s, struct msg *m, const struct asked *a)
{
    if (m->type == W_INIT_FILE)
        return add_pipe(s, m, a->op == INSIDE_WRITE || a->op == INSIDE_WRITE_NEW);
    if (m->type == W_INIT_WATCH)
        return add_pipe(s, m, false);
    if (m->type == W_INIT_CONNECT)
        return add_connection(s, m);
    if (a->stdio == COMMAND_TERMINAL)
        return add_terminal(s, m, a->rows, a->cols);
    return a->stdio & COMMAND_PIPES ? add_pipes(s, m, a->stdio) : 0;
}

/* What comes in as it is: as controller/init/command.c has it, which cannot see the number there.
 */
static bool harmless(const struct msg *m)
{
    struct stat st;
    for (unsigned i = 0; i < m->nfds; i++)
        if (fstat(m->fds[i], &st) < 0 || !(S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode) ||
                                           (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))))
            return false;
    return true;
}

static int with_ends(struct keeper *k, struct msg *m)
{
    struct asked a;
    if (look(m, &a) < 0 || slot_find(k, a.number) || !harmless(m)) {
        msg_done(m);
        return -1;
    }
    struct slot *s = slot_new(k, a.number);
    if (s && add_ends(s, m, &a) == 0 && !m->bad)
        return pass(&k->in, m);
    if (s)
        slot_free(s);
    msg_done(m);
    return refuse(k, a.number, m->type == W_INIT_EXEC ? FAILED : EMFILE,
                  "too many commands run in this sandbox");
}

/* ---- connections ---- */

/* Of what the keeper holds only the way out: an end of another's pipe would keep that open. */
static int keep_only(int fd)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || dup2(fd, STDIN_FILENO) < 0)
        return -1;
    return (int)syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
}

static NORETURN void connect_to(int to, uint32_t number, uint32_t port)
{
    struct msg m;
    if (keep_only(to) < 0)
        _exit(1);
    int fd = inside_connect(port), e = fd < 0 ? errno : 0;
    if (fd >= 0) {
        msg_init(&m, W_INIT_STARTED);
        msg_put_u32(&m, number);
        msg_put_u32(&m, 1);
        msg_put_fd(&m, fd);
        say(STDIN_FILENO, &m);
    }
    msg_init(&m, W_INIT_EXIT);
    msg_put_u32(&m, number);
    msg_put_u32(&m, (uint32_t)e);
    msg_put_str(&m, "");
    say(STDIN_FILENO, &m);
    _exit(0);
}

/* What listens inside listens in this network namespace, and may let whoever connects wait. */
static int on_connect(struct keeper *k, struct msg *m)
{
    uint32_t number, port;
    int bad = msg_get_u32(m, &number) < 0 || msg_get_u32(m, &port) < 0 || port == 0 ||
              port > 65535 || msg_end(m) < 0;
    msg_done(m);
    if (bad || slot_find(k, number))
        return -1;
    struct slot *s = slot_new(k, number);
    if (s == NULL)
        return refuse(k, number, EMFILE, "too many commands run in this sandbox");
    s->connects = true;
    s->terminal = fork();
    if (s->terminal == 0)
        connect_to(k->out.to, number, port);
    if (s->terminal > 0)
        return 0;
    int e = errno;
    slot_free(s);
    return refuse(k, number, (uint32_t)e, "");
}

/* Whoever answers now is meant for a controller that died: nobody of ours speaks on, and what the
 * sandbox says until its answer is not heard (on_said). */
static int on_reset(struct keeper *k, struct msg *m)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *s = &k->slots[i];
        if (s->used && s->terminal > 0 && kill(s->terminal, SIGKILL) == 0)
            (void)waitpid(s->terminal, NULL, 0); /* it was killed: this does not take long */
        if (s->used)
            slot_free(s);
    }
    k->resets++;
    return pass(&k->in, m);
}

/* W_INIT_SIGNAL, W_INIT_WINSIZE: numbers. */
static int on_order(struct keeper *k, struct msg *m)
{
    if (m->nfds == 0)
        return pass(&k->in, m);
    msg_done(m);
    return -1;
}

static int on_asked(struct keeper *k)
{
    struct msg m;
    int got = msg_recv(LAUNCHER_INIT, &m);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got <= 0)
        return -1;
    switch (m.type) {
    case W_INIT_EXEC:
    case W_INIT_FILE:
    case W_INIT_WATCH:
        return with_ends(k, &m);
    case W_INIT_CONNECT:
        return k->children.connects_inside ? with_ends(k, &m) : on_connect(k, &m);
    case W_INIT_RESET:
        return on_reset(k, &m);
    case W_INIT_SIGNAL:
    case W_INIT_WINSIZE:
        return on_order(k, &m);
    default:
        msg_done(&m);
        return -1;
    }
}

/* ---- what comes out ---- */

static int on_started(struct keeper *k, struct msg *m)
{
    uint32_t number, n;
    struct msg whole;
    int bad = msg_get_u32(m, &number) < 0 || msg_get_u32(m, &n) < 0 || n != 0 || msg_end(m) < 0;
    struct slot *s = bad ? NULL : slot_find(k, number);
    msg_done(m);
    if (s == NULL || s->connects)
        return -1;
    msg_init(&whole, W_INIT_STARTED);
    msg_put_u32(&whole, number);
    msg_put_u32(&whole, s->n);
    for (unsigned i = 0; i < s->n; i++)
        msg_put_fd(&whole, s->outer[i]);
    s->n = 0; /* given away */
    return pass(&k->out, &whole);
}

/* A terminal's last bytes go before it. */
static int on_exit_message(struct keeper *k, struct msg *m)
{
    struct buf whole = m->body;
    uint32_t number;
    int bad = msg_get_u32(m, &number);
    m->body = whole;
    struct slot *s = bad ? NULL : slot_find(k, number);
    if (s && s->connects) {
        msg_done(m);
        return -1;
    }
    if (s && s->terminal > 0 && s->n == 0 && !s->has_ended) {
        s->end = *m;
        s->has_ended = true;
        kill(s->terminal, SIGTERM);
        return 0;
    }
    if (s && s->terminal > 0)
        kill(s->terminal, SIGKILL);
    if (s)
        slot_free(s);
    return pass(&k->out, m);
}

/* The answer to the last of them is heard, and what comes behind it. */
static int on_reset_answer(struct keeper *k, struct msg *m)
{
    bool last = m->type == W_INIT_RESET && --k->resets == 0;
    if (last)
        return pass(&k->out, m);
    msg_done(m);
    return 0;
}

static int on_said(struct keeper *k)
{
    struct msg m;
    int got = msg_recv(k->inner, &m);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got <= 0)
        return -1;
    if (k->resets > 0)
        return on_reset_answer(k, &m);
    switch (m.type) {
    case W_INIT_STARTED:
        return on_started(k, &m);
    case W_INIT_EXIT:
        return on_exit_message(k, &m);
    case W_INIT_READY:
        return pass(&k->out, &m);
    default:
        msg_done(&m);
        return -1;
    }
}

/* ---- children ---- */

/* -1: the sandbox itself, or what it cannot be without. */
static int on_children(struct keeper *k)
{
    struct signalfd_siginfo info;
    int status;
    (void)!read(k->signals, &info, sizeof info);
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid == k->children.sandbox)
            k->status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        if (pid == k->children.sandbox || pid == k->children.others[0] ||
            pid == k->children.others[1])
            return -1;
        for (unsigned i = 0; i < SLOTS; i++) {
            struct slot *s = &k->slots[i];
            if (!s->used || s->terminal != pid)
                continue;
            s->terminal = -1; /* its end may be told */
            if (s->connects)
                slot_free(s);
        }
    }
    return 0;
}

static int tell_ends(struct keeper *k)
{
    for (unsigned i = 0; i < SLOTS && !k->out.full; i++) {
        struct slot *s = &k->slots[i];
        if (!s->used || !s->has_ended || s->terminal > 0)
            continue;
        struct msg m = s->end;
        s->has_ended = false;
        slot_free(s);
        if (pass(&k->out, &m) < 0)
            return -1;
    }
    return 0;
}

/* ---- its loop ---- */

static int turn(struct keeper *k)
{
    struct pollfd p[3] = {{.fd = LAUNCHER_INIT, .events = k->out.full ? POLLOUT : 0},
                          {.fd = k->inner, .events = k->in.full ? POLLOUT : 0},
                          {.fd = k->signals, .events = POLLIN}};
    bool idle = !k->in.full && !k->out.full; /* a request may be answered at once */
    p[0].events |= idle ? POLLIN : 0;
    p[1].events |= k->out.full ? 0 : POLLIN;
    if (poll(p, 3, -1) < 0)
        return errno == EINTR ? 0 : -1;
    if (p[2].revents && on_children(k) < 0)
        return -1;
    if (k->out.full && p[0].revents & POLLOUT && pass_held(&k->out) < 0)
        return -1;
    if (k->in.full && p[1].revents & POLLOUT && pass_held(&k->in) < 0)
        return -1;
    if (tell_ends(k) < 0)
        return -1;
    if (!k->out.full && p[1].revents & (POLLIN | POLLHUP | POLLERR) && on_said(k) < 0)
        return -1;
    bool still = !k->in.full && !k->out.full;
    return still && p[0].revents & (POLLIN | POLLHUP | POLLERR) ? on_asked(k) : 0;
}

static int give_up_rights(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (prctl(PR_SET_NAME, "durward-keeper") < 0 || syscall(SYS_capset, &head, none) < 0 ||
        prctl(PR_SET_DUMPABLE, 0) < 0)
        return -1;
    return 0;
}

/* The filter that its programs have elsewhere: durward-init loads it, and so do we. */
static int hand_filter(struct keeper *k)
{
    struct msg m;
    msg_init(&m, W_INIT_HANDOVER);
    msg_put_fd_dup(&m, LAUNCHER_FILTER);
    return pass(&k->in, &m);
}

static int prepare(struct keeper *k)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 ||
        (k->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0 ||
        fcntl(LAUNCHER_INIT, F_SETFL, O_NONBLOCK) < 0 || fcntl(k->inner, F_SETFL, O_NONBLOCK) < 0)
        return -1;
    return hand_filter(k) < 0 ? -1 : give_up_rights();
}

int gvisor_keep(const struct keeper_children *children, int inner)
{
    static struct keeper k;
    k = (struct keeper){.children = *children, .inner = inner, .status = 1};
    k.in.to = inner;
    k.out.to = LAUNCHER_INIT;
    if (prepare(&k) < 0)
        return 1;
    for (int fd = LAUNCHER_FILTER; fd < LAUNCHER_FDS; fd++)
        close(fd);
    while (turn(&k) == 0) {
    }
    return k.status;
}
