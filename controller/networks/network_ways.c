/* A listener for each port. Which ports rules name, stands in a file that Durward wrote; a few that
 * everybody knows are taken besides, so that the gate says, and records, that they are refused. */
#define _GNU_SOURCE 1
#include "network_ways.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "network_loop.h"
#include "network_program.h"
#include "network_relay.h"
#include "synthetic.h"

enum { DNS = 53, AT_ONCE = 16, LISTENS = 0x0a };

static const uint16_t known[] = {
    DNS,  80,   443,  21,   22,   23,   25,   110,  143,  389,  465,  587,  636,  853,   873,
    993,  995,  1080, 1433, 1521, 2375, 2376, 3000, 3128, 3306, 4317, 4318, 4443, 5000,  5432,
    5671, 5672, 6379, 6443, 8000, 8080, 8081, 8443, 8888, 9000, 9092, 9200, 9418, 11211, 27017,
};

struct way {
    struct network_watch watch;
    struct network_ways *owner;
    uint16_t port;
    bool seen; /* of a service: it listens still */
};

struct network_ways {
    struct network_hub *hub;
    unsigned char gateway[4];
    struct way out[NETWORK_WAYS_MAX], services[NETWORK_SERVICES_MAX];
    unsigned nout;
};

/* Where it was going to, as seen from the sandbox. */
static bool where(const struct way *w, int fd, struct sockaddr_in *ret)
{
    socklen_t n = sizeof *ret;
    struct in_addr own;
    if (inet_pton(AF_INET, NETWORK_HOST_INSIDE, &own) != 1 ||
        getsockname(fd, (struct sockaddr *)ret, &n) < 0 || ret->sin_family != AF_INET)
        return false;
    if (w->port == DNS) {
        unsigned char ip[4];
        if (synthetic_v4(NAMES_SELF, ip) < 0)
            return false;
        memcpy(&ret->sin_addr, ip, 4);
    } else if (memcmp(&ret->sin_addr, w->owner->gateway, 4) == 0 ||
               ret->sin_addr.s_addr == own.s_addr)
        ret->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return true;
}

static void on_connection(struct network_watch *watch, uint32_t events)
{
    struct way *w = (struct way *)watch;
    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        struct sockaddr_in to;
        int fd = network_loop_accept(watch, SOCK_NONBLOCK);
        if (fd < 0)
            return;
        int other =
            where(w, fd, &to) ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
        network_relay_open(fd, other, &to);
    }
}

static int open_way(struct network_ways *s, struct way *w, uint16_t port)
{
    *w = (struct way){.watch = {.fd = network_hub_socket(s->hub, NETWORK_SOCKET_LISTENER, port),
                                .fn = on_connection},
                      .owner = s,
                      .port = port,
                      .seen = true};
    if (w->watch.fd >= 0 && network_loop_want(&w->watch, EPOLLIN) == 0)
        return 0;
    network_loop_close(&w->watch);
    return -1;
}

static bool has(const struct network_ways *s, uint16_t port)
{
    for (unsigned i = 0; i < s->nout; i++)
        if (s->out[i].port == port)
            return true;
    return false;
}

static int add_way(struct network_ways *s, uint16_t port, struct err *err)
{
    if (has(s, port) || s->nout == NETWORK_WAYS_MAX)
        return 0;
    if (open_way(s, &s->out[s->nout], port) < 0)
        return err_sys(err, "port %u in the network", port);
    s->nout++;
    return 0;
}

static int add_named(struct network_ways *s, struct err *err)
{
    FILE *f = fopen(NETWORK_PORTS_INSIDE, "re");
    unsigned port;
    int r = 0;
    while (f && r == 0 && fscanf(f, "%u", &port) == 1)
        if (port > 0 && port <= 65535)
            r = add_way(s, (uint16_t)port, err);
    if (f)
        fclose(f);
    return r;
}

struct network_ways *network_ways_open(struct network_hub *hub, const unsigned char gateway[4],
                                       struct err *err)
{
    struct network_ways *s = calloc(1, sizeof *s);
    if (s == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    s->hub = hub;
    memcpy(s->gateway, gateway, 4);
    for (unsigned i = 0; i < NETWORK_SERVICES_MAX; i++)
        s->services[i].watch.fd = -1;
    int r = add_named(s, err);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(known); i++)
        r = add_way(s, known[i], err);
    if (r == 0)
        return s;
    network_ways_close(s);
    return NULL;
}

void network_ways_close(struct network_ways *s)
{
    if (s == NULL)
        return;
    for (unsigned i = 0; i < s->nout; i++)
        network_loop_close(&s->out[i].watch);
    for (unsigned i = 0; i < NETWORK_SERVICES_MAX; i++)
        network_loop_close(&s->services[i].watch);
    free(s);
}

/* ---- the sandbox's own services ---- */

static void serve(struct network_ways *s, uint16_t port)
{
    struct way *free_one = NULL;
    for (unsigned i = 0; i < NETWORK_SERVICES_MAX; i++) {
        struct way *w = &s->services[i];
        if (w->watch.fd >= 0 && w->port == port) {
            w->seen = true;
            return;
        }
        if (w->watch.fd < 0)
            free_one = w;
    }
    if (free_one && !has(s, port))
        (void)open_way(s, free_one, port);
}

/* Ports of the sandbox: of every address, and of loopback ones alone. */
struct listeners {
    unsigned char any[65536 / 8], loopback[65536 / 8];
};

static void mark(unsigned char *of, unsigned port)
{
    of[port / 8] |= (unsigned char)(1U << port % 8);
}

static bool is_marked(const unsigned char *of, unsigned port)
{
    return of[port / 8] >> port % 8 & 1;
}

/* A line of /proc/net/tcp: the number, the local address and port, the other's, the state. The last
 * word of an address is that of IPv4, as it lies in memory. */
static void read_table(const char *path, struct listeners *l)
{
    char line[256], address[33];
    unsigned port, state, last;
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, " %*u: %32[0-9A-F]:%4x %*[0-9A-F]:%*x %2x", address, &port, &state) != 3 ||
            state != LISTENS || strlen(address) < 8 ||
            sscanf(address + strlen(address) - 8, "%8x", &last) != 1)
            continue;
        if (strspn(address, "0") == strlen(address))
            mark(l->any, port);
        else if (ntohl(last) >> 24 == IN_LOOPBACKNET)
            mark(l->loopback, port);
    }
    if (f)
        fclose(f);
}

/* What listens at loopback addresses alone is for the sandbox's own programs, as on every host. */
void network_ways_refresh(struct network_ways *s)
{
    static struct listeners l;
    memset(&l, 0, sizeof l);
    for (unsigned i = 0; i < NETWORK_SERVICES_MAX; i++)
        s->services[i].seen = false;
    read_table("/proc/self/net/tcp", &l);
    read_table("/proc/self/net/tcp6", &l);
    for (unsigned port = 1; port < 65536; port++)
        if (is_marked(l.any, port) && !is_marked(l.loopback, port))
            serve(s, (uint16_t)port);
    for (unsigned i = 0; i < NETWORK_SERVICES_MAX; i++)
        if (!s->services[i].seen)
            network_loop_close(&s->services[i].watch);
}
