/* Carries bytes between a terminal's master and a socket. */
#define _GNU_SOURCE 1
#include "terminal_relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "command.h"
#include "compiler.h"

enum { MASTER = 0, SOCKET = 1, TERMINAL = 2, KEPT = 3, CARRIED = 2, OTHERS = 1024 };

static int put_all(const unsigned char *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t w = write(MASTER, p + at, n - at);
        if (w < 0 && errno != EINTR)
            return -1;
        at += w > 0 ? (size_t)w : 0;
    }
    return 0;
}

/* The signal that a byte stands for, or 0. */
static int signal_of(const struct termios *t, unsigned char c)
{
    if (!(t->c_lflag & ISIG) || c == _POSIX_VDISABLE)
        return 0;
    return c == t->c_cc[VINTR]   ? SIGINT
           : c == t->c_cc[VQUIT] ? SIGQUIT
           : c == t->c_cc[VSUSP] ? SIGTSTP
                                 : 0;
}

/* To the processes in front, with the echo that a terminal makes of it. */
static int interrupt(const struct termios *t, unsigned char c, int sig)
{
    const char echo[2] = {'^', (char)(c ^ 0x40)};
    pid_t front = tcgetpgrp(TERMINAL);
    if (front > 0)
        kill(-front, sig);
    return t->c_lflag & ECHO && send(SOCKET, echo, sizeof echo, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* gVisor's terminals of 2022 make no signals of their input; so that none makes two, it gets no
 * byte that stands for one. */
static int on_input(const unsigned char *p, size_t n)
{
    struct termios t;
    if (tcgetattr(MASTER, &t) < 0)
        return put_all(p, n);
    for (size_t at = 0; at < n;) {
        size_t plain = at;
        while (plain < n && signal_of(&t, p[plain]) == 0)
            plain++;
        if (put_all(p + at, plain - at) < 0 ||
            (plain < n && interrupt(&t, p[plain], signal_of(&t, p[plain])) < 0))
            return -1;
        at = plain + 1;
    }
    return 0;
}

static int on_packet(void)
{
    unsigned char packet[1 + COMMAND_RELAYED_MAX];
    ssize_t n = recv(SOCKET, packet, sizeof packet, 0);
    if (n < 0 && errno == EINTR)
        return 0;
    if (n <= 0)
        return -1;
    if (packet[0] == COMMAND_RELAYED_SIZE && n == 5) {
        struct winsize size = {0};
        memcpy(&size.ws_row, packet + 1, 2);
        memcpy(&size.ws_col, packet + 3, 2);
        (void)ioctl(MASTER, TIOCSWINSZ, &size); /* a terminal of our own takes any size */
        return 0;
    }
    return on_input(packet + 1, (size_t)n - 1);
}

/* EIO: nobody has its other side open any more. */
static int on_output(void)
{
    char bytes[COMMAND_RELAYED_MAX];
    ssize_t n = read(MASTER, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR)
        return 0;
    return n <= 0 || send(SOCKET, bytes, (size_t)n, MSG_NOSIGNAL) != n ? -1 : 0;
}

/* gVisor of 2022 has no close_range. */
static void close_others(void)
{
    if (syscall(SYS_close_range, KEPT, ~0U, 0) == 0)
        return;
    for (int fd = KEPT; fd < OTHERS; fd++)
        close(fd);
}

static NORETURN void run(int master, int sock, int terminal)
{
    struct pollfd p[CARRIED] = {{MASTER, POLLIN, 0}, {SOCKET, POLLIN, 0}};
    const int given[KEPT] = {master, sock, terminal};
    int from[KEPT];
    (void)signal(SIGHUP, SIG_IGN);
    for (int i = 0; i < KEPT; i++)
        if ((from[i] = fcntl(given[i], F_DUPFD_CLOEXEC, 64)) < 0)
            _exit(1);
    for (int i = 0; i < KEPT; i++)
        if (dup2(from[i], i) < 0)
            _exit(1);
    close_others();
    while (poll(p, CARRIED, -1) >= 0 || errno == EINTR)
        if ((p[MASTER].revents && on_output() < 0) || (p[SOCKET].revents && on_packet() < 0))
            break;
    _exit(0);
}

/* Nobody's child, or the command would find one that it does not know. */
static NORETURN void leave(int master, int sock, int terminal)
{
    pid_t pid = setpgid(0, 0) < 0 ? -1 : fork();
    if (pid == 0)
        run(master, sock, terminal);
    _exit(pid < 0);
}

int terminal_relay(int master, int sock, int terminal)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
        leave(master, sock, terminal);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return pid > 0 && status == 0 ? 0 : -1;
}
