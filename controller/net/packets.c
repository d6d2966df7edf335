/* Passes on a batch at a time with a pause behind each, so that a sandbox whose packets are refused
 * in masses does not keep the builder busy. */
#include "packets.h"

#include <errno.h>
#include <event2/event.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DATAGRAM_MAX = 128 * 1024 };

struct packets {
    int log, out;
    struct event *readable;
    struct event *again;
    unsigned char room[DATAGRAM_MAX];
};

enum turn { MORE, NOTHING, OVER };

/* What cannot be passed on is dropped: the kernel numbers what it logs, and the gate sees the gap.
 */
static enum turn pass_on(struct packets *p)
{
    struct sockaddr_nl from = {0};
    socklen_t from_n = sizeof from;
    ssize_t n = recvfrom(p->log, p->room, sizeof p->room, MSG_DONTWAIT | MSG_TRUNC,
                         (struct sockaddr *)&from, &from_n);
    if (n < 0)
        return errno == EINTR || errno == ENOBUFS ? MORE : NOTHING;
    if (n == 0 || (size_t)n > sizeof p->room || from_n != sizeof from || from.nl_pid != 0)
        return MORE; /* nothing, or not the kernel's */
    if (send(p->out, p->room, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
        (errno == EPIPE || errno == ECONNRESET))
        return OVER;
    return MORE;
}

static void on_readable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    static const struct timeval pause = {0, PACKETS_PAUSE_MS * 1000};
    struct packets *p = arg;
    enum turn t = MORE;
    for (int i = 0; i < PACKETS_BATCH && t == MORE; i++)
        t = pass_on(p);
    if (t == NOTHING)
        return;
    event_del(p->readable);
    if (t == MORE)
        event_add(p->again, &pause);
}

static void on_again(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    const struct packets *p = arg;
    event_add(p->readable, NULL);
}

struct packets *packets_new(struct event_base *base, int log, int *ret, struct err *err)
{
    int pair[2] = {-1, -1};
    struct packets *p = calloc(1, sizeof *p);
    if (p == NULL ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
        err_sys(err, "a sandbox's packet log");
        free(p);
        close(log);
        return NULL;
    }
    p->log = log;
    p->out = pair[0];
    p->readable = event_new(base, log, EV_READ | EV_PERSIST, on_readable, p);
    p->again = evtimer_new(base, on_again, p);
    if (!p->readable || !p->again || event_add(p->readable, NULL) < 0 ||
        shutdown(p->out, SHUT_RD) < 0) {
        err_set(err, ERR_INTERNAL, "a sandbox's packet log cannot be watched");
        close(pair[1]);
        packets_free(p);
        return NULL;
    }
    *ret = pair[1];
    return p;
}

int packets_keep(struct packets **p, struct event_base *base, int log, struct err *err)
{
    int end = -1;
    if (*p != NULL) {
        close(log);
        return err_set(err, ERR_PARSE, "a second packet log");
    }
    *p = packets_new(base, log, &end, err);
    return *p ? end : -1;
}

void packets_free(struct packets *p)
{
    if (p == NULL)
        return;
    if (p->readable)
        event_free(p->readable);
    if (p->again)
        event_free(p->again);
    close(p->log);
    close(p->out);
    free(p);
}
