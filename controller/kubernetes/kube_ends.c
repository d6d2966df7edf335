/* Makes pipes, a terminal or a connection, as the controller expects them of durward-init. */
#define _GNU_SOURCE 1
#include "kube_ends.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

static int quick(int fd)
{
    return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* Of one end both directions are ours. */
static int share(struct kube_ends *e, int ours, int theirs, struct err *err)
{
    e->given[e->n_given++] = theirs;
    e->input = ours;
    e->output[0] = fcntl(ours, F_DUPFD_CLOEXEC, 3);
    return e->output[0] < 0 || quick(ours) < 0 ? err_sys(err, "the other end") : 0;
}

/* Bytes pass as they are: what a terminal does to them is done by the pod's. */
static int make_terminal(const struct kube_wish *w, struct kube_ends *e, struct err *err)
{
    int zero = 0;
    struct winsize size = {.ws_row = (unsigned short)w->rows, .ws_col = (unsigned short)w->cols};
    struct termios raw;
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    int slave = master < 0 || ioctl(master, TIOCSPTLCK, &zero) < 0
                    ? -1
                    : ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0 || tcgetattr(slave, &raw) < 0)
        return err_sys(err, "cannot make a terminal");
    cfmakeraw(&raw);
    if (tcsetattr(slave, TCSANOW, &raw) < 0 || ioctl(slave, TIOCSWINSZ, &size) < 0 ||
        ioctl(slave, TIOCSCTTY, 0) < 0) /* so that we hear of its new sizes */
        return err_sys(err, "cannot make a terminal");
    return share(e, slave, master, err);
}

static bool is_peer(int fd, int of)
{
    struct sockaddr_in a, b;
    socklen_t an = sizeof a, bn = sizeof b;
    return getpeername(fd, (struct sockaddr *)&a, &an) == 0 &&
           getsockname(of, (struct sockaddr *)&b, &bn) == 0 && a.sin_port == b.sin_port &&
           a.sin_addr.s_addr == b.sin_addr.s_addr;
}

/* The controller carries connections of TCP. Nobody else of this host gets into it. */
static int make_connection(struct kube_ends *e, struct err *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t n = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int theirs = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ours = -1;
    if (l >= 0 && theirs >= 0 && bind(l, (struct sockaddr *)&at, sizeof at) == 0 &&
        listen(l, 1) == 0 && getsockname(l, (struct sockaddr *)&at, &n) == 0 &&
        connect(theirs, (struct sockaddr *)&at, n) == 0)
        ours = accept4(l, NULL, NULL, SOCK_CLOEXEC);
    if (l >= 0)
        close(l);
    if (ours >= 0 && is_peer(ours, theirs))
        return share(e, ours, theirs, err);
    err_set(err, ERR_UNREADY, "no connection can be made on this host");
    if (ours >= 0)
        close(ours);
    if (theirs >= 0)
        close(theirs);
    return -1;
}

static int make_pipe(struct kube_ends *e, bool in, int *ours, struct err *err)
{
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    *ours = p[!in];
    e->given[e->n_given++] = p[in];
    return quick(*ours) < 0 ? err_sys(err, "pipe") : 0;
}

int kube_ends_make(const struct kube_wish *w, struct kube_ends *e, struct err *err)
{
    *e = (struct kube_ends){.given = {-1, -1, -1}, .input = -1, .output = {-1, -1}};
    if (w->tty)
        return make_terminal(w, e, err);
    if (w->socket)
        return make_connection(e, err);
    if (w->in && make_pipe(e, true, &e->input, err) < 0)
        return -1;
    if (w->out && make_pipe(e, false, &e->output[0], err) < 0)
        return -1;
    return w->split ? make_pipe(e, false, &e->output[1], err) : 0;
}

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void kube_ends_close(struct kube_ends *e)
{
    for (unsigned i = 0; i < e->n_given; i++)
        shut(&e->given[i]);
    e->n_given = 0;
    shut(&e->input);
    shut(&e->output[0]);
    shut(&e->output[1]);
}
