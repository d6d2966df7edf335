/* The network inside: that of controller/net, whose listeners are taken here. What is connected to
 * or asked there goes over the trunk, with where it was going. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest_internal.h"
#include "netns.h"

enum { AT_ONCE = 16, LOG_ROOM = 8192, UDP = 17 };

int guest_net_make(struct guest_net *net)
{
    struct netns_listeners l;
    struct err err = {0};
    net->ours = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (net->ours < 0 || unshare(CLONE_NEWNET) < 0)
        return guest_fail("a network");
    net->theirs = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (net->theirs < 0 || netns_listen(&l, NULL, 0, &err) < 0 || !l.filtered ||
        l.n > GUEST_LISTENERS) {
        fprintf(stderr, "durward-guest: the network: %s%s\n", err.text, l.why_not);
        return -1;
    }
    for (net->n = 0; net->n < l.n; net->n++) {
        int on = 1;
        net->at[net->n].kind = (int)l.at[net->n].kind;
        net->at[net->n].fd = l.at[net->n].fd;
        /* answers have sockets of their own, of the same port */
        (void)setsockopt(l.at[net->n].fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (fcntl(l.at[net->n].fd, F_SETFL, O_NONBLOCK) < 0)
            return guest_fail("the network");
    }
    return setns(net->ours, CLONE_NEWNET) < 0 ? guest_fail("the network") : 0;
}

/* ---- connections ---- */

static void on_connection(int listener, struct trunk *t)
{
    struct sockaddr_storage a;
    struct trunk_address to;
    socklen_t n = sizeof a;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (getsockname(fd, (struct sockaddr *)&a, &n) == 0 &&
        trunk_address_of((struct sockaddr *)&a, &to) == 0)
        (void)trunk_open(t, TRUNK_TCP, fd, &to);
    else
        close(fd);
}

/* ---- datagrams ---- */

struct datagram {
    struct sockaddr_storage from, to;
    unsigned char bytes[TRUNK_CHUNK];
    ssize_t n;
};

/* Where it was sent, of what came beside it. */
static bool find_to(struct msghdr *m, struct sockaddr_storage *to)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo i;
            struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(NETNS_PORT_DNS)};
            memcpy(&i, CMSG_DATA(c), sizeof i);
            a.sin_addr = i.ipi_addr;
            memcpy(to, &a, sizeof a);
            return true;
        }
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo i;
            struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(NETNS_PORT_DNS)};
            memcpy(&i, CMSG_DATA(c), sizeof i);
            a.sin6_addr = i.ipi6_addr;
            memcpy(to, &a, sizeof a);
            return true;
        }
    }
    return false;
}

static bool receive(int fd, struct datagram *d)
{
    union {
        struct cmsghdr align;
        char room[256];
    } beside;
    struct iovec v = {.iov_base = d->bytes, .iov_len = sizeof d->bytes};
    struct msghdr m = {.msg_name = &d->from,
                       .msg_namelen = sizeof d->from,
                       .msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = &beside,
                       .msg_controllen = sizeof beside};
    d->n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    return d->n > 0 && !(m.msg_flags & MSG_TRUNC) && find_to(&m, &d->to);
}

/* A socket that is who was asked, and hears who asks alone. */
static int answering(const struct guest_net *net, const struct datagram *d)
{
    int family = d->to.ss_family, on = 1;
    socklen_t n = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    if (setns(net->theirs, CLONE_NEWNET) < 0)
        return -1;
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (setns(net->ours, CLONE_NEWNET) < 0)
        _exit(1);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        setsockopt(fd, family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6,
                   family == AF_INET ? IP_FREEBIND : IPV6_FREEBIND, &on, sizeof on) == 0 &&
        bind(fd, (const struct sockaddr *)&d->to, n) == 0 &&
        connect(fd, (const struct sockaddr *)&d->from, n) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void on_datagram(const struct guest_net *net, int listener, struct trunk *t)
{
    static struct datagram d;
    struct trunk_address to;
    if (!receive(listener, &d) || trunk_address_of((struct sockaddr *)&d.to, &to) < 0)
        return;
    int fd = answering(net, &d);
    if (fd >= 0)
        (void)trunk_ask(t, fd, &to, (struct slice){(const char *)d.bytes, (size_t)d.n});
}

/* ---- what was refused ---- */

static void on_packet(const unsigned char *p, size_t n, struct trunk *t)
{
    struct trunk_address to = {.family = 4};
    if (n >= 40 && p[0] >> 4 == 6 && p[6] == UDP && n >= 48) {
        to.family = 6;
        memcpy(to.ip, p + 24, 16);
        to.port = (uint16_t)(p[42] << 8 | p[43]);
    } else if (n >= 20 && p[0] >> 4 == 4 && p[9] == UDP && n >= (size_t)(p[0] & 15) * 4 + 8) {
        size_t head = (size_t)(p[0] & 15) * 4;
        memcpy(to.ip, p + 16, 4);
        to.port = (uint16_t)(p[head + 2] << 8 | p[head + 3]);
    }
    if (to.port != 0)
        trunk_refused(t, &to);
}

/* One message of the kernel's: its attributes, among them the packet. */
static void on_log(const unsigned char *p, size_t n, struct trunk *t)
{
    struct nlmsghdr head;
    size_t at = sizeof head + sizeof(struct nfgenmsg);
    memcpy(&head, p, n < sizeof head ? 0 : sizeof head);
    if (n < at || head.nlmsg_len > n ||
        head.nlmsg_type != (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET))
        return;
    while (at + sizeof(struct nlattr) <= head.nlmsg_len) {
        struct nlattr a;
        memcpy(&a, p + at, sizeof a);
        if (a.nla_len < sizeof a || at + a.nla_len > head.nlmsg_len)
            return;
        if ((a.nla_type & NLA_TYPE_MASK) == NFULA_PAYLOAD)
            on_packet(p + at + sizeof a, a.nla_len - sizeof a, t);
        at += NLMSG_ALIGN(a.nla_len);
    }
}

/* ---- turns ---- */

unsigned guest_net_watch(const struct guest_net *net, struct pollfd p[GUEST_LISTENERS])
{
    for (unsigned i = 0; i < net->n; i++)
        p[i] = (struct pollfd){.fd = net->at[i].fd, .events = POLLIN};
    return net->n;
}

static void turn(const struct guest_net *net, unsigned i, struct trunk *t)
{
    unsigned char log[LOG_ROOM];
    ssize_t n;
    switch (net->at[i].kind) {
    case LISTENER_DNS_UDP4:
    case LISTENER_DNS_UDP6:
        on_datagram(net, net->at[i].fd, t);
        break;
    case LISTENER_NFLOG:
        n = recv(net->at[i].fd, log, sizeof log, MSG_DONTWAIT);
        if (n > 0)
            on_log(log, (size_t)n, t);
        break;
    default:
        on_connection(net->at[i].fd, t);
    }
}

void guest_net_turn(const struct guest_net *net, const struct pollfd *p, unsigned n,
                    struct trunk *t)
{
    for (unsigned i = 0; i < n; i++)
        for (int k = 0; p[i].revents && k < AT_ONCE; k++)
            turn(net, i, t);
}
