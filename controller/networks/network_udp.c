/* A datagram goes to the container by its client's socket, and what comes there goes back. */
#define _GNU_SOURCE 1
#include "network_udp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "network_loop.h"

enum { DATAGRAM = 65535, AT_ONCE = 32 };

struct flow {
    struct network_watch watch; /* fd -1: there is none */
    struct network_udp *udp;
    struct sockaddr_storage client;
    socklen_t n;
    uint64_t used;
};

struct network_udp {
    struct network_watch watch;
    struct network_hub *hub;
    struct sockaddr_in to;
    uint64_t turn;
    struct flow flows[NETWORK_FLOWS_MAX];
};

static unsigned char datagram[DATAGRAM];

static void on_answer(struct network_watch *w, uint32_t events)
{
    struct flow *f = (struct flow *)w;
    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        ssize_t n = recv(w->fd, datagram, sizeof datagram, MSG_DONTWAIT);
        if (n < 0)
            return;
        f->used = ++f->udp->turn;
        (void)sendto(f->udp->watch.fd, datagram, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL,
                     (struct sockaddr *)&f->client, f->n);
    }
}

static bool begin(struct flow *f, struct network_udp *u)
{
    network_loop_close(&f->watch);
    f->watch = (struct network_watch){.fd = network_hub_socket(u->hub, NETWORK_SOCKET_DATAGRAM, 0),
                                      .fn = on_answer};
    if (f->watch.fd >= 0 && connect(f->watch.fd, (struct sockaddr *)&u->to, sizeof u->to) == 0 &&
        network_loop_want(&f->watch, EPOLLIN) == 0)
        return true;
    network_loop_close(&f->watch);
    return false;
}

/* The client's flow, or a new one in the place of the oldest. */
static struct flow *flow_of(struct network_udp *u, const struct sockaddr_storage *client,
                            socklen_t n)
{
    struct flow *oldest = &u->flows[0];
    for (int i = 0; i < NETWORK_FLOWS_MAX; i++) {
        struct flow *f = &u->flows[i];
        if (f->watch.fd >= 0 && f->n == n && memcmp(&f->client, client, n) == 0)
            return f;
        if (f->used < oldest->used)
            oldest = f;
    }
    oldest->used = 0;
    if (!begin(oldest, u))
        return NULL;
    oldest->udp = u;
    oldest->client = *client;
    oldest->n = n;
    return oldest;
}

static void on_datagram(struct network_watch *w, uint32_t events)
{
    struct network_udp *u = (struct network_udp *)w;
    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        struct sockaddr_storage client = {0};
        socklen_t len = sizeof client;
        ssize_t n = recvfrom(w->fd, datagram, sizeof datagram, MSG_DONTWAIT,
                             (struct sockaddr *)&client, &len);
        struct flow *f = n < 0 ? NULL : flow_of(u, &client, len);
        if (n < 0)
            return;
        if (f == NULL)
            continue;
        f->used = ++u->turn;
        (void)send(f->watch.fd, datagram, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

struct network_udp *network_udp_open(int fd, struct network_hub *hub, const unsigned char ip[4],
                                     uint16_t port)
{
    struct network_udp *u = calloc(1, sizeof *u);
    struct network_watch w = {.fd = fd, .fn = on_datagram};
    if (u == NULL) {
        network_loop_close(&w);
        return NULL;
    }
    u->watch = w;
    u->hub = hub;
    u->to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    memcpy(&u->to.sin_addr, ip, 4);
    for (int i = 0; i < NETWORK_FLOWS_MAX; i++)
        u->flows[i].watch.fd = -1;
    if (network_loop_want(&u->watch, EPOLLIN) == 0)
        return u;
    network_udp_close(u);
    return NULL;
}

void network_udp_close(struct network_udp *u)
{
    if (u == NULL)
        return;
    for (int i = 0; i < NETWORK_FLOWS_MAX; i++)
        network_loop_close(&u->flows[i].watch);
    network_loop_close(&u->watch);
    free(u);
}
