/* A role that somebody else has taken over, in the real system: linked before the program, this
 * stands in front of three functions of each role. The role enters, confines itself, gets its
 * descriptors and its wires as ever; once the test says so (harness/seat.py), its event loop stands
 * still and the process does what it is told, with what the role has and may do, and nothing else.
 *
 * The test listens beside the program: a socket "seat". Whoever cannot connect to it is the
 * role that it is. Commands are datagrams, one at a time, each answered by one:
 *   T  take the role     G  let it go on      L  its wires, a line each
 *   W fd:u32 n:u32 n × fd:u32 bytes           one datagram; -> result:i64
 *   N count:u32 at:u32 fd:u32 bytes           that often, a number of 4 bytes counted up there; ->
 * how many:i64 R fd:u32 ms:u32                           -> result:i64 n:u32 n × fd:u32 bytes S
 * call:u32 n:u32 n × (kind:u8 value:i64, or length:u32 bytes)    kind i number, b bytes, o room
 *                                             -> result:i64, what is in each room
 *   A                                         it finds one of its own assertions untrue
 * Numbers are of the machine's order; a result below 0 is an errno. */
#include "assertion.h"
#include "peer.h"
#include "proc.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { SEAT_FD = 200, DATAGRAM = 160 * 1024, WIRES = 1024, FDS = 253, START_WAIT_MS = 2000 };

int __real_proc_enter(enum role r, struct err *err);
int __wrap_proc_enter(enum role r, struct err *err);
int __real_peer_get(struct msg *m, struct peer *p);
int __wrap_peer_get(struct msg *m, struct peer *p);
int __real_event_base_dispatch(struct event_base *base);
int __wrap_event_base_dispatch(struct event_base *base);

static int driver = -1;
static struct event *listening;
static struct wire_seen {
    int kind, fd;
    uint32_t channel;
    char sandbox[65], policy[65];
} wires[WIRES];
static size_t n_wires;
static unsigned char in[DATAGRAM], out[DATAGRAM + 1024];

/* ---- the wires of the role ---- */

int __wrap_peer_get(struct msg *m, struct peer *p)
{
    int r = __real_peer_get(m, p);
    if (r == 0 && n_wires < WIRES) {
        struct wire_seen *w = &wires[n_wires++];
        w->kind = (int)p->kind;
        w->fd = p->fd;
        w->channel = p->channel;
        snprintf(w->sandbox, sizeof w->sandbox, "%s", p->sandbox);
        snprintf(w->policy, sizeof w->policy, "%s", p->policy);
    }
    return r;
}

/* A line each, behind an empty one: no answer at all means that the process has ended. */
static size_t list_wires(void)
{
    size_t at = (size_t)snprintf((char *)out, sizeof out, "\n");
    for (size_t i = 0; i < n_wires; i++) {
        const struct wire_seen *w = &wires[i];
        at += (size_t)snprintf((char *)out + at, sizeof out - at, "%s %d %u [%s] [%s]\n",
                               role_name((enum role)w->kind), w->fd, (unsigned)w->channel,
                               w->sandbox, w->policy);
    }
    return at;
}

/* ---- commands ---- */

struct args {
    const unsigned char *p;
    size_t n;
};

static void need(bool good)
{
    if (!good)
        abort(); /* the test's mistake */
}

static const unsigned char *bytes(struct args *a, size_t n)
{
    const unsigned char *p = a->p;
    need(n <= a->n);
    a->p += n;
    a->n -= n;
    return p;
}

static uint32_t number(struct args *a)
{
    uint32_t v;
    memcpy(&v, bytes(a, sizeof v), sizeof v);
    return v;
}

static size_t result(int64_t r)
{
    if (r < 0)
        r = -errno;
    memcpy(out, &r, sizeof r);
    return sizeof r;
}

static bool wait_for(int fd, short what, int ms)
{
    struct pollfd p = {.fd = fd, .events = what};
    return poll(&p, 1, ms) == 1;
}

static ssize_t put(int fd, const void *p, size_t n, const int *fds, size_t n_fds)
{
    static union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * FDS)];
    } control;
    struct iovec iov = {(void *)p, n};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
    if (n_fds) {
        memset(&control, 0, sizeof control);
        mh.msg_control = &control;
        mh.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
    }
    for (;;) {
        ssize_t r = sendmsg(fd, &mh, MSG_NOSIGNAL);
        if (r >= 0 || errno != EAGAIN || !wait_for(fd, POLLOUT, START_WAIT_MS))
            return r;
    }
}

static size_t do_write(struct args *a)
{
    int fds[FDS], fd = (int)number(a);
    size_t n = number(a);
    need(n <= FDS);
    for (size_t i = 0; i < n; i++)
        fds[i] = (int)number(a);
    return result(put(fd, a->p, a->n, fds, n));
}

static size_t do_many(struct args *a)
{
    uint32_t count = number(a), at = number(a), v, i;
    int fd = (int)number(a);
    unsigned char *p = (unsigned char *)a->p;
    need(at + sizeof v <= a->n);
    for (i = 0; i < count; i++) {
        uint32_t n = i + 1000;
        unsigned char big[4] = {n >> 24, n >> 16, n >> 8, n};
        memcpy(p + at, big, sizeof big);
        if (put(fd, p, a->n, NULL, 0) < 0)
            break;
    }
    return result(i);
}

static size_t do_read(struct args *a)
{
    static union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * FDS)];
    } control;
    int fd = (int)number(a), ms = (int)number(a);
    uint32_t n = 0;
    size_t at = sizeof(int64_t) + sizeof n;
    if (!wait_for(fd, POLLIN, ms)) {
        errno = ETIMEDOUT;
        at = result(-1);
        memcpy(out + at, &n, sizeof n);
        return at + sizeof n;
    }
    static unsigned char got[DATAGRAM];
    struct iovec iov = {got, sizeof got - 4096};
    struct msghdr mh = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = &control,
                        .msg_controllen = sizeof control};
    ssize_t r = recvmsg(fd, &mh, MSG_CMSG_CLOEXEC);
    result(r);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&mh); r >= 0 && c; c = CMSG_NXTHDR(&mh, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
            size_t len = c->cmsg_len - CMSG_LEN(0);
            memcpy(out + at, CMSG_DATA(c), len);
            n += (uint32_t)(len / sizeof(int));
            at += len;
        }
    memcpy(out + sizeof(int64_t), &n, sizeof n);
    if (r > 0)
        memcpy(out + at, got, (size_t)r);
    return at + (r > 0 ? (size_t)r : 0);
}

/* A system call with any arguments, as code that was brought in would make it. */
static size_t do_call(struct args *a)
{
    enum { ARGS = 6, ROOM = 64 * 1024 };
    static unsigned char room[ARGS][ROOM];
    long v[ARGS] = {0};
    size_t lengths[ARGS] = {0};
    long call = (long)number(a);
    uint32_t n = number(a);
    need(n <= ARGS);
    for (uint32_t i = 0; i < n; i++) {
        unsigned char kind = *bytes(a, 1);
        if (kind == 'i') {
            memcpy(&v[i], bytes(a, sizeof v[i]), sizeof v[i]);
            continue;
        }
        uint32_t len = number(a);
        need(len < ROOM);
        memset(room[i], 0, len + 1);
        if (kind == 'b')
            memcpy(room[i], bytes(a, len), len);
        else
            lengths[i] = len;
        v[i] = (long)room[i];
    }
    size_t at = result(syscall(call, v[0], v[1], v[2], v[3], v[4], v[5]));
    for (uint32_t i = 0; i < n; i++) {
        memcpy(out + at, room[i], lengths[i]);
        at += lengths[i];
    }
    return at;
}

static size_t obey(unsigned char what, struct args *a)
{
    switch (what) {
    case 'L':
        return list_wires();
    case 'W':
        return do_write(a);
    case 'N':
        return do_many(a);
    case 'R':
        return do_read(a);
    case 'S':
        return do_call(a);
    case 'A':
        ASSERT(what != 'A');
        return result(0);
    default:
        return result(0); /* T, G */
    }
}

/* Commands until the role may go on, or the test has gone. */
static void on_driver(evutil_socket_t fd, short what UNUSED, void *arg UNUSED)
{
    unsigned char command;
    do {
        ssize_t n = recv(fd, in, sizeof in, 0);
        if (n <= 0) {
            event_del(listening);
            return;
        }
        struct args a = {in + 1, (size_t)n - 1};
        command = in[0];
        size_t len = obey(command, &a);
        need(send(fd, out, len, MSG_NOSIGNAL) == (ssize_t)len);
    } while (command != 'G');
}

/* ---- in front of the role ---- */

/* As its parent yet: with its uid and before anything is shut. */
int __wrap_proc_enter(enum role r, struct err *err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    while (n > 0 && path[n - 1] != '/')
        n--;
    if (r != ROLE_PARENT && n > 0 && (size_t)n + 5 < sizeof a.sun_path) {
        memcpy(a.sun_path, path, (size_t)n);
        memcpy(a.sun_path + n, "seat", 5);
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0) {
            int size = DATAGRAM * 2;
            (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
            driver = fcntl(fd, F_DUPFD_CLOEXEC, SEAT_FD);
            dprintf(driver, "%s %d", role_name(r), (int)getpid());
        }
        close(fd);
    }
    return __real_proc_enter(r, err);
}

int __wrap_event_base_dispatch(struct event_base *base)
{
    if (driver >= 0) {
        listening = event_new(base, driver, EV_READ | EV_PERSIST, on_driver, NULL);
        need(listening && event_add(listening, NULL) == 0);
    }
    return __real_event_base_dispatch(base);
}
