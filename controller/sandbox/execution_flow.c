/* Bytes into and out of an execution, over descriptors that come from inside and are used only when
 * they are what was asked for: a pipe, our terminal, a socket. */
#define _GNU_SOURCE 1
#include "execution_internal.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { CHUNK = 64 * 1024 };

static void close_one(int *fd, struct event **ev)
{
    if (*ev)
        event_free(*ev);
    *ev = NULL;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void flow_close_input(struct execution *e)
{
    close_one(&e->in, &e->on_in);
    buf_free(&e->input);
}

void flow_close(struct execution *e)
{
    flow_close_input(e);
    for (int i = 0; i < 2; i++)
        close_one(&e->out[i], &e->on_out[i]);
}

/* ---- out of the sandbox ---- */

static void keep(struct execution *e, int i, const void *p, size_t n)
{
    size_t room = e->max_output - buf_len(&e->kept[i]);
    size_t take = n < room ? n : room;
    if (take < n && e->whole && !e->truncated)
        execution_signal(e, SIGKILL);
    if (take < n)
        e->truncated = true;
    if (take && buf_append(&e->kept[i], p, take) < 0)
        e->truncated = true;
}

void flow_give(struct execution *e, int i, const void *p, size_t n)
{
    if (e->ops && e->ops->output)
        e->ops->output(e->arg, e, i + 1, p, n);
    else if (e->ops)
        keep(e, i, p, n);
}

/* At most `max` bytes. 0: there may be more; -1: not now, or its end (then it is closed). */
static int take(struct execution *e, int i, size_t max)
{
    static unsigned char room[CHUNK];
    ssize_t n = read(e->out[i], room, max < sizeof room ? max : sizeof room);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR ? 0 : -1;
    if (n <= 0) { /* EIO: a terminal whose other side is closed */
        redact_end(e, i);
        close_one(&e->out[i], &e->on_out[i]);
        return -1;
    }
    if (e->redact)
        redact_take(e, i, room, (size_t)n);
    else
        flow_give(e, i, room, (size_t)n);
    return 0;
}

static void on_readable(evutil_socket_t fd, short what UNUSED, void *arg)
{
    struct execution *e = arg;
    (void)take(e, fd == e->out[1], CHUNK); /* level-triggered: the rest comes next time */
}

/* Not to the end of file, which a process left behind may hold off for ever, but as many bytes as
 * are there now. */
void flow_drain(struct execution *e)
{
    for (int i = 0; i < 2; i++) {
        int left = 0;
        if (e->out[i] < 0 || ioctl(e->out[i], FIONREAD, &left) < 0)
            continue;
        while (left > 0 && e->out[i] >= 0) {
            size_t n = left < CHUNK ? (size_t)left : CHUNK;
            if (take(e, i, n) < 0)
                break;
            left -= (int)n;
        }
    }
}

void flow_pause(struct execution *e)
{
    for (int i = 0; i < 2; i++)
        if (e->on_out[i] && e->paused)
            event_del(e->on_out[i]);
        else if (e->on_out[i])
            event_add(e->on_out[i], NULL);
}

/* ---- into the sandbox ---- */

void flow_write(struct execution *e)
{
    while (e->in >= 0 && buf_len(&e->input)) {
        size_t n = buf_len(&e->input) < CHUNK ? buf_len(&e->input) : CHUNK;
        ssize_t w = write(e->in, buf_data(&e->input), n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0 && errno == EAGAIN) {
            event_add(e->on_in, NULL);
            return;
        }
        if (w < 0) { /* it reads no more: what it was given beyond that is nobody's */
            flow_close_input(e);
            return;
        }
        buf_drain(&e->input, (size_t)w);
    }
    if (e->in >= 0 && e->input_ended && !e->tty)
        flow_close_input(e);
}

static void on_writable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct execution *e = arg;
    flow_write(e);
    if (buf_len(&e->input) == 0 && e->ops && e->ops->fed)
        e->ops->fed(e->arg, e);
}

/* ---- what durward-init hands out ---- */

bool inside_is_pipe(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* As in sandbox_peers.c: the master of a pty and nothing else. */
static bool is_terminal(int fd)
{
    struct stat st;
    unsigned number;
    return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(5, 2) &&
           ioctl(fd, TIOCGPTN, &number) == 0;
}

static int listen_to(struct execution *e, int i, int fd)
{
    e->out[i] = fd;
    e->on_out[i] =
        event_new(e->managed_sandbox->controller->base, fd, EV_READ | EV_PERSIST, on_readable, e);
    return e->on_out[i] && event_add(e->on_out[i], NULL) == 0 ? 0 : -1;
}

static int feed(struct execution *e, int fd)
{
    e->in = fd;
    e->on_in = event_new(e->managed_sandbox->controller->base, fd, EV_WRITE, on_writable, e);
    if (e->on_in == NULL)
        return -1;
    flow_write(e);
    return 0;
}

static int attach_terminal(struct execution *e, int *fds, unsigned n)
{
    if (n != 1 || !is_terminal(fds[0]))
        return -1;
    int in = fcntl(fds[0], F_DUPFD_CLOEXEC, 3), out = fds[0];
    fds[0] = -1;
    if (in < 0 || listen_to(e, 0, out) < 0)
        return -1;
    return feed(e, in);
}

static int attach_pipes(struct execution *e, int *fds, unsigned n)
{
    bool out = e->kind == EXECUTION_COMMAND || e->op == INSIDE_READ || e->op == INSIDE_LIST ||
               e->op == INSIDE_STAT || e->op == INSIDE_WATCH;
    bool in = e->kind == EXECUTION_COMMAND ? e->wants_input : e->op == INSIDE_WRITE;
    unsigned at = 0;
    for (unsigned i = 0; i < n; i++)
        if (!inside_is_pipe(fds[i]))
            return -1;
    /* a deletion has a pipe too; nothing goes through it */
    if (n != (unsigned)in + (unsigned)out + (unsigned)e->split && (in || out || n != 1))
        return -1;
    for (int i = 0; i < 1 + (int)e->split && out; i++) {
        int fd = fds[in + i];
        fds[in + i] = -1;
        if (listen_to(e, i, fd) < 0)
            return -1;
    }
    if (!in)
        return 0;
    int fd = fds[at];
    fds[at] = -1;
    return feed(e, fd);
}

bool inside_is_connection(int fd)
{
    int type = 0, family = 0;
    socklen_t a = sizeof type, b = sizeof family;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &a) == 0 && type == SOCK_STREAM &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &b) == 0 &&
           (family == AF_INET || family == AF_INET6);
}

static int attach_socket(struct execution *e, int *fds, unsigned n)
{
    if (n != 1 || !inside_is_connection(fds[0]))
        return -1;
    if (e->ops && e->ops->started) {
        int fd = fds[0];
        fds[0] = -1;
        e->ops->started(e->arg, e, fd);
    }
    return 0;
}

int flow_attach(struct execution *e, int *fds, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (fcntl(fds[i], F_SETFL, fcntl(fds[i], F_GETFL) | O_NONBLOCK) < 0)
            return -1;
    if (e->kind == EXECUTION_CONNECT)
        return attach_socket(e, fds, n);
    return e->tty ? attach_terminal(e, fds, n) : attach_pipes(e, fds, n);
}
