/* The network of a sandbox with one of its mechanisms gone, nf_tables before all (listeners on
 * named ports only): still no way out. Runs in children, each with namespaces of its own. */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "netns.h"
#include "nft.h"
#include "pod_link.h"
#include "rtnl.h"
#include "tap_main.h"

enum { NO_NAMESPACES = 77 };

/* What a child found: 0, or the line of the check that failed. */
#define CHECK(condition)               \
    do {                               \
        if (!(condition))              \
            _exit(1 + __LINE__ % 100); \
    } while (0)

static void without_nftables(void)
{
    scmp_filter_ctx c = seccomp_init(SCMP_ACT_ALLOW);
    CHECK(c != NULL);
    CHECK(seccomp_rule_add(c, SCMP_ACT_ERRNO(EPROTONOSUPPORT), SCMP_SYS(socket), 2,
                           SCMP_A0(SCMP_CMP_EQ, AF_NETLINK),
                           SCMP_A2(SCMP_CMP_EQ, NETLINK_NETFILTER)) == 0);
    CHECK(seccomp_load(c) == 0);
    seccomp_release(c);
}

static int connect_to(const char *address, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && inet_pton(AF_INET, address, &to.sin_addr) == 1);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static int listener(const struct netns_listeners *l, uint16_t port)
{
    for (unsigned i = 0; i < l->n; i++)
        if (l->at[i].kind == LISTENER_TCP4 && l->at[i].port == port)
            return l->at[i].fd;
    return -1;
}

static void enter(void)
{
    struct err err = {0};
    if (netns_enter(getuid(), getgid(), &err) < 0)
        _exit(NO_NAMESPACES);
}

static void fallback(void)
{
    static struct netns_listeners l;
    static const uint16_t ports[] = {8443};
    struct err err = {0};
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    enter();
    without_nftables();
    CHECK(netns_listen(&l, ports, 1, &err) == 0);
    CHECK(!l.filtered && l.why_not[0]);
    for (unsigned i = 0; i < l.n; i++)
        CHECK(l.at[i].kind != LISTENER_NFLOG && l.at[i].port != 0 &&
              l.at[i].kind != LISTENER_TCP6 && l.at[i].kind != LISTENER_DNS_UDP6);
    CHECK(listener(&l, 80) >= 0 && listener(&l, 443) >= 0 && listener(&l, 8443) >= 0);
    CHECK(connect_to("93.184.216.34", 8443) >= 0);
    int c = accept(listener(&l, 8443), NULL, NULL);
    CHECK(c >= 0 && getsockname(c, (struct sockaddr *)&at, &len) == 0);
    CHECK(at.sin_addr.s_addr == htonl(0x5db8d822) && at.sin_port == htons(8443));
    CHECK(connect_to("93.184.216.34", 8444) < 0 && errno == ECONNREFUSED);
    netns_close(&l);
    CHECK(connect_to("93.184.216.34", 8443) < 0);
    _exit(0);
}

/* Nobody inside can take a port of ours, not even with every capability over the namespace. */
static void ports_are_taken(void)
{
    static struct netns_listeners l;
    struct err err = {0};
    int on = 1;
    enter();
    CHECK(netns_listen(&l, NULL, 0, &err) == 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(53)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0);
    CHECK(bind(fd, (struct sockaddr *)&at, sizeof at) < 0 && errno == EADDRINUSE);
    at.sin_addr.s_addr = htonl(0x08080808);
    CHECK(bind(fd, (struct sockaddr *)&at, sizeof at) < 0 && errno == EADDRINUSE);
    netns_close(&l);
    _exit(0);
}

/* Whether anybody out there could be reached: a connection stands, or a datagram leaves and no
 * error comes back for it. */
static bool tcp_stands(const char *address, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int e = 0, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof e;
    CHECK(fd >= 0 && inet_pton(AF_INET, address, &to.sin_addr) == 1);
    bool begun = connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS;
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    bool over = begun && poll(&p, 1, 500) > 0 &&
                getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) == 0 && e == 0;
    close(fd);
    return over;
}

static bool udp_leaves(const char *address, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && inet_pton(AF_INET, address, &to.sin_addr) == 1);
    bool sent = connect(fd, (struct sockaddr *)&to, sizeof to) == 0 && send(fd, "x", 1, 0) == 1;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    bool refused = sent && poll(&p, 1, 500) > 0 && (p.revents & POLLERR);
    close(fd);
    return sent && !refused;
}

static bool is_closed(void)
{
    return !tcp_stands("93.184.216.34", 443) && !tcp_stands("169.254.169.254", 80) &&
           !udp_leaves("93.184.216.34", 443) && !udp_leaves("8.8.8.8", 5353);
}

/* No rule, no listener, no route: the namespace alone. */
static void namespace_alone(void)
{
    enter();
    CHECK(is_closed());
    _exit(0);
}

/* All is routed to loopback, where nobody listens and no rule refuses. */
static void routes_alone(void)
{
    struct err err = {0};
    enter();
    CHECK(rtnl_loopback_up(&err) == 0 && rtnl_all_local(AF_INET, &err) == 0);
    CHECK(is_closed());
    _exit(0);
}

/* The rules send connections to a listener, and there is none. */
static void rules_without_listeners(void)
{
    static struct netns_listeners l;
    struct err err = {0};
    enter();
    CHECK(netns_listen(&l, NULL, 0, &err) == 0);
    if (!l.filtered)
        _exit(NO_NAMESPACES);
    CHECK(tcp_stands("93.184.216.34", 443)); /* the listener takes it: that is what ends */
    netns_close(&l);
    CHECK(is_closed());
    _exit(0);
}

/* Rules, and no route that leads to them. */
static void rules_without_routes(void)
{
    struct err err = {0};
    enter();
    CHECK(rtnl_loopback_up(&err) == 0);
    if (nft_install(901, 1, NULL, &err) < 0)
        _exit(NO_NAMESPACES);
    CHECK(is_closed());
    _exit(0);
}

static bool sent_to(int fd, unsigned number)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(53)};
    uint32_t net = htonl(number);
    CHECK(inet_pton(AF_INET6, "2001:db8::", &to.sin6_addr) == 1);
    memcpy(to.sin6_addr.s6_addr + 12, &net, sizeof net);
    return sendto(fd, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof to) == 1;
}

/* The kernel keeps something for each address that is sent to; one namespace has 1024 of them. */
static void addresses_are_bounded(void)
{
    enum { ASKED = 3000, MOST = 1024 };
    static struct netns_listeners l;
    struct err err = {0};
    unsigned sent = 0;
    enter();
    CHECK(netns_listen(&l, NULL, 0, &err) == 0);
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (!l.filtered || fd < 0)
        _exit(NO_NAMESPACES);
    for (unsigned i = 1; i <= ASKED; i++)
        sent += sent_to(fd, i);
    CHECK(sent >= MOST - 8 && sent <= MOST);
    CHECK(sent_to(fd, 1)); /* one of those */
    CHECK(!sent_to(fd, ASKED + 1));
    CHECK(tcp_stands("93.184.216.34", 443)); /* IPv4 has its way */
    netns_close(&l);
    _exit(0);
}

/* A pinned namespace is one pod's: another pod's is told from it, and who was not tied is nobody's.
 */
static void tied(void)
{
    struct err err = {0};
    int ns[3];
    enter();
    for (int i = 0; i < 3; i++) { /* two pods, and the outer one of the first */
        CHECK(unshare(CLONE_NEWNET) == 0);
        CHECK((ns[i] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) >= 0);
    }
    CHECK(pod_link_tied(ns[0], ns[2], &err) < 0);
    CHECK(pod_link_tie(ns[0], &err) == 0);
    CHECK(pod_link_tied(ns[0], ns[2], &err) == 0);
    CHECK(pod_link_tied(ns[1], ns[2], &err) < 0 && strstr(err.text, "not that pod's") != NULL);
    CHECK(pod_link_tied(ns[0], ns[1], &err) < 0);
    CHECK(pod_link_tied(ns[2], ns[2], &err) < 0);
    _exit(0);
}

/* A sandbox's namespace is new: nothing is deleted in it, for which the kernel would make us wait.
 */
static void rules_are_the_first(void)
{
    static const unsigned char pod[4] = {10, 1, 2, 3};
    struct err err = {0};
    enter();
    CHECK(rtnl_loopback_up(&err) == 0);
    if (nft_install(901, 1, NULL, &err) < 0)
        _exit(NO_NAMESPACES);
    CHECK(nft_install(901, 2, NULL, &err) < 0);
    CHECK(strstr(err.text, strerror(EEXIST)) != NULL);
    CHECK(nft_install(901, 3, pod, &err) >= 0); /* a pod's may have been a daemon's before us */
    _exit(0);
}

static void in_child(void (*what)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        what();
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_NAMESPACES) {
        tap_skip("user namespaces are not available here");
        return;
    }
    CU_ASSERT_TRUE(WIFEXITED(status));
    CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
    if (WEXITSTATUS(status))
        printf("# a check failed near line %d\n", WEXITSTATUS(status) - 1);
}

static void test_fallback(void)
{
    in_child(fallback);
}

static void test_ports(void)
{
    in_child(ports_are_taken);
}

static void test_each_alone(void)
{
    in_child(namespace_alone);
    in_child(routes_alone);
    in_child(rules_without_listeners);
    in_child(rules_without_routes);
}

static void test_addresses(void)
{
    in_child(addresses_are_bounded);
}

static void test_tied(void)
{
    in_child(tied);
}

static void test_first(void)
{
    in_child(rules_are_the_first);
}

static void suite_netns(void)
{
    CU_pSuite s = CU_add_suite("netns", NULL, NULL);
    CU_add_test(s, "without nf_tables", test_fallback);
    CU_add_test(s, "ports are taken", test_ports);
    CU_add_test(s, "addresses of IPv6 are bounded", test_addresses);
    CU_add_test(s, "an outer namespace is one pod's", test_tied);
    CU_add_test(s, "rules are the first of their namespace, or a pod's again", test_first);
    CU_add_test(s, "without rules, listeners or routes it is closed", test_each_alone);
}

void tap_suites(void)
{
    suite_netns();
}
