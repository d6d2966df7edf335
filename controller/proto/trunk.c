/* The trunk itself: channels and their credit, the line's buffers, what each turn reads and writes.
 * Both ends run it. */
#define _GNU_SOURCE 1
#include "trunk.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "assertion.h"
#include "wire.h"

enum {
    OUT_SOFT = 256 * 1024,  /* nothing more is taken from descriptors */
    OUT_HARD = 1024 * 1024, /* nor from the line; control frames of a fair peer never get there */
    OUT_MAX = 2 * 1024 * 1024,
    IN_MAX = 256 * 1024, /* more than the longest frame */
    PIPE_ROOM = 4096,    /* what a pipe takes that is said to be writable */
    PREFIX = 4,          /* of a packet that is held */
    LATE = 256,          /* as many commands as run at once */
};

enum state { FREE, OPEN, LEFT /* CLOSED was said, and is awaited */ };

struct channel {
    enum state state;
    enum trunk_kind kind;
    int fd;
    bool reads, writes; /* what comes from fd goes over the line; the reverse */
    bool connecting;
    bool sent_end, got_end, shut, got_closed;
    uint32_t credit; /* that we have */
    uint32_t room;   /* that the other has */
    uint32_t unsaid; /* to be given back to it */
    uint32_t number; /* of the message that it came with */
    size_t owed;     /* what has to go before that number's end is told */
    uint32_t asked;  /* datagrams to which nothing has come back; the host's */
    time_t used;
    struct buf in; /* for fd; packets with their length before each */
};

struct trunk {
    int line, control;
    const struct trunk_ops *ops;
    bool host;
    struct buf in, out;
    struct msg held; /* for control */
    bool holds;
    struct {
        bool used;
        uint32_t number;
        struct msg m;
    } late[LATE]; /* ends of commands whose last bytes are still on their way */
    struct channel channels[2][TRUNK_CHANNELS]; /* the guest's, the host's */
    struct channel *watched[TRUNK_POLLED];
};

static time_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* ---- frames out ---- */

static int put(struct trunk *t, enum trunk_type type, unsigned channel, const void *body, size_t n)
{
    const unsigned char head[TRUNK_HEAD] = {(unsigned char)type,           0,
                                            (unsigned char)(channel >> 8), (unsigned char)channel,
                                            (unsigned char)(n >> 24),      (unsigned char)(n >> 16),
                                            (unsigned char)(n >> 8),       (unsigned char)n};
    return buf_append(&t->out, head, sizeof head) < 0 || buf_append(&t->out, body, n) < 0 ? -1 : 0;
}

static unsigned number_of(const struct trunk *t, const struct channel *c)
{
    bool hosts = c >= t->channels[1];
    return (unsigned)(c - t->channels[hosts]) | (hosts ? TRUNK_BY_HOST : 0u);
}

static int put_credit(struct trunk *t, struct channel *c)
{
    uint32_t n = c->unsaid;
    const unsigned char body[4] = {(unsigned char)(n >> 24), (unsigned char)(n >> 16),
                                   (unsigned char)(n >> 8), (unsigned char)n};
    c->unsaid = 0;
    c->room += n;
    return put(t, TRUNK_CREDIT, number_of(t, c), body, sizeof body);
}

static void pack_address(const struct trunk_address *a, unsigned char to[19])
{
    to[0] = a->family;
    memcpy(to + 1, a->ip, 16);
    to[17] = (unsigned char)(a->port >> 8);
    to[18] = (unsigned char)a->port;
}

/* ---- channels ---- */

static bool packets(const struct channel *c)
{
    return c->kind == TRUNK_PACKETS || c->kind == TRUNK_UDP;
}

static struct channel *channel_new(struct trunk *t)
{
    for (unsigned i = 0; i < TRUNK_CHANNELS; i++)
        if (t->channels[t->host][i].state == FREE)
            return &t->channels[t->host][i];
    return NULL;
}

/* opener: this side. */
static void channel_begin(struct channel *c, enum trunk_kind kind, int fd, bool opener)
{
    *c = (struct channel){.state = OPEN,
                          .kind = kind,
                          .fd = fd,
                          .reads = kind != (opener ? TRUNK_OUT : TRUNK_IN),
                          .writes = kind != (opener ? TRUNK_IN : TRUNK_OUT),
                          .credit = TRUNK_WINDOW,
                          .room = TRUNK_WINDOW,
                          .used = now()};
    buf_init(&c->in, TRUNK_WINDOW);
}

static void channel_free(struct channel *c)
{
    if (c->state == OPEN && c->fd >= 0)
        close(c->fd);
    buf_free(&c->in);
    *c = (struct channel){.state = FREE, .fd = -1};
}

/* This side is done with it. A connection that was cut there is reset here. */
static int leave(struct trunk *t, struct channel *c)
{
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    if (c->kind == TRUNK_TCP && c->got_closed && !c->got_end)
        (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    int r = put(t, TRUNK_CLOSED, number_of(t, c), NULL, 0);
    if (c->got_closed) {
        channel_free(c);
    } else {
        close(c->fd);
        buf_free(&c->in);
        c->fd = -1;
        c->state = LEFT;
    }
    return r;
}

/* After something was written, or an end was heard. */
static int settle(struct trunk *t, struct channel *c)
{
    if (buf_len(&c->in) > 0 || c->connecting)
        return 0;
    if (c->got_closed)
        return leave(t, c);
    if (!c->got_end)
        return 0;
    if (!c->reads || packets(c) || c->sent_end)
        return leave(t, c);
    if (!c->shut)
        (void)shutdown(c->fd, SHUT_WR);
    c->shut = true;
    return 0;
}

/* ---- ends ---- */

static uint32_t number_at(const unsigned char *p, size_t n)
{
    return n < 4 ? 0 : (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static bool owes(const struct trunk *t, uint32_t number)
{
    for (unsigned i = 0; i < TRUNK_CHANNELS; i++) {
        const struct channel *c = &t->channels[1][i];
        if (c->state == OPEN && c->kind == TRUNK_OUT && c->number == number && c->owed > 0)
            return true;
    }
    return false;
}

/* What a command wrote before its end goes before it: what lies in its pipes inside, and what is
 * held for them here. */
static void reckon(struct trunk *t, uint32_t number)
{
    for (unsigned i = 0; i < TRUNK_CHANNELS; i++) {
        struct channel *c = &t->channels[1][i];
        int unread = 0;
        if (c->state != OPEN || c->kind != TRUNK_OUT || c->number != number)
            continue;
        if (!t->host && ioctl(c->fd, FIONREAD, &unread) < 0)
            unread = 0;
        c->owed = t->host ? buf_len(&c->in) : (size_t)unread;
    }
}

static void pay(struct channel *c, size_t n)
{
    c->owed -= n < c->owed ? n : c->owed;
}

/* What was under way is forgotten inside: its ends would be taken for those of later commands. */
static void drop_late(struct trunk *t)
{
    for (unsigned i = 0; i < LATE; i++) {
        if (t->late[i].used)
            msg_done(&t->late[i].m);
        t->late[i].used = false;
    }
}

/* 1: m is taken over, for later; -1: too much is late already. */
static int keep_late(struct trunk *t, struct msg *m)
{
    uint32_t number = number_at(buf_data(&m->body), buf_len(&m->body));
    if (m->type == W_INIT_RESET)
        drop_late(t);
    if (m->type != W_INIT_EXIT)
        return 0;
    reckon(t, number);
    if (!owes(t, number))
        return 0;
    for (unsigned i = 0; i < LATE; i++)
        if (!t->late[i].used) {
            t->late[i].used = true;
            t->late[i].number = number;
            t->late[i].m = *m;
            return 1;
        }
    return -1;
}

/* ---- from a descriptor to the line ---- */

static size_t cost(const struct channel *c, size_t n)
{
    return packets(c) ? n + PREFIX : n;
}

static bool may_read(const struct trunk *t, const struct channel *c)
{
    return c->reads && !c->sent_end && !c->connecting && !c->got_closed &&
           c->credit >= (packets(c) ? cost(c, TRUNK_CHUNK) : 1) && buf_len(&t->out) < OUT_SOFT;
}

static int end_reading(struct trunk *t, struct channel *c)
{
    c->sent_end = true;
    if (put(t, TRUNK_END, number_of(t, c), NULL, 0) < 0)
        return -1;
    return c->got_end ? settle(t, c) : 0;
}

static int carry_out(struct trunk *t, struct channel *c)
{
    unsigned char bytes[TRUNK_CHUNK];
    size_t most = c->credit < sizeof bytes && !packets(c) ? c->credit : sizeof bytes;
    ssize_t n = packets(c) ? recv(c->fd, bytes, most, MSG_DONTWAIT) : read(c->fd, bytes, most);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0)
        return c->kind == TRUNK_UDP ? 0 : leave(t, c);
    c->used = now();
    if (n == 0 && packets(c))
        return c->kind == TRUNK_UDP ? 0 : leave(t, c);
    if (n == 0)
        c->owed = 0;
    if (n == 0)
        return end_reading(t, c);
    c->credit -= (uint32_t)cost(c, (size_t)n);
    c->asked -= c->asked > 0;
    pay(c, (size_t)n);
    return put(t, TRUNK_DATA, number_of(t, c), bytes, (size_t)n);
}

/* ---- from the line to a descriptor ---- */

static ssize_t write_some(struct channel *c)
{
    size_t n = buf_len(&c->in);
    const unsigned char *p = buf_data(&c->in);
    if (packets(c)) {
        uint32_t one;
        memcpy(&one, p, PREFIX);
        ssize_t sent = send(c->fd, p + PREFIX, one, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && c->kind == TRUNK_UDP && errno != EAGAIN)
            sent = 0; /* lost, as datagrams are */
        return sent < 0 ? -1 : (ssize_t)one + PREFIX;
    }
    if (c->kind == TRUNK_BOTH || c->kind == TRUNK_TCP)
        return send(c->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    return write(c->fd, p, n < PIPE_ROOM ? n : PIPE_ROOM);
}

static int carry_in(struct trunk *t, struct channel *c)
{
    ssize_t n = write_some(c);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0)
        return leave(t, c);
    c->used = now();
    c->asked += t->host && c->kind == TRUNK_UDP;
    buf_drain(&c->in, (size_t)n);
    pay(c, (size_t)n);
    c->unsaid += (uint32_t)n;
    if (c->unsaid >= TRUNK_WINDOW / 2 && !c->got_end && !c->got_closed && put_credit(t, c) < 0)
        return -1;
    return settle(t, c);
}

static int on_connected(struct trunk *t, struct channel *c)
{
    int e = 0;
    socklen_t n = sizeof e;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &e, &n) < 0 || e != 0)
        return leave(t, c);
    c->connecting = false;
    return settle(t, c);
}

/* ---- messages ---- */

static int send_held(struct trunk *t)
{
    int r = msg_send(t->control, &t->held);
    if (r > 0)
        return 0;
    t->holds = false;
    msg_done(&t->held);
    return r;
}

/* The inner end of what the other side opened; ours goes into c. */
static int make_inner(struct channel *c, enum trunk_kind kind)
{
    int p[2];
    if (kind == TRUNK_NULL)
        return open("/dev/null", O_RDWR | O_CLOEXEC);
    bool pipes = kind == TRUNK_IN || kind == TRUNK_OUT;
    if (pipes ? pipe2(p, O_CLOEXEC) < 0
              : socketpair(AF_UNIX,
                           (kind == TRUNK_BOTH ? SOCK_STREAM : SOCK_SEQPACKET) | SOCK_CLOEXEC, 0,
                           p) < 0)
        return -1;
    int ours = kind == TRUNK_IN;
    if (fcntl(p[ours], F_SETFL, O_NONBLOCK | (kind == TRUNK_IN ? O_WRONLY : 0)) < 0) {
        close(p[0]);
        close(p[1]);
        return -1;
    }
    channel_begin(c, kind, p[ours], false);
    return p[!ours];
}

static int add_inner(struct trunk *t, struct msg *m, const unsigned char *p, uint32_t number)
{
    unsigned channel = (unsigned)p[1] << 8 | p[2], at = channel & ~(unsigned)TRUNK_BY_HOST;
    enum trunk_kind kind = (enum trunk_kind)p[0];
    if (kind < TRUNK_NULL || kind > TRUNK_PACKETS || at >= TRUNK_CHANNELS ||
        (kind == TRUNK_NULL ? channel != 0 : channel == at || t->channels[1][at].state != FREE))
        return -1;
    int fd = make_inner(&t->channels[1][at], kind);
    if (fd < 0)
        return -1;
    if (kind != TRUNK_NULL)
        t->channels[1][at].number = number;
    msg_put_fd(m, fd);
    return 0;
}

static int on_message(struct trunk *t, struct slice body)
{
    const unsigned char *p = (const unsigned char *)body.p;
    struct msg *m = &t->held;
    unsigned n = p[2];
    if (n > (t->host ? 0 : IPC_FDS_MAX) || body.n - 3 < 3 * n || t->holds)
        return -1;
    msg_init(m, (uint16_t)(p[0] << 8 | p[1]));
    int r = 0;
    for (unsigned i = 0; i < n && r == 0; i++)
        r = add_inner(t, m, p + 3 + 3 * i, number_at(p + 3 + 3 * n, body.n - 3 - 3 * n));
    if (r < 0 || buf_append(&m->body, p + 3 + 3 * n, body.n - 3 - 3 * n) < 0 || m->bad) {
        msg_done(m);
        return -1;
    }
    r = keep_late(t, m);
    if (r != 0) {
        if (r < 0)
            msg_done(m);
        return r < 0 ? -1 : 0;
    }
    t->holds = true;
    return send_held(t);
}

/* Which way the bytes of a descriptor go: of one for both, by where it stands in the message. */
static enum trunk_kind kind_of(int fd, uint16_t type, unsigned at)
{
    struct stat st;
    int how = fcntl(fd, F_GETFL), socket_type = 0;
    socklen_t n = sizeof socket_type;
    if (how < 0 || fstat(fd, &st) < 0)
        return TRUNK_KINDS;
    if (S_ISCHR(st.st_mode))
        return TRUNK_NULL;
    if (S_ISSOCK(st.st_mode) && getsockopt(fd, SOL_SOCKET, SO_TYPE, &socket_type, &n) == 0)
        return socket_type == SOCK_SEQPACKET ? TRUNK_PACKETS : TRUNK_BOTH;
    if ((how & O_ACCMODE) != O_RDWR)
        return (how & O_ACCMODE) == O_RDONLY ? TRUNK_IN : TRUNK_OUT;
    return type == W_INIT_EXEC && (at == 1 || at == 2) ? TRUNK_OUT : TRUNK_IN;
}

static int move_fds(struct trunk *t, struct msg *m, unsigned char *to)
{
    for (unsigned i = 0; i < m->nfds; i++) {
        enum trunk_kind kind = kind_of(m->fds[i], m->type, i);
        struct channel *c = kind == TRUNK_NULL ? NULL : channel_new(t);
        if (kind == TRUNK_KINDS || (kind != TRUNK_NULL && c == NULL))
            return -1;
        unsigned channel = c ? number_of(t, c) : 0;
        to[3 * i] = (unsigned char)kind;
        to[3 * i + 1] = (unsigned char)(channel >> 8);
        to[3 * i + 2] = (unsigned char)channel;
        if (c == NULL)
            continue;
        channel_begin(c, kind, m->fds[i], true);
        c->number = number_at(buf_data(&m->body), buf_len(&m->body));
        m->fds[i] = -1;
    }
    return 0;
}

/* There is no room for its descriptors: it is answered as if its kernel had said so. */
static int answer_full(struct trunk *t, struct msg *m)
{
    uint32_t number = 0;
    if (t->holds || msg_get_u32(m, &number) < 0)
        return -1;
    msg_init(&t->held, W_INIT_EXIT);
    msg_put_u32(&t->held, number);
    msg_put_u32(&t->held, m->type == W_INIT_EXEC ? 125 : EMFILE);
    msg_put_str(&t->held, "too many descriptors are open in this sandbox");
    t->holds = true;
    return send_held(t);
}

static unsigned free_channels(const struct trunk *t)
{
    unsigned n = 0;
    for (unsigned i = 0; i < TRUNK_CHANNELS; i++)
        n += t->channels[t->host][i].state == FREE;
    return n;
}

static int forward_now(struct trunk *t, struct msg *m)
{
    unsigned char head[3 + 3 * IPC_FDS_MAX] = {(unsigned char)(m->type >> 8),
                                               (unsigned char)m->type, (unsigned char)m->nfds};
    size_t n = 3 + 3 * (size_t)m->nfds, fields = buf_len(&m->body);
    if (m->lost || (!t->host && m->nfds > 0))
        return -1;
    if (free_channels(t) < m->nfds)
        return answer_full(t, m);
    struct buf body;
    buf_init(&body, sizeof head + IPC_MSG_MAX);
    int r = move_fds(t, m, head + 3) < 0 || buf_append(&body, head, n) < 0 ||
                    buf_append(&body, buf_data(&m->body), fields) < 0
                ? -1
                : put(t, TRUNK_MESSAGE, 0, buf_data(&body), n + fields);
    buf_free(&body);
    return r;
}

static int forward(struct trunk *t, struct msg *m)
{
    int r = t->host ? 0 : keep_late(t, m);
    if (r == 0)
        r = forward_now(t, m);
    else if (r > 0)
        return 0;
    msg_done(m);
    return r;
}

/* Ends whose last bytes have gone. */
static int tell_late(struct trunk *t)
{
    for (unsigned i = 0; i < LATE && !t->holds; i++) {
        if (!t->late[i].used || owes(t, t->late[i].number))
            continue;
        struct msg m = t->late[i].m;
        t->late[i].used = false;
        if (t->host) {
            t->held = m;
            t->holds = true;
            if (send_held(t) < 0)
                return -1;
            continue;
        }
        int r = forward_now(t, &m);
        msg_done(&m);
        if (r < 0)
            return -1;
    }
    return 0;
}

static int on_control(struct trunk *t)
{
    struct msg m;
    int got = msg_recv(t->control, &m);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got <= 0)
        return -1;
    return forward(t, &m);
}

/* ---- frames in ---- */

static struct channel *channel_at(struct trunk *t, unsigned channel)
{
    return &t->channels[!!(channel & TRUNK_BY_HOST)][channel & ~(unsigned)TRUNK_BY_HOST];
}

static int on_open(struct trunk *t, struct channel *c, const struct trunk_frame *f)
{
    if (!t->host || f->channel & TRUNK_BY_HOST || c->state != FREE)
        return -1;
    int fd = t->ops->open(f->kind, &f->to);
    channel_begin(c, f->kind, fd, false);
    c->connecting = f->kind == TRUNK_TCP;
    return fd < 0 ? leave(t, c) : 0;
}

static int on_data(struct trunk *t, struct channel *c, struct slice s)
{
    uint32_t n = (uint32_t)s.n;
    (void)t;
    if (c->state == LEFT)
        return 0;
    if (!c->writes || c->got_end || c->got_closed || cost(c, n) > c->room)
        return -1;
    c->room -= (uint32_t)cost(c, n);
    if (packets(c) && buf_append(&c->in, &n, PREFIX) < 0)
        return -1;
    return buf_append(&c->in, s.p, s.n);
}

static int on_end(struct trunk *t, struct channel *c)
{
    if (c->state == LEFT)
        return 0;
    if (!c->writes || c->got_end || c->got_closed)
        return -1;
    c->got_end = true;
    return settle(t, c);
}

static int on_credit(struct channel *c, uint32_t n)
{
    if (c->state == LEFT)
        return 0;
    if (!c->reads || c->credit + n > TRUNK_WINDOW)
        return -1;
    c->credit += n;
    return 0;
}

static int on_closed(struct trunk *t, struct channel *c)
{
    if (c->got_closed)
        return -1;
    if (c->state == LEFT) {
        channel_free(c);
        return 0;
    }
    c->got_closed = true;
    return settle(t, c);
}

static int on_frame(struct trunk *t, const struct trunk_frame *f)
{
    struct channel *c = channel_at(t, f->channel);
    if (f->type == TRUNK_MESSAGE)
        return on_message(t, f->body);
    if (f->type == TRUNK_REFUSED) {
        if (t->host)
            t->ops->refused(&f->to);
        return t->host ? 0 : -1;
    }
    if (f->type == TRUNK_OPEN)
        return on_open(t, c, f);
    if (c->state == FREE)
        return -1;
    switch (f->type) {
    case TRUNK_DATA:
        return on_data(t, c, f->body);
    case TRUNK_END:
        return on_end(t, c);
    case TRUNK_CREDIT:
        return on_credit(c, f->credit);
    case TRUNK_CLOSED:
        return on_closed(t, c);
    default:
        return -1;
    }
}

/* Whatever is whole; nothing behind a message that waits, nor while much is to be said. */
static int take_frames(struct trunk *t)
{
    struct trunk_frame f;
    while (!t->holds && buf_len(&t->out) < OUT_HARD) {
        ssize_t n = trunk_frame_read(buf_slice(&t->in), &f);
        if (n <= 0)
            return (int)n;
        if (on_frame(t, &f) < 0)
            return -1;
        buf_drain(&t->in, (size_t)n);
    }
    return 0;
}

int trunk_take(struct trunk *t, struct slice bytes)
{
    return buf_append_slice(&t->in, bytes) < 0 ? -1 : take_frames(t);
}

/* ---- the line ---- */

static int read_line(struct trunk *t)
{
    unsigned char *p = buf_reserve(&t->in, TRUNK_CHUNK);
    if (p == NULL)
        return 0; /* frames wait there */
    ssize_t n = read(t->line, p, TRUNK_CHUNK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return -1;
    buf_commit(&t->in, (size_t)n);
    return 0;
}

static int write_line(struct trunk *t)
{
    while (buf_len(&t->out) > 0) {
        size_t most = buf_len(&t->out) < TRUNK_CHUNK ? buf_len(&t->out) : TRUNK_CHUNK;
        ssize_t n = write(t->line, buf_data(&t->out), most);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        buf_drain(&t->out, (size_t)n);
    }
    buf_shrink(&t->out);
    return 0;
}

/* ---- turns ---- */

/* Only what can be dealt with, or a descriptor that has ended would be told of for ever. */
static short events_of(const struct trunk *t, const struct channel *c)
{
    if (c->connecting)
        return POLLOUT;
    return (short)((may_read(t, c) ? POLLIN : 0) | (buf_len(&c->in) > 0 ? POLLOUT : 0));
}

static bool watches(const struct channel *c, short events)
{
    return events || (!c->reads && c->writes); /* whose reader may go */
}

unsigned trunk_watch(struct trunk *t, struct pollfd p[TRUNK_POLLED])
{
    unsigned n = 2;
    bool takes = !t->holds && buf_len(&t->out) < OUT_HARD && buf_room(&t->in) >= TRUNK_CHUNK;
    p[0] = (struct pollfd){
        .fd = t->line, .events = (short)((takes ? POLLIN : 0) | (buf_len(&t->out) ? POLLOUT : 0))};
    p[1] =
        (struct pollfd){.fd = t->control,
                        .events = (short)((t->holds ? POLLOUT : 0) |
                                          (!t->holds && buf_len(&t->out) < OUT_SOFT ? POLLIN : 0))};
    for (unsigned i = 0; i < 2 * TRUNK_CHANNELS; i++) {
        struct channel *c = &t->channels[i / TRUNK_CHANNELS][i % TRUNK_CHANNELS];
        short events = c->state == OPEN ? events_of(t, c) : 0;
        if (c->state != OPEN || !watches(c, events))
            continue;
        t->watched[n] = c;
        p[n++] = (struct pollfd){.fd = c->fd, .events = events};
    }
    return n;
}

static int turn_channel(struct trunk *t, struct channel *c, const struct pollfd *p)
{
    short r = p->revents;
    if (c->state != OPEN || c->fd != p->fd || r == 0)
        return 0;
    if (c->connecting)
        return on_connected(t, c);
    if (!c->reads && r & POLLERR)
        return leave(t, c);
    if (r & (POLLOUT | POLLERR) && buf_len(&c->in) > 0 && carry_in(t, c) < 0)
        return -1;
    return c->state == OPEN && r & (POLLIN | POLLHUP | POLLERR) && may_read(t, c) ? carry_out(t, c)
                                                                                  : 0;
}

/* The host's end sooner where all is answered: a name's question has a channel of its own. */
static time_t quiet_for(const struct trunk *t, const struct channel *c)
{
    return t->host && c->asked == 0 ? TRUNK_ANSWERED_S : TRUNK_QUIET_S;
}

static int end_quiet(struct trunk *t)
{
    time_t at = now();
    for (unsigned i = 0; i < 2 * TRUNK_CHANNELS; i++) {
        struct channel *c = &t->channels[i / TRUNK_CHANNELS][i % TRUNK_CHANNELS];
        if (c->state == OPEN && c->kind == TRUNK_UDP && at - c->used >= quiet_for(t, c) &&
            leave(t, c) < 0)
            return -1;
    }
    return 0;
}

int trunk_turn(struct trunk *t, const struct pollfd *p, unsigned n)
{
    if (p[0].revents & (POLLIN | POLLHUP | POLLERR) && read_line(t) < 0)
        return -1;
    if (t->holds && p[1].revents & (POLLOUT | POLLHUP | POLLERR) && send_held(t) < 0)
        return -1;
    if (take_frames(t) < 0)
        return -1;
    if (!t->holds && p[1].revents & (POLLIN | POLLHUP | POLLERR) && on_control(t) < 0)
        return -1;
    for (unsigned i = 2; i < n; i++)
        if (turn_channel(t, t->watched[i], &p[i]) < 0)
            return -1;
    return tell_late(t) < 0 || end_quiet(t) < 0 ? -1 : write_line(t);
}

/* ---- its life ---- */

struct trunk *trunk_new(int line, int control, const struct trunk_ops *ops)
{
    struct trunk *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->line = line;
    t->control = control;
    t->ops = ops;
    t->host = ops != NULL;
    buf_init(&t->in, IN_MAX);
    buf_init(&t->out, OUT_MAX);
    return t;
}

void trunk_free(struct trunk *t)
{
    if (t == NULL)
        return;
    for (unsigned i = 0; i < 2 * TRUNK_CHANNELS; i++)
        channel_free(&t->channels[i / TRUNK_CHANNELS][i % TRUNK_CHANNELS]);
    if (t->holds)
        msg_done(&t->held);
    drop_late(t);
    buf_free(&t->in);
    buf_free(&t->out);
    close(t->line);
    close(t->control);
    free(t);
}

static struct channel *open_channel(struct trunk *t, enum trunk_kind kind, int fd,
                                    const struct trunk_address *to)
{
    unsigned char body[1 + 19] = {(unsigned char)kind};
    struct channel *c = channel_new(t);
    pack_address(to, body + 1);
    if (c == NULL || buf_len(&t->out) >= OUT_HARD ||
        put(t, TRUNK_OPEN, number_of(t, c), body, sizeof body) < 0) {
        close(fd);
        return NULL;
    }
    channel_begin(c, kind, fd, true);
    return c;
}

int trunk_open(struct trunk *t, enum trunk_kind kind, int fd, const struct trunk_address *to)
{
    return open_channel(t, kind, fd, to) ? 0 : -1;
}

/* Questions leave room for connections. */
static bool asks_too_much(const struct trunk *t)
{
    unsigned n = 0;
    for (unsigned i = 0; i < TRUNK_CHANNELS; i++)
        n += t->channels[t->host][i].state != FREE && t->channels[t->host][i].kind == TRUNK_UDP;
    return n >= TRUNK_ASKING;
}

int trunk_ask(struct trunk *t, int fd, const struct trunk_address *to, struct slice first)
{
    if (asks_too_much(t)) { /* it is asked again, as datagrams are lost */
        close(fd);
        return -1;
    }
    struct channel *c = open_channel(t, TRUNK_UDP, fd, to);
    if (c == NULL || first.n == 0 || first.n > TRUNK_CHUNK)
        return -1;
    c->credit -= (uint32_t)cost(c, first.n);
    return put(t, TRUNK_DATA, number_of(t, c), first.p, first.n);
}

void trunk_refused(struct trunk *t, const struct trunk_address *to)
{
    unsigned char body[19];
    pack_address(to, body);
    if (buf_len(&t->out) < OUT_SOFT)
        (void)put(t, TRUNK_REFUSED, 0, body, sizeof body);
}
