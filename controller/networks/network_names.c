/* A query that goes on has a number of ours, which says whose it is; its answer has the first one
 * again, and comes from the address that was asked. */
#define _GNU_SOURCE 1
#include "network_names.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "network_loop.h"
#include "synthetic.h"

enum { DNS = 53, AT_ONCE = 32 };

struct query {
    bool open;
    unsigned char asked[2], ours[2]; /* numbers */
    struct sockaddr_in from;
    struct in_addr to;
};

struct up {
    struct network_watch watch;
    struct network_names *names;
};

struct network_names {
    struct network_watch watch;
    struct up up; /* towards the gate */
    network_names_fn *fn;
    void *arg;
    uint16_t next;
    struct query queries[NETWORK_QUERIES_MAX];
};

static void answer(struct network_names *s, const struct query *q, const void *p, size_t n)
{
    union {
        char room[CMSG_SPACE(sizeof(struct in_pktinfo))];
        struct cmsghdr align;
    } control = {.room = {0}};
    struct sockaddr_in to = q->from;
    struct iovec iov = {(void *)(uintptr_t)p, n};
    struct msghdr m = {.msg_name = &to,
                       .msg_namelen = sizeof to,
                       .msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof control.room};
    struct in_pktinfo from = {.ipi_spec_dst = q->to};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = IPPROTO_IP;
    c->cmsg_type = IP_PKTINFO;
    c->cmsg_len = CMSG_LEN(sizeof from);
    memcpy(CMSG_DATA(c), &from, sizeof from);
    (void)sendmsg(s->watch.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void ask_gate(struct network_names *s, const struct query *q, unsigned char *p, size_t n)
{
    uint16_t number = s->next++;
    struct query *kept = &s->queries[number % NETWORK_QUERIES_MAX];
    *kept = *q;
    kept->open = true;
    memcpy(kept->asked, p, 2);
    kept->ours[0] = (unsigned char)(number >> 8);
    kept->ours[1] = (unsigned char)number;
    memcpy(p, kept->ours, 2);
    (void)send(s->up.watch.fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void on_query(struct network_names *s, const struct query *q, unsigned char *p, size_t n)
{
    unsigned char ips[NETWORK_DNS_ANSWERS][4], reply[NETWORK_DNS_MESSAGE];
    struct network_question question;
    if (n < NETWORK_DNS_HEAD)
        return;
    bool read = network_dns_question(p, n, &question);
    int found =
        s->fn(s->arg, (const unsigned char *)&q->from.sin_addr, read ? question.name : NULL, ips);
    size_t size = found < 0 || !read
                      ? 0
                      : network_dns_answer(p, &question, (const unsigned char(*)[4])ips,
                                           (unsigned)found, reply, sizeof reply);
    if (found < 0)
        ask_gate(s, q, p, n);
    else if (size > 0)
        answer(s, q, reply, size);
}

static void on_datagram(struct network_watch *w, uint32_t events)
{
    struct network_names *s = (struct network_names *)w;
    unsigned char p[NETWORK_DNS_MESSAGE];
    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        union {
            char room[CMSG_SPACE(sizeof(struct in_pktinfo))];
            struct cmsghdr align;
        } control;
        struct query q = {.open = true};
        struct iovec iov = {p, sizeof p};
        struct msghdr m = {.msg_name = &q.from,
                           .msg_namelen = sizeof q.from,
                           .msg_iov = &iov,
                           .msg_iovlen = 1,
                           .msg_control = control.room,
                           .msg_controllen = sizeof control.room};
        ssize_t n = recvmsg(w->fd, &m, MSG_DONTWAIT);
        if (n < 0)
            return;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        struct in_pktinfo info;
        if ((m.msg_flags & MSG_TRUNC) || c == NULL || c->cmsg_level != IPPROTO_IP ||
            c->cmsg_type != IP_PKTINFO)
            continue;
        memcpy(&info, CMSG_DATA(c), sizeof info);
        q.to = info.ipi_addr;
        on_query(s, &q, p, (size_t)n);
    }
}

static void on_answer(struct network_watch *w, uint32_t events)
{
    struct network_names *s = ((struct up *)w)->names;
    unsigned char p[NETWORK_DNS_MESSAGE];
    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        ssize_t n = recv(w->fd, p, sizeof p, MSG_DONTWAIT);
        if (n < 0)
            return;
        struct query *q = n < NETWORK_DNS_HEAD
                              ? NULL
                              : &s->queries[((unsigned)p[0] << 8 | p[1]) % NETWORK_QUERIES_MAX];
        if (q == NULL || !q->open || memcmp(q->ours, p, 2) != 0)
            continue;
        q->open = false;
        memcpy(p, q->asked, 2);
        answer(s, q, p, (size_t)n);
    }
}

/* In the sandbox's network, where every address answers on that port; this one is the gate's. */
static int open_up(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(DNS)};
    unsigned char ip[4];
    if (synthetic_v4(NAMES_SELF, ip) < 0)
        return -1;
    memcpy(&to.sin_addr, ip, 4);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    struct network_watch w = {.fd = fd};
    network_loop_close(&w);
    return -1;
}

struct network_names *network_names_open(int fd, network_names_fn *fn, void *arg)
{
    struct network_names *s = calloc(1, sizeof *s);
    struct network_watch w = {.fd = fd, .fn = on_datagram};
    if (s == NULL) {
        network_loop_close(&w);
        return NULL;
    }
    s->watch = w;
    s->up = (struct up){.watch = {.fd = open_up(), .fn = on_answer}, .names = s};
    s->fn = fn;
    s->arg = arg;
    if (s->up.watch.fd >= 0 && network_loop_want(&s->watch, EPOLLIN) == 0 &&
        network_loop_want(&s->up.watch, EPOLLIN) == 0)
        return s;
    network_names_close(s);
    return NULL;
}

void network_names_close(struct network_names *s)
{
    if (s == NULL)
        return;
    network_loop_close(&s->watch);
    network_loop_close(&s->up.watch);
    free(s);
}
