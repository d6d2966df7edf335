/* Packets between a front and a back over a socket of whole datagrams. */
#include "broker_stream.h"

#include "assertion.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BATCH = 8 }; /* packets in one turn of the loop */

struct broker_stream {
    int fd;
    const struct broker_stream_ops *ops;
    void *arg;
    struct event *rd, *wr, *dead;
    bool paused, freed, broken;
    unsigned depth;
    unsigned char packet[1 + BROKER_PACKET_MAX];
};

int broker_stream_pair(int fds[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds);
}

static void destroy(struct broker_stream *s)
{
    if (s->rd)
        event_free(s->rd);
    if (s->wr)
        event_free(s->wr);
    if (s->dead)
        event_free(s->dead);
    close(s->fd);
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
    event_active(s->dead, EV_TIMEOUT, 0);
}

static void on_dead(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct broker_stream *s = arg;
    s->depth++;
    s->ops->closed(s->arg);
    leave(s);
}

/* 1 a packet; 0 nothing there, or it is over. */
static int take(struct broker_stream *s)
{
    ssize_t n = recv(s->fd, s->packet, sizeof s->packet, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0 || (size_t)n > sizeof s->packet || s->packet[0] == 0 ||
        s->packet[0] >= BROKER_PACKETS ||
        s->ops->packet(s->arg, (enum broker_packet)s->packet[0],
                       (struct slice){(const char *)s->packet + 1, (size_t)n - 1}) < 0) {
        if (!s->freed)
            break_off(s);
        return 0;
    }
    return !s->freed && !s->paused && !s->broken;
}

static void on_readable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct broker_stream *s = arg;
    s->depth++;
    for (int i = 0; i < BATCH && take(s); i++)
        ;
    leave(s);
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
    if (s->rd == NULL || s->wr == NULL || s->dead == NULL || event_add(s->rd, NULL) < 0) {
        destroy(s);
        return NULL;
    }
    return s;
}

int broker_stream_send(struct broker_stream *s, enum broker_packet type, struct slice bytes)
{
    unsigned char tag = (unsigned char)type;
    struct iovec parts[2] = {{&tag, 1}, {(void *)(uintptr_t)bytes.p, bytes.n}};
    const struct msghdr m = {.msg_iov = parts, .msg_iovlen = bytes.n ? 2 : 1};
    ASSERT(bytes.n <= BROKER_PACKET_MAX);
    if (s->broken)
        return -1;
    ssize_t n = sendmsg(s->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0)
        return 1;
    if (errno == EAGAIN || errno == ENOBUFS) {
        event_add(s->wr, NULL);
        return 0;
    }
    break_off(s);
    return -1;
}

void broker_stream_pause(struct broker_stream *s, bool paused)
{
    if (s->broken || s->paused == paused)
        return;
    s->paused = paused;
    if (paused)
        event_del(s->rd);
    else
        event_add(s->rd, NULL);
}
