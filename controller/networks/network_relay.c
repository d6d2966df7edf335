/* Two ends and two ways, each with a buffer of its own; an end that has nothing to do is not waited
 * for. */
#define _GNU_SOURCE 1
#include "network_relay.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "network_loop.h"

enum { ROOM = 32 * 1024 };

/* One end, and the way that begins there. */
struct end {
    struct network_watch watch; /* the first, as what is called is told of it alone */
    struct relay *relay;
    size_t at, n; /* what waits to be sent to the other end */
    bool ended;   /* nothing more comes from here */
    bool told;    /* and the other end was told */
    char bytes[ROOM];
};

struct relay {
    struct end ends[2];
    bool connected;
};

static unsigned relays, bound = NETWORK_RELAYS_MAX;

void network_relay_bound(uint64_t n)
{
    bound = n < NETWORK_RELAYS_MAX ? (unsigned)n : NETWORK_RELAYS_MAX;
}

static void reset(int fd)
{
    struct linger at_once = {.l_onoff = 1};
    if (fd < 0)
        return;
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

static void end_relay(struct relay *r, bool well)
{
    for (int i = 0; i < 2; i++) {
        if (!well)
            reset(r->ends[i].watch.fd);
        network_loop_close(&r->ends[i].watch);
    }
    free(r);
    relays--;
}

/* Reads what there is, if all that was read before is gone. -1: the connection is broken. */
static int take(struct end *e)
{
    if (e->ended || e->at < e->n)
        return 0;
    ssize_t k = recv(e->watch.fd, e->bytes, sizeof e->bytes, MSG_DONTWAIT);
    if (k < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    e->at = 0;
    e->n = (size_t)k;
    e->ended = k == 0;
    return 0;
}

static int give(struct end *e, struct end *to)
{
    while (e->at < e->n) {
        ssize_t k = send(to->watch.fd, e->bytes + e->at, e->n - e->at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (k < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        e->at += (size_t)k;
    }
    if (e->ended && !e->told) {
        e->told = true;
        return shutdown(to->watch.fd, SHUT_WR);
    }
    return 0;
}

static int want(struct relay *r)
{
    for (int i = 0; i < 2; i++) {
        struct end *e = &r->ends[i], *other = &r->ends[1 - i];
        uint32_t events = 0;
        if (r->connected && !e->ended && e->at == e->n)
            events |= EPOLLIN;
        if (r->connected ? other->at < other->n : i == 1)
            events |= EPOLLOUT;
        if (network_loop_want(&e->watch, events) < 0)
            return -1;
    }
    return 0;
}

static int turn(struct relay *r, struct end *e, uint32_t events)
{
    struct end *other = &r->ends[e == &r->ends[0]];
    int failed = 0;
    socklen_t n = sizeof failed;
    if (!r->connected) {
        if (getsockopt(e->watch.fd, SOL_SOCKET, SO_ERROR, &failed, &n) < 0 || failed)
            return -1;
        r->connected = true;
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && take(e) < 0)
        return -1;
    return give(e, other) < 0 || give(other, e) < 0 ? -1 : want(r);
}

static void on_event(struct network_watch *w, uint32_t events)
{
    struct end *e = (struct end *)w;
    struct relay *r = e->relay;
    if (turn(r, e, events) < 0)
        end_relay(r, false);
    else if (r->ends[0].told && r->ends[1].told)
        end_relay(r, true);
}

void network_relay_open(int from, int to, const struct sockaddr_in *address)
{
    struct relay *r = to >= 0 && relays < bound ? malloc(sizeof *r) : NULL;
    if (r == NULL) {
        reset(from);
        close(from);
        if (to >= 0)
            close(to);
        return;
    }
    relays++;
    r->connected = false;
    for (int i = 0; i < 2; i++) {
        struct end *e = &r->ends[i];
        e->watch = (struct network_watch){.fd = i ? to : from, .fn = on_event};
        e->relay = r;
        e->at = e->n = 0;
        e->ended = e->told = false;
    }
    if ((connect(to, (const struct sockaddr *)address, sizeof *address) < 0 &&
         errno != EINPROGRESS) ||
        want(r) < 0)
        end_relay(r, false);
}
