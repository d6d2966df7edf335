/* A port of all addresses is one of IPv4 and one of IPv6, as `localhost` is either; the container
 * has IPv4. */
#define _GNU_SOURCE 1
#include "network_ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "network_loop.h"
#include "network_relay.h"
#include "network_udp.h"

enum { BACKLOG = 128, FAMILIES = 2, AT_ONCE = 16 };

struct mapped {
    struct network_watch watch; /* of TCP; fd -1: none */
    struct network_udp *udp;    /* of UDP */
    int fd;                     /* and its socket, of which udp has a duplicate; -1: none */
    struct network_ports *owner;
    uint16_t container;
};

struct network_ports {
    network_place_fn *fn;
    void *arg;
    unsigned n;
    struct mapped at[];
};

static void on_connection(struct network_watch *w, uint32_t events)
{
    struct mapped *m = (struct mapped *)w;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(m->container)};
    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        struct network_hub *hub;
        unsigned char ip[4];
        int fd = network_loop_accept(w, SOCK_NONBLOCK);
        if (fd < 0)
            return;
        bool there = m->owner->fn(m->owner->arg, &hub, ip);
        if (there)
            memcpy(&to.sin_addr, ip, 4);
        network_relay_open(fd, there ? network_hub_socket(hub, NETWORK_SOCKET_STREAM, 0) : -1, &to);
    }
}

/* 0: this address has no such family here. */
static socklen_t address(const struct network_port *p, int family, struct sockaddr_storage *ret)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
    memset(ret, 0, sizeof *ret);
    ret->ss_family = (sa_family_t)family;
    if (family == AF_INET) {
        v4->sin_port = htons(p->host);
        return p->host_ip[0] && inet_pton(AF_INET, p->host_ip, &v4->sin_addr) != 1 ? 0 : sizeof *v4;
    }
    v6->sin6_port = htons(p->host);
    return p->host_ip[0] && inet_pton(AF_INET6, p->host_ip, &v6->sin6_addr) != 1 ? 0 : sizeof *v6;
}

static int listen_on(const struct network_port *p, int family, const struct sockaddr_storage *to,
                     socklen_t n, struct err *err)
{
    int on = 1, type = p->udp ? SOCK_DGRAM : SOCK_STREAM;
    int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool ok = fd >= 0 && (p->udp || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    if (ok && family == AF_INET6)
        ok = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0;
    if (ok && bind(fd, (const struct sockaddr *)to, n) == 0 && (p->udp || listen(fd, BACKLOG) == 0))
        return fd;
    err_sys(err, "port %u of the sandbox%s", p->host,
            errno == EACCES ? " (those from 1024 on can be mapped)" : "");
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return -1;
}

static void move(struct mapped *m)
{
    struct network_hub *hub;
    unsigned char ip[4];
    network_udp_close(m->udp);
    m->udp = NULL;
    int fd = m->fd >= 0 && m->owner->fn(m->owner->arg, &hub, ip) ? dup(m->fd) : -1;
    if (fd >= 0)
        m->udp = network_udp_open(fd, hub, ip, m->container);
}

static int open_one(struct network_ports *s, const struct network_port *p, int family,
                    struct err *err)
{
    struct sockaddr_storage to;
    socklen_t n = address(p, family, &to);
    if (n == 0)
        return 0;
    int fd = listen_on(p, family, &to, n, err);
    if (fd < 0) /* a host without IPv6 has none to map */
        return family == AF_INET6 && p->host_ip[0] == '\0' && errno != EADDRINUSE ? 0 : -1;
    struct mapped *m = &s->at[s->n++];
    *m = (struct mapped){
        .watch = {.fd = -1, .fn = on_connection}, .fd = -1, .owner = s, .container = p->container};
    if (p->udp) {
        m->fd = fd;
        move(m);
        return m->udp ? 0 : err_set(err, ERR_LIMIT, "no room for another port");
    }
    m->watch.fd = fd;
    return network_loop_want(&m->watch, EPOLLIN) < 0 ? err_sys(err, "epoll") : 0;
}

struct network_ports *network_ports_open(const struct network_port *ports, unsigned n,
                                         network_place_fn *fn, void *arg, struct err *err)
{
    static const int families[FAMILIES] = {AF_INET, AF_INET6};
    struct network_ports *s = calloc(1, sizeof *s + FAMILIES * (size_t)n * sizeof s->at[0]);
    if (s == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    s->fn = fn;
    s->arg = arg;
    for (unsigned i = 0; i < n; i++)
        for (int f = 0; f < FAMILIES; f++)
            if (open_one(s, &ports[i], families[f], err) < 0) {
                network_ports_close(s);
                return NULL;
            }
    return s;
}

void network_ports_moved(struct network_ports *s)
{
    for (unsigned i = 0; i < s->n; i++)
        if (s->at[i].fd >= 0)
            move(&s->at[i]);
}

void network_ports_close(struct network_ports *s)
{
    if (s == NULL)
        return;
    for (unsigned i = 0; i < s->n; i++) {
        network_loop_close(&s->at[i].watch);
        network_udp_close(s->at[i].udp);
        if (s->at[i].fd >= 0)
            close(s->at[i].fd);
    }
    free(s);
}
