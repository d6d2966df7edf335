/* Enters the namespaces, opens every listener in them, and says for a host that refuses which
 * setting is in the way. */
#define _GNU_SOURCE 1
#include "netns.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nft.h"
#include "rtnl.h"
#include "synthetic.h"

enum {
    LOG_GROUP = 1,
    BACKLOG = 1024,
};

static bool sysctl_is(const char *path, char digit)
{
    char c = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, &c, 1);
    close(fd);
    return n == 1 && c == digit;
}

/* The reasons why hosts refuse user namespaces, each with its one-line remedy. Keeps errno. */
static int refused(struct err *err, const char *what)
{
    int saved = errno;
    const char *fix = NULL;
    if (sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1'))
        fix = "AppArmor restricts user namespaces; as root: sysctl -w "
              "kernel.apparmor_restrict_unprivileged_userns=0, or install an AppArmor profile that "
              "allows durward userns";
    else if (sysctl_is("/proc/sys/kernel/unprivileged_userns_clone", '0'))
        fix = "user namespaces are off; as root: sysctl -w kernel.unprivileged_userns_clone=1";
    else if (sysctl_is("/proc/sys/user/max_user_namespaces", '0') || saved == ENOSPC)
        fix = "no user namespace is left; as root: sysctl -w user.max_user_namespaces=15000";
    else if (saved == EPERM)
        fix = "in a container, start it with a seccomp profile that allows unshare "
              "(--security-opt seccomp=unconfined); else look for a security module that refuses";
    errno = saved;
    err_sys(err, "%s", what);
    return fix ? err_set(err, ERR_UNREADY, "%s: %s: %s", what, strerror(saved), fix) : -1;
}

static int put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = write(fd, text, strlen(text));
    int saved = errno;
    close(fd);
    errno = saved;
    return n < 0 ? -1 : 0;
}

static int inode_of_netns(ino_t *ret, struct err *err)
{
    struct stat st;
    if (stat("/proc/self/ns/net", &st) < 0)
        return err_sys(err, "/proc/self/ns/net");
    *ret = st.st_ino;
    return 0;
}

int netns_enter(uid_t uid, gid_t gid, struct err *err)
{
    char map[64];
    ino_t before = 0, after = 0;
    if (inode_of_netns(&before, err) < 0)
        return -1;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) < 0)
        return refused(err, "cannot make a user namespace");
    /* the maps belong to whoever may look into the process */
    if (prctl(PR_SET_DUMPABLE, 1) < 0)
        return err_sys(err, "PR_SET_DUMPABLE");
    if (put("/proc/self/setgroups", "deny") < 0)
        return refused(err, "cannot write the user namespace's setgroups");
    snprintf(map, sizeof map, "%u %u 1\n", (unsigned)uid, (unsigned)uid);
    if (put("/proc/self/uid_map", map) < 0)
        return refused(err, "cannot write the user namespace's uid_map");
    snprintf(map, sizeof map, "%u %u 1\n", (unsigned)gid, (unsigned)gid);
    if (put("/proc/self/gid_map", map) < 0)
        return refused(err, "cannot write the user namespace's gid_map");
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        return err_sys(err, "PR_SET_DUMPABLE");
    if (inode_of_netns(&after, err) < 0)
        return -1;
    if (after == before)
        return err_set(err, ERR_INTERNAL, "the network namespace is still the host's");
    return 0;
}

static int add(struct netns_listeners *l, enum listener_kind kind, uint16_t port, int fd,
               struct err *err)
{
    if (l->n == ARRAY_LEN(l->at)) {
        close(fd);
        return err_set(err, ERR_LIMIT, "too many listeners");
    }
    l->at[l->n++] = (struct netns_listener){.kind = kind, .port = port, .fd = fd};
    return 0;
}

static int bind_any(int fd, int family, uint16_t port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    if (family == AF_INET)
        return bind(fd, (struct sockaddr *)&v4, sizeof v4);
    return bind(fd, (struct sockaddr *)&v6, sizeof v6);
}

static int set_on(int fd, int level, int name)
{
    int on = 1;
    return setsockopt(fd, level, name, &on, sizeof on);
}

/* One socket on every address. Neither SO_REUSEADDR nor SO_REUSEPORT: nobody inside can share it.
 */
static int open_socket(int family, int type, uint16_t port, bool transparent, struct err *err)
{
    int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(err, "cannot make a listener");
    bool v6 = family == AF_INET6;
    bool ok = !v6 || set_on(fd, IPPROTO_IPV6, IPV6_V6ONLY) == 0;
    if (ok && transparent)
        ok =
            set_on(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TRANSPARENT : IP_TRANSPARENT) == 0;
    if (ok && type == SOCK_DGRAM) {
        ok = v6 ? set_on(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO) == 0 &&
                      set_on(fd, IPPROTO_IPV6, IPV6_FREEBIND) == 0
                : set_on(fd, IPPROTO_IP, IP_PKTINFO) == 0 &&
                      set_on(fd, IPPROTO_IP, IP_FREEBIND) == 0;
    }
    if (ok && bind_any(fd, family, port) == 0 && (type == SOCK_DGRAM || listen(fd, BACKLOG) == 0))
        return fd;
    err_sys(err, "cannot listen on port %u", port);
    close(fd);
    return -1;
}

static int add_socket(struct netns_listeners *l, enum listener_kind kind, int family, int type,
                      uint16_t port, struct err *err)
{
    bool catch_all = port == 0;
    int fd = open_socket(family, type, catch_all ? NETNS_PORT_CATCH_ALL : port, catch_all, err);
    return fd < 0 ? -1 : add(l, kind, port, fd, err);
}

static int listen_family(struct netns_listeners *l, int family, const uint16_t *ports,
                         unsigned nports, struct err *err)
{
    bool v6 = family == AF_INET6;
    enum listener_kind tcp = v6 ? LISTENER_TCP6 : LISTENER_TCP4;
    enum listener_kind dns = v6 ? LISTENER_DNS_UDP6 : LISTENER_DNS_UDP4;
    enum listener_kind dns_tcp = v6 ? LISTENER_DNS_TCP6 : LISTENER_DNS_TCP4;
    if (add_socket(l, dns, family, SOCK_DGRAM, NETNS_PORT_DNS, err) < 0 ||
        add_socket(l, dns_tcp, family, SOCK_STREAM, NETNS_PORT_DNS, err) < 0)
        return -1;
    if (l->filtered)
        return add_socket(l, tcp, family, SOCK_STREAM, 0, err);
    if (add_socket(l, tcp, family, SOCK_STREAM, 80, err) < 0 ||
        add_socket(l, tcp, family, SOCK_STREAM, 443, err) < 0)
        return -1;
    for (unsigned i = 0; i < nports; i++)
        if (add_socket(l, tcp, family, SOCK_STREAM, ports[i], err) < 0)
            return -1;
    return 0;
}

/* IPv6 may be missing from the kernel or switched off; then it leads nowhere and needs nothing. */
static bool have_ipv6(void)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    close(fd);
    return rtnl_all_local(AF_INET6, NULL) == 0;
}

/* The gate's own synthetic address is lo's too, beside the loopback ones. */
static int own_addresses(bool v6, struct err *err)
{
    unsigned char ip4[4], ip6[16];
    if (synthetic_v4(NAMES_SELF, ip4) < 0 || synthetic_v6(NAMES_SELF, ip6) < 0)
        return err_set(err, ERR_INTERNAL, "no synthetic address of our own");
    if (rtnl_address(AF_INET, ip4, err) < 0)
        return -1;
    return v6 ? rtnl_address(AF_INET6, ip6, err) : 0;
}

static int listen_all(struct netns_listeners *l, const uint16_t *ports, unsigned nports,
                      const unsigned char *pod, struct err *err)
{
    struct err why = {0};
    if (rtnl_loopback_up(err) < 0 || rtnl_all_local(AF_INET, err) < 0) {
        errno = EPERM;
        return sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1')
                   ? refused(err, "cannot configure the sandbox's network")
                   : -1;
    }
    int log = nft_install(NETNS_PORT_CATCH_ALL, LOG_GROUP, pod, &why);
    l->filtered = log >= 0;
    if (!l->filtered)
        snprintf(l->why_not, sizeof l->why_not, "%.255s", why.text);
    bool v6 = l->filtered && have_ipv6(); /* the filter bounds what the kernel keeps for it */
    if (own_addresses(v6, err) < 0) {
        if (log >= 0)
            close(log);
        return -1;
    }
    if (listen_family(l, AF_INET, ports, nports, err) < 0 ||
        (v6 && listen_family(l, AF_INET6, ports, nports, err) < 0)) {
        if (log >= 0)
            close(log);
        return -1;
    }
    return log < 0 ? 0 : add(l, LISTENER_NFLOG, 0, log, err);
}

int netns_listen(struct netns_listeners *l, const uint16_t *ports, unsigned nports, struct err *err)
{
    memset(l, 0, sizeof *l);
    if (listen_all(l, ports, nports, NULL, err) == 0)
        return 0;
    netns_close(l);
    return -1;
}

/* Whoever puts a sandbox together without them has no other way out; a pod's interface is there. */
int netns_listen_pod(struct netns_listeners *l, const unsigned char pod[4], struct err *err)
{
    memset(l, 0, sizeof *l);
    if (listen_all(l, NULL, 0, pod, err) == 0 && l->filtered)
        return 0;
    if (!l->filtered && l->why_not[0])
        err_set(err, ERR_UNREADY, "nf_tables cannot be used here: %s", l->why_not);
    netns_close(l);
    return -1;
}

void netns_close(struct netns_listeners *l)
{
    for (unsigned i = 0; i < l->n; i++)
        close(l->at[i].fd);
    l->n = 0;
}
