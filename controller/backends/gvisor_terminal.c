/* Carries bytes between a terminal of the host, in raw mode, and durward-init; the size goes along,
 * before the input that was sent after it. */
#define _GNU_SOURCE 1
#include "gvisor_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "compiler.h"
#include "rootfs.h"

enum {
    LAST_MS = 100,       /* of silence, */
    LAST_S = 1,          /* or at the first moment of it after so long, */
    LAST_BYTES = 1 << 20 /* or after more than can have been on its way */
};
enum { SLAVE = 0, INNER = 1, SIGNALS = 2, KEPT = 3 };

struct carrier {
    struct winsize size; /* as it was told */
    bool ends;
    time_t ended; /* when */
    size_t last;  /* bytes since */
};

static time_t seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

static int send_all(const void *p, size_t n)
{
    return send(INNER, p, n, MSG_NOSIGNAL) == (ssize_t)n ? 0 : -1;
}

static int tell_size(struct carrier *c)
{
    struct winsize now;
    unsigned char packet[1 + 4] = {COMMAND_RELAYED_SIZE};
    if (ioctl(SLAVE, TIOCGWINSZ, &now) < 0)
        return -1;
    if (now.ws_row == c->size.ws_row && now.ws_col == c->size.ws_col)
        return 0;
    c->size = now;
    memcpy(packet + 1, &now.ws_row, 2);
    memcpy(packet + 3, &now.ws_col, 2);
    return send_all(packet, sizeof packet);
}

static int carry_in(struct carrier *c)
{
    unsigned char packet[1 + COMMAND_RELAYED_MAX] = {COMMAND_RELAYED_BYTES};
    ssize_t n = read(SLAVE, packet + 1, sizeof packet - 1);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return n <= 0 || tell_size(c) < 0 ? -1 : send_all(packet, 1 + (size_t)n);
}

static int carry_out(struct carrier *c)
{
    char bytes[COMMAND_RELAYED_MAX];
    ssize_t n = recv(INNER, bytes, sizeof bytes, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    for (ssize_t at = 0; at < n;) {
        ssize_t w = write(SLAVE, bytes + at, (size_t)(n - at));
        if (w < 0 && errno != EINTR)
            return -1;
        at += w > 0 ? w : 0;
    }
    c->last += c->ends && n > 0 ? (size_t)n : 0;
    return n > 0 && c->last < LAST_BYTES ? 0 : -1;
}

/* SIGWINCH, or SIGTERM: the command has ended. */
static int on_signal(struct carrier *c)
{
    struct signalfd_siginfo info;
    if (read(SIGNALS, &info, sizeof info) != sizeof info)
        return 0;
    if (info.ssi_signo == SIGTERM && !c->ends) {
        c->ends = true;
        c->ended = seconds();
    }
    return info.ssi_signo == SIGWINCH ? tell_size(c) : 0;
}

/* A command's end is told once its last bytes are carried; others that it left behind may go on to
 * write, and are not waited for. */
static int how_long(const struct carrier *c)
{
    return !c->ends ? -1 : seconds() - c->ended > LAST_S ? 0 : LAST_MS;
}

static NORETURN void carry(struct carrier *c)
{
    struct pollfd p[KEPT] = {{SLAVE, POLLIN, 0}, {INNER, POLLIN, 0}, {SIGNALS, POLLIN, 0}};
    for (;;) {
        int n = poll(p, KEPT, how_long(c));
        if ((n < 0 && errno != EINTR) || (n == 0 && c->ends))
            break;
        if (n < 0)
            continue;
        if (p[SIGNALS].revents && on_signal(c) < 0)
            break;
        if (p[INNER].revents && carry_out(c) < 0)
            break;
        if (p[SLAVE].revents && carry_in(c) < 0)
            break;
    }
    _exit(0);
}

/* The terminal becomes this process's, so that it hears of its size. */
static NORETURN void run(int slave, int sock, uint32_t rows, uint32_t cols)
{
    struct carrier c = {.size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols}};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    sigaddset(&set, SIGTERM);
    if (prctl(PR_SET_NAME, "durward-tty") < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
        setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) < 0 || sigprocmask(SIG_SETMASK, &set, NULL) < 0)
        _exit(1);
    int from[KEPT] = {slave, sock, signalfd(-1, &set, SFD_CLOEXEC)};
    for (int i = 0; i < KEPT; i++)
        if ((from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 64)) < 0)
            _exit(1);
    for (int i = 0; i < KEPT; i++)
        if (dup2(from[i], i) < 0)
            _exit(1);
    if (syscall(SYS_close_range, KEPT, ~0U, 0) < 0)
        _exit(1);
    carry(&c);
}

static int open_slave(int master, uint32_t rows, uint32_t cols)
{
    int zero = 0;
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
    struct termios t;
    if (master < 0 || ioctl(master, TIOCSPTLCK, &zero) < 0)
        return -1;
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0)
        return -1;
    if (tcgetattr(slave, &t) == 0) {
        cfmakeraw(&t);
        if (tcsetattr(slave, TCSANOW, &t) == 0 && ioctl(master, TIOCSWINSZ, &size) == 0)
            return slave;
    }
    close(slave);
    return -1;
}

pid_t gvisor_terminal_start(uint32_t rows, uint32_t cols, int *master, int *inner)
{
    int pair[2] = {-1, -1};
    pid_t pid = -1;
    *master = open(ROOTFS_PTS "/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    int slave = open_slave(*master, rows, cols);
    if (slave >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0)
        pid = fork();
    if (pid == 0)
        run(slave, pair[1], rows, cols);
    if (slave >= 0)
        close(slave);
    if (pair[1] >= 0)
        close(pair[1]);
    *inner = pair[0];
    if (pid < 0) {
        if (*master >= 0)
            close(*master);
        if (pair[0] >= 0)
            close(pair[0]);
    }
    return pid;
}
