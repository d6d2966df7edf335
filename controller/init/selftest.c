/* The probes: process, descriptors, network, system calls, files. The query for a name goes out
 * early and its answer is read last, so that there is little to wait for. */
#define _GNU_SOURCE 1
#include "selftest.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire.h"

enum { START_WAIT_MS = 8, GVISOR_WAIT_MS = 250, GUEST_WAIT_MS = 2000, TEXT_MAX = 16 * 1024 };

/* Where the results go; one probe at a time. */
struct run {
    struct selftest_result *at;
    unsigned n;
    bool gvisor, guest;
    int wait_ms;
};

static void PRINTF(4, 5) report(struct run *t, const char *probe, bool ok, const char *fmt, ...)
{
    if (t->n == SELFTEST_MAX)
        return;
    struct selftest_result *r = &t->at[t->n++];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->detail, sizeof r->detail, fmt, ap);
    va_end(ap);
    r->probe = probe;
    r->ok = ok;
}

/* result is what a system call gave, errno still its own: it must have failed with one of two. */
static void must_fail(struct run *t, const char *probe, long result, int with, int or_with)
{
    int e = errno;
    if (result >= 0)
        report(t, probe, false, "was allowed");
    else if (e != with && e != or_with)
        report(t, probe, false, "failed, but with: %s", strerror(e));
    else
        report(t, probe, true, "%s", "");
}

/* ---- what the kernel says of us ---- */

/* A small file, NUL-terminated; -1 with errno. */
static ssize_t read_text(const char *path, char *to, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t n = 0;
    ssize_t got = 0;
    while (n < size - 1 && (got = read(fd, to + n, size - 1 - n)) > 0)
        n += (size_t)got;
    close(fd);
    to[n] = '\0';
    return got < 0 ? -1 : (ssize_t)n;
}

static bool status_is(const char *status, const char *key, unsigned long long want)
{
    const char *at = strstr(status, key);
    return at && strtoull(at + strlen(key), NULL, 16) == want;
}

static void probe_status(struct run *t, unsigned long long capabilities)
{
    static const char *const sets[] = {
        "\nCapInh:", "\nCapPrm:", "\nCapEff:", "\nCapBnd:", "\nCapAmb:"};
    char status[TEXT_MAX];
    if (read_text("/proc/self/status", status, sizeof status) < 0) {
        report(t, "status", false, "/proc/self/status: %s", strerror(errno));
        return;
    }
    size_t n = ARRAY_LEN(sets) - t->gvisor; /* whose file has neither the last nor the next */
    for (size_t i = 0; i < n; i++)
        report(t, "capabilities", status_is(status, sets[i], capabilities), "%.6s", sets[i] + 1);
    report(t, "no_new_privs", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1, "%s", "");
    report(t, "seccomp", status_is(status, "\nSeccomp:", 2), "%s", "");
    report(t, "pid 1", getpid() == 1, "%s", "");
}

static void probe_descriptors(struct run *t, int control)
{
    DIR *d = opendir("/proc/self/fd");
    if (d == NULL) {
        report(t, "descriptors", false, "/proc/self/fd: %s", strerror(errno));
        return;
    }
    bool ok = true;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        long fd = strtol(e->d_name, NULL, 10);
        if (fd > STDERR_FILENO && fd != control && fd != dirfd(d)) {
            char path[64], to[64];
            snprintf(path, sizeof path, "/proc/self/fd/%ld", fd);
            ssize_t n = readlink(path, to, sizeof to);
            report(t, "descriptors", false, "%ld is %.*s", fd, n < 0 ? 0 : (int)n, to);
            ok = false;
        }
    }
    closedir(d);
    if (ok)
        report(t, "descriptors", true, "%s", "");
}

/* Every line of a /proc/net file but `skip` heading ones must have `word` in it; no file, no line.
 */
static void probe_lines(struct run *t, const char *probe, const char *path, unsigned skip,
                        const char *word)
{
    char text[TEXT_MAX], *rest = text;
    if (read_text(path, text, sizeof text) < 0) {
        report(t, probe, errno == ENOENT, "%s: %s", path, strerror(errno));
        return;
    }
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (skip > 0) {
            skip--;
        } else if (*line && (word == NULL || strstr(line, word) == NULL)) {
            report(t, probe, false, "%.60s", line);
            return;
        }
    }
    report(t, probe, true, "%s", "");
}

/* ---- the network ---- */

static void probe_netlink(struct run *t)
{
    struct {
        struct nlmsghdr h;
        struct rtmsg rt;
    } ask = {.h = {.nlmsg_len = sizeof ask,
                   .nlmsg_type = RTM_DELROUTE,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
             .rt = {.rtm_family = AF_INET, .rtm_table = RT_TABLE_LOCAL, .rtm_type = RTN_LOCAL}};
    struct {
        struct nlmsghdr h;
        struct nlmsgerr e;
        char room[256];
    } answer = {0};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd >= 0 && send(fd, &ask, sizeof ask, 0) >= 0 && recv(fd, &answer, sizeof answer, 0) > 0 &&
        answer.h.nlmsg_type == NLMSG_ERROR && answer.e.error != 0)
        errno = -answer.e.error;
    else
        errno = 0;
    must_fail(t, "delete a route", -1, EPERM, t->gvisor ? EACCES : EPERM);
    if (fd >= 0)
        close(fd);
    fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    must_fail(t, "netfilter", fd, EPROTONOSUPPORT, EPROTONOSUPPORT);
}

static void probe_families(struct run *t)
{
    static const struct {
        const char *probe;
        int family, type, protocol;
    } kinds[] = {
        {"raw IPv4 socket", AF_INET, SOCK_RAW, IPPROTO_ICMP},
        {"raw IPv6 socket", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6},
        {"ping socket", AF_INET, SOCK_DGRAM, IPPROTO_ICMP},
        {"SCTP socket", AF_INET, SOCK_SEQPACKET, 0},
        {"MPTCP socket", AF_INET, SOCK_STREAM, 262},
        {"UDP-Lite socket", AF_INET6, SOCK_DGRAM, 136},
        {"packet socket", AF_PACKET, SOCK_DGRAM, 0},
        {"vsock socket", AF_VSOCK, SOCK_STREAM, 0},
        {"kernel crypto socket", AF_ALG, SOCK_SEQPACKET, 0},
        {"XDP socket", AF_XDP, SOCK_RAW, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        int fd = socket(kinds[i].family, kinds[i].type | SOCK_CLOEXEC, kinds[i].protocol);
        must_fail(t, kinds[i].probe, fd, EPROTONOSUPPORT, EAFNOSUPPORT);
        if (fd >= 0)
            close(fd);
    }
    if (t->gvisor) /* takes options that it does not know, and does nothing */
        return;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    must_fail(t, "transparent socket", setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof on),
              EPERM, EPERM);
    if (fd >= 0)
        close(fd);
}

static int connect_to(int type, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(WIRE_SELFTEST_ADDRESS)};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}

static int pending_error(int fd)
{
    int e = 0;
    socklen_t len = sizeof e;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) < 0 ? errno : e;
}

/* A datagram to port 443 anywhere must come back as an error. */
static void probe_udp(struct run *t)
{
    int fd = connect_to(SOCK_DGRAM, 443);
    if (fd < 0) {
        report(t, "UDP 443", false, "no socket: %s", strerror(errno));
        return;
    }
    bool refused = send(fd, "durward", 7, 0) < 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (!refused && poll(&p, 1, t->wait_ms) > 0)
        refused = (p.revents & POLLERR) && pending_error(fd) != 0;
    report(t, "UDP 443", refused, "%s", refused ? "" : "was not refused");
    close(fd);
}

/* A connection anywhere must be taken by the listener of this namespace: it is established without
 * any waiting, or refused. A real network would take its time over this documentation address. */
static void probe_tcp(struct run *t)
{
    int fd = connect_to(SOCK_STREAM, 443);
    if (fd < 0) {
        report(t, "TCP 443", errno == ECONNREFUSED, "%s", strerror(errno));
        return;
    }
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int e = poll(&p, 1, t->wait_ms) > 0 ? pending_error(fd) : ETIMEDOUT;
    report(t, "TCP 443", e == 0 || e == ECONNREFUSED, "%s", e ? strerror(e) : "");
    close(fd);
}

/* Ask for a name that no policy allows. The answer is read later, by dns_finish. */
static int dns_ask(void)
{
    unsigned char q[64] = {0x64, 0x77, 1, 0, 0, 1}; /* id, recursion desired, one question */
    size_t n = 12;
    for (const char *label = WIRE_SELFTEST_NAME; *label;) {
        size_t len = strcspn(label, ".");
        q[n++] = (unsigned char)len;
        memcpy(q + n, label, len);
        n += len;
        label += len + (label[len] == '.');
    }
    n++;
    q[n + 1] = 1; /* A */
    q[n + 3] = 1; /* IN */
    int fd = connect_to(SOCK_DGRAM, 53);
    if (fd >= 0 && send(fd, q, n + 4, 0) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void dns_finish(struct run *t, int fd)
{
    unsigned char a[512];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    /* no answer in time is no name either: the gate may still be waking up */
    ssize_t n = fd >= 0 && poll(&p, 1, t->guest ? t->wait_ms : START_WAIT_MS) > 0
                    ? recv(fd, a, sizeof a, 0)
                    : 0;
    bool named = n >= 12 && (a[6] != 0 || a[7] != 0);
    report(t, "DNS", !named, "%s", named ? "a name that nobody allowed was resolved" : "");
    if (fd >= 0)
        close(fd);
}

/* ---- system calls ---- */

static char room[64]; /* arguments that would do no harm if a call went through */

static void probe_calls(struct run *t)
{
    char *p = room;
    must_fail(t, "io_uring", syscall(SYS_io_uring_setup, 1, p), ENOSYS, ENOSYS);
    must_fail(t, "asynchronous I/O", syscall(SYS_io_setup, 1, p), ENOSYS, ENOSYS);
    must_fail(t, "keyctl", syscall(SYS_keyctl, 0, -3, 0), EPERM, EPERM);
    must_fail(t, "ptrace", syscall(SYS_ptrace, PTRACE_PEEKDATA, 1, 0, 0), EPERM, EPERM);
    must_fail(t, "process_vm_readv", syscall(SYS_process_vm_readv, 1, 0, 0, 0, 0, 0), EPERM, EPERM);
    must_fail(t, "bpf", syscall(SYS_bpf, 0, p, 0), EPERM, EPERM);
    must_fail(t, "userfaultfd", syscall(SYS_userfaultfd, O_CLOEXEC), EPERM, EPERM);
    must_fail(t, "perf_event_open", syscall(SYS_perf_event_open, p, 0, -1, -1, 0), EPERM, EPERM);
    must_fail(t, "open_by_handle_at", syscall(SYS_open_by_handle_at, -1, p, 0), EPERM, EPERM);
    must_fail(t, "clone3", syscall(SYS_clone3, p, 0), ENOSYS, ENOSYS);
    must_fail(t, "unknown system call", syscall(1000), ENOSYS, ENOSYS);
    must_fail(t, "TIOCSTI", ioctl(STDIN_FILENO, TIOCSTI, p), EPERM, EPERM);
}

static void probe_namespaces(struct run *t)
{
    char *p = room;
    must_fail(t, "unshare", syscall(SYS_unshare, CLONE_NEWUSER), EPERM, EPERM);
    must_fail(t, "setns", syscall(SYS_setns, -1, 0), EPERM, EPERM);
    must_fail(t, "mount", syscall(SYS_mount, p, p, p, 0, NULL), EPERM, EPERM);
    must_fail(t, "umount", syscall(SYS_umount2, "/proc", 0), EPERM, EPERM);
    must_fail(t, "fsopen", syscall(SYS_fsopen, "tmpfs", 1), EPERM, EPERM);
}

/* Where mounts are possible ours stay as they are: in mounts of our own that the kernel locked, and
 * with a right to none of the namespaces above. */
static void probe_nested(struct run *t)
{
    static const char *const kept[] = {"/proc/sys", "/etc/durward", "/run/durward"};
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        must_fail(t, "uncover what is covered", umount2(kept[i], MNT_DETACH), EINVAL, EPERM);
        must_fail(t, "make it writable", mount(NULL, kept[i], NULL, MS_REMOUNT | MS_BIND, NULL),
                  EPERM, EPERM);
    }
    must_fail(t, "the same, of all below /proc", mount("/proc", "/tmp", NULL, MS_BIND, NULL),
              EINVAL, EPERM);
    must_fail(t, "/proc of our processes, whole", mount("proc", "/tmp", "proc", 0, NULL), EPERM,
              EPERM);
    must_fail(t, "/sys", mount("sysfs", "/tmp", "sysfs", 0, NULL), EPERM, EPERM);
    must_fail(t, "host name", sethostname("x", 1), EPERM, EPERM);
    must_fail(t, "fsopen", syscall(SYS_fsopen, "tmpfs", 1), ENOSYS, ENOSYS);
    must_fail(t, "time namespace", syscall(SYS_unshare, CLONE_NEWTIME), EPERM, EPERM);
    must_fail(t, "device", mknod("/tmp/durward-self-test", S_IFBLK | 0600, makedev(8, 0)), EPERM,
              EPERM);
}

#ifdef __x86_64__
static NORETURN void call_i386(void)
{
    long r = 20; /* getpid */
    __asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
    _exit(0);
}

static NORETURN void call_x32(void)
{
    (void)syscall(0x40000000 | SYS_getpid);
    _exit(0);
}

/* The filter kills whoever calls through another ABI; so a child of ours does. */
static void probe_abi(struct run *t, const char *probe, void (*call)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        call();
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        report(t, probe, false, "fork: %s", strerror(errno));
    else
        report(t, probe, WIFSIGNALED(status), "%s", WIFSIGNALED(status) ? "" : "was allowed");
}
#endif

static void probe_clone(struct run *t, bool nested)
{
    long pid = nested ? 0 : syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0 && !nested)
        _exit(0);
    if (!nested)
        must_fail(t, "clone a user namespace", pid, EPERM, EPERM);
#ifdef __x86_64__
    if (!t->gvisor) /* which takes them for its own, by its own numbers, and filters them so */
        probe_abi(t, "i386 calls", call_i386);
    probe_abi(t, "x32 calls", call_x32);
#endif
}

/* ---- files ---- */

static void must_not_open(struct run *t, const char *probe, const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    bool ok = fd < 0;
    report(t, probe, ok, "%s%s", path, ok ? "" : " was opened");
    if (fd >= 0)
        close(fd);
}

/* What can be written there is written to a layer, not to the host's or the image's file. */
static void must_be_layer(struct run *t, const char *probe, const char *path)
{
    struct statfs fs;
    if (statfs(path, &fs) < 0)
        report(t, probe, false, "statfs: %s", strerror(errno));
    else
        report(t, probe, fs.f_type == OVERLAYFS_SUPER_MAGIC || (fs.f_flags & ST_RDONLY),
               "file system %lx", (unsigned long)fs.f_type);
}

/* By its mount, whoever the files would be denied to by their owner. */
static void must_be_read_only(struct run *t, const char *probe, const char *path)
{
    struct statfs fs;
    bool ok = statfs(path, &fs) == 0 && (fs.f_flags & ST_RDONLY);
    report(t, probe, ok, "%s%s", path, ok ? "" : " is not mounted read-only");
}

/* Neither gVisor nor a guest shows what a layer or a mount of the host is; there the host's kernel
 * refuses what is written to the latter. */
static void probe_files(struct run *t, enum selftest_root root)
{
    if (root == SELFTEST_LAYERED && !t->gvisor && !t->guest) {
        must_be_layer(t, "layered root", "/");
        must_be_layer(t, "layered /usr", "/usr");
    } else if (root == SELFTEST_READ_ONLY) {
        must_not_open(t, "read-only root", "/durward-self-test", O_WRONLY | O_CREAT | O_EXCL);
        must_not_open(t, "read-only /usr", "/usr/durward-self-test", O_WRONLY | O_CREAT | O_EXCL);
    }
    must_not_open(t, "read-only /etc", "/etc/durward/self-test", O_WRONLY | O_CREAT | O_EXCL);
    must_not_open(t, "our own program", "/proc/self/exe", O_WRONLY);
    must_not_open(t, "/proc/sys", "/proc/sys/kernel/hostname", O_WRONLY);
    if (!t->gvisor) {
        must_be_read_only(t, "read-only /proc/sys", "/proc/sys");
        must_not_open(t, "sysrq", "/proc/sysrq-trigger", O_WRONLY);
    }
    must_not_open(t, "no /sys", "/sys/kernel", O_RDONLY);
    must_not_open(t, "no /dev/kmsg", "/dev/kmsg", O_RDONLY);
    must_not_open(t, "no /dev/kvm", "/dev/kvm", O_RDONLY);
    must_not_open(t, "no /dev/net/tun", "/dev/net/tun", O_RDONLY);
}

unsigned selftest_run(int control, enum selftest_root root, enum selftest_wall wall,
                      struct selftest_result results[SELFTEST_MAX])
{
    bool nested = wall == SELFTEST_NESTED;
    bool gvisor = wall == SELFTEST_OF_GVISOR, guest = wall == SELFTEST_IN_GUEST;
    struct run t = {.at = results,
                    .gvisor = gvisor,
                    .guest = guest,
                    .wait_ms = gvisor  ? GVISOR_WAIT_MS
                               : guest ? GUEST_WAIT_MS
                                       : START_WAIT_MS};
    probe_descriptors(&t, control); /* before any other probe opens one */
    int dns = dns_ask();
    probe_status(&t, nested ? SELFTEST_NESTED_CAPS : 0);
    probe_lines(&t, "interfaces", "/proc/net/dev", 2, " lo:");
    probe_lines(&t, "IPv4 routes", "/proc/net/route", 1, NULL);
    probe_lines(&t, "IPv6 routes", "/proc/net/ipv6_route", 0, " lo");
    probe_lines(&t, "unix sockets", "/proc/net/unix", 1, NULL);
    probe_netlink(&t);
    probe_families(&t);
    probe_udp(&t);
    probe_tcp(&t);
    probe_calls(&t);
    if (nested)
        probe_nested(&t);
    else
        probe_namespaces(&t);
    probe_clone(&t, nested);
    probe_files(&t, root);
    dns_finish(&t, dns);
    return t.n;
}
