/* Packets between a front and a back over a socket of whole datagrams. */
#include "broker_stream.h"

#include "assertion.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* BATCH: packets in one turn of the loop. Behind one that is not half full there is mostly none,
 * and to ask is a call of the kernel's; the loop asks anyway. SMALL_MAX: in one piece a short
 * packet is the cheaper call. */
enum {
    BATCH = 8,
    SMALL_MAX = 512,
    KEPT_MAX = 4 << 20 /* more bytes than a socket holds: who says so is not gone */
};

/* A packet of a far end that is gone, while its reader still pauses. */
struct kept_packet {
    STAILQ_ENTRY(kept_packet) link;
    size_t n;
    unsigned char bytes[];
};

struct broker_stream {
    int fd;
    const struct broker_stream_ops *ops;
    void *arg;
    struct event *rd, *wr, *dead;
    struct event *gone; /* while it is paused: the far end closes */
    bool paused, held, freed, broken;
    bool ended; /* the far end is gone, having said its last word; what it said is in kept */
    STAILQ_HEAD(, kept_packet) kept; /* at most what the socket held */
    unsigned depth;
    unsigned char packet[1 + BROKER_PACKET_MAX];
};

int broker_stream_pair(int fds[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds);
}

static void drop_kept(struct broker_stream *s)
{
    struct kept_packet *k;
    while ((k = STAILQ_FIRST(&s->kept)) != NULL) {
        STAILQ_REMOVE_HEAD(&s->kept, link);
        explicit_bzero(k->bytes, k->n);
        free(k);
    }
}

static void destroy(struct broker_stream *s)
{
    struct event *all[] = {s->rd, s->wr, s->dead, s->gone};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i])
            event_free(all[i]);
    drop_kept(s);
    close(s->fd);
    explicit_bzero(s->packet, sizeof s->packet);
    free(s);
}

void broker_stream_free(struct broker_stream *s)
{
    if (s == NULL)
        return;
    s->freed = true;
    if (s->depth == 0)
        destroy(s);
}

static void leave(struct broker_stream *s)
{
    if (--s->depth == 0 && s->freed)
        destroy(s);
}

/* From the loop, never from within a call of its owner's. */
static void break_off(struct broker_stream *s)
{
    if (s->broken)
        return;
    s->broken = true;
    event_del(s->rd);
    event_del(s->wr);
    event_del(s->gone);
    event_active(s->dead, EV_TIMEOUT, 0);
}

bool broker_stream_send_buf(struct broker_stream *s, struct buf *from)
{
    while (buf_len(from) > 0) {
        struct slice some = buf_slice(from);
        if (some.n > BROKER_PACKET_MAX)
            some.n = BROKER_PACKET_MAX;
        if (broker_stream_send(s, BROKER_DATA, some) <= 0)
            return false;
        buf_drain(from, some.n);
    }
    buf_shrink(from);
    return true;
}

void broker_stream_refuse(struct broker_stream *s, const char *code, const char *text)
{
    struct buf b;
    buf_init(&b, 1024);
    if (buf_append(&b, code, strlen(code) + 1) == 0 && buf_printf(&b, "%.600s", text) == 0)
        (void)broker_stream_send(s, BROKER_REFUSED, buf_slice(&b));
    buf_free(&b);
}

void broker_stream_break(struct broker_stream *s)
{
    break_off(s);
}

static void on_dead(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct broker_stream *s = arg;
    s->depth++;
    s->ops->closed(s->arg);
    leave(s);
}

/* False: it is over, or its reader pauses. */
static bool hand_on(struct broker_stream *s, const unsigned char *packet, size_t n)
{
    if (packet[0] == 0 || packet[0] >= BROKER_PACKETS ||
        s->ops->packet(s->arg, (enum broker_packet)packet[0],
                       (struct slice){(const char *)packet + 1, n - 1}) < 0) {
        if (!s->freed)
            break_off(s);
        return false;
    }
    return !s->freed && !s->paused && !s->broken;
}

/* A packet's length. 0: nothing there; -1: it is over. */
static ssize_t take(struct broker_stream *s)
{
    ssize_t n = recv(s->fd, s->packet, sizeof s->packet, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && errno == ECONNRESET) /* it had not read all; said once, before its packets */
        n = recv(s->fd, s->packet, sizeof s->packet, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return n > 0 && (size_t)n <= sizeof s->packet ? n : -1;
}

/* What a far end said before it went, as far as its reader takes it; then it is over. */
static void hand_on_kept(struct broker_stream *s)
{
    bool more = !s->paused;
    while (more && !STAILQ_EMPTY(&s->kept)) {
        struct kept_packet *k = STAILQ_FIRST(&s->kept);
        STAILQ_REMOVE_HEAD(&s->kept, link);
        more = hand_on(s, k->bytes, k->n);
        explicit_bzero(k->bytes, k->n);
        free(k);
    }
    if (more)
        break_off(s);
}

static void on_readable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct broker_stream *s = arg;
    bool more = true;
    s->depth++;
    if (s->ended)
        hand_on_kept(s);
    for (int i = 0; i < BATCH && more && !s->ended; i++) {
        ssize_t n = take(s);
        more = n > 0 && hand_on(s, s->packet, (size_t)n) && n > BROKER_PACKET_MAX / 2;
        if (n < 0)
            break_off(s);
    }
    leave(s);
}

/* The far end is gone, and its reader pauses, or we could not write. If its last word is there, all
 * that it said is kept for the reader; else it died, and so does this, whatever is left. */
static void on_gone(struct broker_stream *s)
{
    bool last = false, kept = true;
    size_t sum = 0;
    ssize_t n;
    if (s->ended || s->broken)
        return;
    if (s->held) {
        break_off(s);
        return;
    }
    while (kept && (n = take(s)) > 0) {
        sum += sizeof(struct kept_packet) + (size_t)n;
        struct kept_packet *k = sum <= KEPT_MAX ? malloc(sizeof *k + (size_t)n) : NULL;
        kept = k != NULL;
        if (k == NULL)
            break;
        k->n = (size_t)n;
        memcpy(k->bytes, s->packet, k->n);
        STAILQ_INSERT_TAIL(&s->kept, k, link);
        last = last || k->bytes[0] == BROKER_END || k->bytes[0] == BROKER_REFUSED;
    }
    if (!last || !kept) {
        break_off(s);
        return;
    }
    s->ended = true;
    event_del(s->rd);
    event_del(s->wr);
    event_del(s->gone);
    if (!s->paused)
        event_active(s->rd, EV_READ, 0);
}

static void on_closing(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    on_gone(arg);
}

static void on_writable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct broker_stream *s = arg;
    event_del(s->wr);
    s->depth++;
    s->ops->writable(s->arg);
    leave(s);
}

struct broker_stream *broker_stream_new(struct event_base *base, int fd,
                                        const struct broker_stream_ops *ops, void *arg)
{
    struct broker_stream *s = calloc(1, sizeof *s);
    if (s == NULL) {
        close(fd);
        return NULL;
    }
    s->fd = fd;
    s->ops = ops;
    s->arg = arg;
    s->rd = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, s);
    s->wr = event_new(base, fd, EV_WRITE | EV_PERSIST, on_writable, s);
    s->dead = event_new(base, -1, 0, on_dead, s);
    s->gone = event_new(base, fd, EV_CLOSED, on_closing, s);
    STAILQ_INIT(&s->kept);
    if (!s->rd || !s->wr || !s->dead || !s->gone || event_add(s->rd, NULL) < 0) {
        destroy(s);
        return NULL;
    }
    return s;
}

int broker_stream_send(struct broker_stream *s, enum broker_packet type, struct slice bytes)
{
    unsigned char tag = (unsigned char)type, small[SMALL_MAX];
    struct iovec parts[2] = {{&tag, 1}, {(void *)(uintptr_t)bytes.p, bytes.n}};
    const struct msghdr m = {.msg_iov = parts, .msg_iovlen = bytes.n ? 2 : 1};
    ssize_t n;
    ASSERT(bytes.n <= BROKER_PACKET_MAX);
    if (s->broken || s->ended)
        return -1;
    if (bytes.n < SMALL_MAX) {
        small[0] = tag;
        if (bytes.n)
            memcpy(small + 1, bytes.p, bytes.n);
        n = send(s->fd, small, 1 + bytes.n, MSG_NOSIGNAL | MSG_DONTWAIT);
        explicit_bzero(small, 1 + bytes.n);
    } else {
        n = sendmsg(s->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    if (n >= 0)
        return 1;
    if (errno == EAGAIN || errno == ENOBUFS) {
        event_add(s->wr, NULL);
        return 0;
    }
    on_gone(s);
    return -1;
}

void broker_stream_hold(struct broker_stream *s, bool held)
{
    s->held = held;
}

void broker_stream_pause(struct broker_stream *s, bool paused)
{
    if (s->broken || s->paused == paused)
        return;
    s->paused = paused;
    if (s->ended) {
        if (!paused)
            event_active(s->rd, EV_READ, 0);
    } else if (paused) {
        event_del(s->rd);
        event_add(s->gone, NULL);
    } else {
        event_del(s->gone);
        event_add(s->rd, NULL);
    }
}
