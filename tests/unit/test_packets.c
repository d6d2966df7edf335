/* What of a netlink socket a gate gets: the kernel's datagrams, whole, and no way to answer. */
#include "packets.h"
#include "tap_main.h"

#include <errno.h>
#include <event2/event.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct rig {
    struct event_base *base;
    struct packets *packets;
    int log, end; /* log: a duplicate of what packets owns */
};

/* The kernel answers here as it logs there: by datagrams of its own. */
static bool set_up(struct rig *r, int protocol)
{
    struct sockaddr_nl at = {.nl_family = AF_NETLINK};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
    if (fd < 0) {
        tap_skip("no netlink sockets here");
        return false;
    }
    CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    r->base = event_base_new();
    r->log = dup(fd);
    r->packets = packets_new(r->base, fd, &r->end, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r->packets);
    return true;
}

static void tear_down(struct rig *r)
{
    packets_free(r->packets);
    event_base_free(r->base);
    close(r->log);
    close(r->end);
}

static ssize_t take(const struct rig *r, void *room, size_t size)
{
    return recv(r->end, room, size, MSG_DONTWAIT);
}

static int ask_kernel(int fd)
{
    struct {
        struct nlmsghdr h;
        struct rtgenmsg g;
    } ask = {.h = {.nlmsg_len = sizeof ask,
                   .nlmsg_type = RTM_GETLINK,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
    return send(fd, &ask, sizeof ask, 0) == (ssize_t)sizeof ask ? 0 : -1;
}

static void test_passes_on(void)
{
    static char room[64 * 1024];
    struct rig r;
    if (!set_up(&r, NETLINK_ROUTE))
        return;
    CU_ASSERT_EQUAL(take(&r, room, sizeof room), -1);
    CU_ASSERT_EQUAL_FATAL(ask_kernel(r.log), 0);
    event_base_loop(r.base, EVLOOP_ONCE);
    ssize_t n = take(&r, room, sizeof room);
    const struct nlmsghdr *h = (const void *)room;
    CU_ASSERT_FATAL(n > (ssize_t)sizeof *h);
    CU_ASSERT(h->nlmsg_len <= (size_t)n && h->nlmsg_type == RTM_NEWLINK);
    tear_down(&r);
}

/* Whatever is not from the kernel is not believed, however well it is formed. */
static void test_sender(void)
{
    char room[64] = "";
    struct rig r;
    if (!set_up(&r, NETLINK_USERSOCK))
        return;
    struct sockaddr_nl at;
    socklen_t n = sizeof at;
    int other = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_USERSOCK);
    CU_ASSERT_EQUAL(getsockname(r.log, (struct sockaddr *)&at, &n), 0);
    if (sendto(other, room, sizeof room, 0, (struct sockaddr *)&at, n) == sizeof room) {
        event_base_loop(r.base, EVLOOP_ONCE);
        CU_ASSERT_EQUAL(recv(r.log, room, sizeof room, MSG_DONTWAIT), -1); /* it was read */
        CU_ASSERT_EQUAL(take(&r, room, sizeof room), -1);
    } else {
        tap_skip("netlink between processes is not permitted here");
    }
    close(other);
    tear_down(&r);
}

/* What the gate holds is no socket of the kernel's, and takes nothing. */
static void test_no_way_back(void)
{
    struct rig r;
    int domain = 0;
    socklen_t n = sizeof domain;
    if (!set_up(&r, NETLINK_ROUTE))
        return;
    CU_ASSERT_EQUAL(getsockopt(r.end, SOL_SOCKET, SO_DOMAIN, &domain, &n), 0);
    CU_ASSERT_EQUAL(domain, AF_UNIX);
    int second = dup(r.log);
    CU_ASSERT_EQUAL(packets_keep(&r.packets, r.base, second, NULL), -1); /* one each */
    CU_ASSERT_EQUAL(close(second), -1);
    CU_ASSERT(send(r.end, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EPIPE);
    tear_down(&r);
}

/* A gate that does not read costs no more than its socket holds, and stops nobody. */
static void test_unread(void)
{
    static char room[64 * 1024];
    struct rig r;
    size_t got = 0, asked = 0;
    if (!set_up(&r, NETLINK_ROUTE))
        return;
    for (int i = 0; i < 2000; i++) {
        asked += ask_kernel(r.log) == 0;
        event_base_loop(r.base, EVLOOP_NONBLOCK);
    }
    for (ssize_t n; (n = take(&r, room, sizeof room)) > 0;)
        got += (size_t)n;
    CU_ASSERT(asked > 500 && got > 1000 && got < 1 << 20);
    int before = r.end;
    CU_ASSERT_EQUAL(shutdown(before, SHUT_RD), 0); /* gone for good: the builder is told, no more */
    (void)ask_kernel(r.log);
    event_base_loop(r.base, EVLOOP_NONBLOCK);
    tear_down(&r);
}

void tap_suites(void)
{
    signal(SIGPIPE, SIG_IGN);
    CU_pSuite s = CU_add_suite("packets", NULL, NULL);
    CU_add_test(s, "a datagram of the kernel's is passed on", test_passes_on);
    CU_add_test(s, "a sender that is not the kernel", test_sender);
    CU_add_test(s, "no way back", test_no_way_back);
    CU_add_test(s, "a reader that does not read", test_unread);
}
