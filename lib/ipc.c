/* Runs a channel on the event loop: reads in turns of bounded length, queues what the socket does
 * not take, and gathers small messages. Also makes socket pairs and sealed memfds. */
#include "ipc.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/util.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    IPC_QUEUE_MAX = 8 << 20,
    IPC_BATCH = 16, /* messages of one channel in a turn of the loop: others have theirs between */
    IPC_SNDBUF = 1 << 20,
    IPC_GATHER_EACH = 8192,     /* a larger message goes by itself */
    IPC_GATHER_ALL = 64 * 1024, /* more than this is not held back */
};

static const struct timeval next_turn = {0, 0};

struct queued {
    struct msg m;
    STAILQ_ENTRY(queued) link;
};

struct ipc {
    int fd;
    struct event *rd, *wr, *fail;
    ipc_message_fn on_message;
    ipc_closed_fn on_closed;
    void *arg;
    void (*drained)(void *arg);
    void *drained_arg;
    STAILQ_HEAD(, queued) queue;
    size_t queued;
    struct event *turn;  /* NULL: messages are not gathered */
    struct msg gathered; /* what goes out when the turn ends */
    struct msg held;     /* of the far end's gathered ones, what is for the next turn */
    bool holds;
    struct event *more; /* there is a next turn, though the socket may be empty */
    const char *dead;   /* why, once it is */
    bool told;          /* on_closed has run */
    int depth;          /* callbacks on the stack */
    bool freed;         /* ipc_free was called inside one */
};

/* What a queued message costs us, so that many small ones are bounded too. */
static size_t cost(const struct msg *m)
{
    return sizeof(struct queued) + m->body.cap;
}

static void ipc_destroy(struct ipc *ch)
{
    struct queued *q;
    while ((q = STAILQ_FIRST(&ch->queue)) != NULL) {
        STAILQ_REMOVE_HEAD(&ch->queue, link);
        msg_done(&q->m);
        free(q);
    }
    if (ch->rd)
        event_free(ch->rd);
    if (ch->wr)
        event_free(ch->wr);
    if (ch->fail)
        event_free(ch->fail);
    if (ch->turn) {
        event_free(ch->turn);
        msg_done(&ch->gathered);
    }
    if (ch->more)
        event_free(ch->more);
    if (ch->holds)
        msg_done(&ch->held);
    if (ch->fd >= 0)
        close(ch->fd);
    free(ch);
}

static void ipc_leave(struct ipc *ch)
{
    if (--ch->depth == 0 && ch->freed)
        ipc_destroy(ch);
}

/* Mark dead; the closed callback runs from the loop, never from inside a send. */
static void ipc_die(struct ipc *ch, const char *why)
{
    if (ch->dead)
        return;
    ch->dead = why;
    event_del(ch->rd);
    event_del(ch->wr);
    event_active(ch->fail, EV_TIMEOUT, 0);
}

static void on_fail(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct ipc *ch = arg;
    if (ch->told)
        return;
    ch->told = true;
    ch->depth++;
    ch->on_closed(ch, ch->dead, ch->arg);
    ipc_leave(ch);
}

static bool reads_on(const struct ipc *ch)
{
    return !ch->dead && !ch->freed && event_pending(ch->rd, EV_READ, NULL);
}

/* The messages of the datagram that is held, as many as this turn has room for. False: one was bad.
 */
static bool take_held(struct ipc *ch, int *room)
{
    while (*room > 0 && reads_on(ch) && buf_len(&ch->held.body) > 0) {
        struct slice fields;
        struct msg one;
        uint8_t byte[2];
        if (msg_get_u8(&ch->held, &byte[0]) < 0 || msg_get_u8(&ch->held, &byte[1]) < 0 ||
            msg_get_slice(&ch->held, IPC_GATHER_EACH, &fields) < 0)
            return false;
        msg_view(&one, (uint16_t)(byte[0] << 8 | byte[1]), fields);
        --*room;
        if (ch->on_message(ch, &one, ch->arg) != 0)
            return false;
    }
    if (buf_len(&ch->held.body) == 0) {
        ch->holds = false;
        msg_done(&ch->held);
    }
    return true;
}

static bool take(struct ipc *ch, struct msg *m, int *room)
{
    if (m->type == IPC_GATHERED && ch->turn && m->nfds == 0 && !m->lost && buf_len(&m->body) > 0) {
        ch->held = *m;
        ch->holds = true;
        return take_held(ch, room);
    }
    --*room;
    bool good = m->type != IPC_GATHERED && ch->on_message(ch, m, ch->arg) == 0;
    msg_done(m);
    return good;
}

/* Behind what the far end gathered in a turn of its loop there is mostly nothing yet, and the loop
 * tells if there is. */
static void on_readable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct ipc *ch = arg;
    int room = IPC_BATCH;
    bool good = true;
    ch->depth++;
    if (ch->holds)
        good = take_held(ch, &room);
    for (bool more = true; good && more && room > 0 && reads_on(ch);) {
        struct msg m;
        int r = msg_recv(ch->fd, &m);
        if (r < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (r <= 0) {
            ipc_die(ch, r == 0 ? "closed by the peer" : "malformed datagram");
            break;
        }
        more = ch->turn == NULL || m.type != IPC_GATHERED;
        good = take(ch, &m, &room);
    }
    if (!good && !ch->freed)
        ipc_die(ch, "bad message");
    if (ch->holds && reads_on(ch))
        event_add(ch->more, &next_turn);
    ipc_leave(ch);
}

static void on_writable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct ipc *ch = arg;
    struct queued *q;
    while ((q = STAILQ_FIRST(&ch->queue)) != NULL) {
        int r = msg_send(ch->fd, &q->m);
        if (r == 1)
            return;
        if (r < 0) {
            ipc_die(ch, "send failed");
            return;
        }
        STAILQ_REMOVE_HEAD(&ch->queue, link);
        ch->queued -= cost(&q->m);
        msg_done(&q->m);
        free(q);
    }
    event_del(ch->wr);
    if (ch->drained) {
        ch->depth++;
        ch->drained(ch->drained_arg);
        ipc_leave(ch);
    }
}

struct ipc *ipc_new(struct event_base *base, int fd, ipc_message_fn on_message,
                    ipc_closed_fn on_closed, void *arg)
{
    struct ipc *ch = calloc(1, sizeof *ch);
    if (ch == NULL) {
        close(fd);
        return NULL;
    }
    STAILQ_INIT(&ch->queue);
    ch->fd = fd;
    ch->on_message = on_message;
    ch->on_closed = on_closed;
    ch->arg = arg;
    evutil_make_socket_nonblocking(fd);
    ch->rd = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, ch);
    ch->wr = event_new(base, fd, EV_WRITE | EV_PERSIST, on_writable, ch);
    ch->fail = event_new(base, -1, 0, on_fail, ch);
    if (!ch->rd || !ch->wr || !ch->fail || event_add(ch->rd, NULL) < 0) {
        ipc_destroy(ch);
        return NULL;
    }
    return ch;
}

int ipc_fd(const struct ipc *ch)
{
    return ch->fd;
}

/* Out with it, or into the queue behind what waits there. */
static int send_now(struct ipc *ch, struct msg *m)
{
    struct queued *q = NULL;
    int r = -1;
    if (STAILQ_EMPTY(&ch->queue)) {
        r = msg_send(ch->fd, m);
        if (r < 0)
            ipc_die(ch, "send failed");
        if (r <= 0)
            goto out;
    }
    r = -1;
    if (ch->queued + cost(m) > IPC_QUEUE_MAX || (q = malloc(sizeof *q)) == NULL) {
        ipc_die(ch, "queue is full");
        goto out;
    }
    q->m = *m;
    ch->queued += cost(m);
    STAILQ_INSERT_TAIL(&ch->queue, q, link);
    event_add(ch->wr, NULL);
    return 0;
out:
    msg_done(m);
    return r;
}

static int send_gathered(struct ipc *ch)
{
    struct msg m = ch->gathered;
    if (ch->turn == NULL || buf_len(&m.body) == 0)
        return 0;
    msg_init(&ch->gathered, IPC_GATHERED);
    return send_now(ch, &m);
}

static void on_turn(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct ipc *ch = arg;
    if (!ch->dead)
        send_gathered(ch);
}

static int body_buffer(struct ipc *ch, struct msg *m)
{
    bool first = buf_len(&ch->gathered.body) == 0;
    msg_put_u8(&ch->gathered, (uint8_t)(m->type >> 8));
    msg_put_u8(&ch->gathered, (uint8_t)m->type);
    msg_put_slice(&ch->gathered, buf_slice(&m->body));
    msg_done(m);
    if (ch->gathered.bad) {
        ipc_die(ch, "out of memory");
        return -1;
    }
    if (buf_len(&ch->gathered.body) > IPC_GATHER_ALL)
        return send_gathered(ch);
    if (first)
        event_active(ch->turn, EV_TIMEOUT, 0);
    return 0;
}

int ipc_send(struct ipc *ch, struct msg *m)
{
    if (ch == NULL || ch->dead || m->bad) {
        if (ch != NULL && m->starved)
            ipc_die(ch, "out of memory"); /* the far end waits for it: let it know */
        msg_done(m);
        return -1;
    }
    if (ch->turn && m->nfds == 0 && buf_len(&m->body) <= IPC_GATHER_EACH)
        return body_buffer(ch, m);
    if (send_gathered(ch) < 0) {
        msg_done(m);
        return -1;
    }
    return send_now(ch, m);
}

void ipc_gather(struct ipc *ch)
{
    ch->turn = event_new(event_get_base(ch->rd), -1, 0, on_turn, ch);
    ch->more = event_new(event_get_base(ch->rd), -1, 0, on_readable, ch);
    if (ch->turn && ch->more == NULL) {
        event_free(ch->turn);
        ch->turn = NULL;
    }
    msg_init(&ch->gathered, IPC_GATHERED);
}

void ipc_free(struct ipc *ch)
{
    if (ch == NULL || ch->freed)
        return;
    if (!ch->dead)
        send_gathered(ch); /* last words, as far as the socket takes them */
    ch->freed = true;
    if (!ch->dead)
        ch->dead = "freed";
    ch->told = true;
    event_del(ch->rd);
    event_del(ch->wr);
    event_del(ch->fail);
    if (ch->turn)
        event_del(ch->turn);
    if (ch->more)
        event_del(ch->more);
    if (ch->depth == 0)
        ipc_destroy(ch);
}

size_t ipc_queued(const struct ipc *ch)
{
    return ch->queued + (ch->turn ? ch->gathered.body.len : 0);
}

void ipc_on_drained(struct ipc *ch, void (*fn)(void *arg), void *arg)
{
    ch->drained = fn;
    ch->drained_arg = arg;
}

void ipc_pause(struct ipc *ch)
{
    event_del(ch->rd);
}

void ipc_resume(struct ipc *ch)
{
    if (ch->dead)
        return;
    event_add(ch->rd, NULL);
    if (ch->holds)
        event_add(ch->more, &next_turn);
}

void ipc_flush(struct ipc *ch, int ms)
{
    struct pollfd p = {.fd = ch->fd, .events = POLLOUT};
    ch->depth++; /* the drained callback may free the channel */
    if (!ch->dead)
        send_gathered(ch);
    while (!ch->dead && !STAILQ_EMPTY(&ch->queue) && poll(&p, 1, ms) > 0)
        on_writable(ch->fd, EV_WRITE, ch);
    ipc_leave(ch);
}

int ipc_pair(int fds[2], struct err *err)
{
    int size = IPC_SNDBUF;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
        return err_sys(err, "socketpair");
    for (int i = 0; i < 2; i++)
        setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    return 0;
}

int ipc_memfd(const char *name, const void *p, size_t n, struct err *err)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return err_sys(err, "memfd_create");
    const char *from = p;
    for (size_t at = 0; at < n;) { /* pwrite: the reader starts at the beginning */
        ssize_t w = pwrite(fd, from + at, n - at, (off_t)at);
        if (w <= 0) {
            err_sys(err, "writing a memfd");
            close(fd);
            return -1;
        }
        at += (size_t)w;
    }
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0) {
        err_sys(err, "sealing a memfd");
        close(fd);
        return -1;
    }
    return fd;
}

int ipc_memfd_read(int fd, size_t max, char **ret, size_t *len, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(err, "fstat");
    if (st.st_size < 0 || (uint64_t)st.st_size > max)
        return err_set(err, ERR_LIMIT, "a block of %lld bytes is over its bound",
                       (long long)st.st_size);
    size_t n = (size_t)st.st_size;
    char *p = malloc(n + 1);
    if (p == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    size_t got = 0;
    while (got < n) {
        ssize_t r = pread(fd, p + got, n - got, (off_t)got);
        if (r <= 0) {
            free(p);
            return err_sys(err, "reading a block");
        }
        got += (size_t)r;
    }
    p[n] = 0;
    *ret = p;
    *len = n;
    return 0;
}
