/* A pod's keeper: what durward-init is to a sandbox of ours, outside of the pod. It holds no way
 * into it; its logs are the kernel's words about packets, counted and told in small numbers. */
#define _GNU_SOURCE 1
#include "pod_backend.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "filter.h"
#include "idmap.h"
#include "ipc_msg.h"
#include "proc.h"
#include "run.h"
#include "wire.h"

enum {
    DATAGRAM_MAX = 64 * 1024,
    BATCH = 64,
    PAUSE_MS = 20,   /* after a batch */
    FIRST_MS = 500,  /* so long after the first that is worth telling */
    AGAIN_MS = 60000 /* and so long until the next time */
};

struct keeper {
    const struct pod_keeper *of;
    struct pod_seen seen;
    uint64_t due; /* 0: nothing is to be told */
    uint64_t told;
};

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void count(struct keeper *k, uint32_t address, uint16_t port, bool refused)
{
    pod_seen_count(&k->seen, address, port, refused);
    uint64_t soon = now_ms() + FIRST_MS;
    if (k->due == 0)
        k->due = k->told && k->told + AGAIN_MS > soon ? k->told + AGAIN_MS : soon;
}

/* The beginning of an IPv4 packet: from where and to which port, or of what was refused to where.
 */
static void on_packet(struct keeper *k, const unsigned char *p, size_t n, bool refused)
{
    uint32_t address;
    uint16_t port = 0;
    if (n < 20 || p[0] >> 4 != 4)
        return;
    size_t head = (size_t)(p[0] & 15) * 4;
    memcpy(&address, p + (refused ? 16 : 12), sizeof address);
    bool ports = (p[9] == IPPROTO_TCP || p[9] == IPPROTO_UDP) && n >= head + 4 && head >= 20;
    if (ports)
        memcpy(&port, p + head + 2, sizeof port);
    count(k, ntohl(address), ntohs(port), refused);
}

static void on_message(struct keeper *k, const struct nlmsghdr *h, bool refused)
{
    const struct nlattr *a;
    if (h->nlmsg_type != (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET) ||
        mnl_nlmsg_get_payload_len(h) < sizeof(struct nfgenmsg))
        return;
    mnl_attr_for_each(a, h, sizeof(struct nfgenmsg)) if (mnl_attr_get_type(a) == NFULA_PAYLOAD)
        on_packet(k, mnl_attr_get_payload(a), mnl_attr_get_payload_len(a), refused);
}

/* -1: nothing is left to read. */
static int read_log(struct keeper *k, int fd, bool refused)
{
    static char room[DATAGRAM_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
    struct sockaddr_nl from = {0};
    socklen_t from_n = sizeof from;
    ssize_t n = recvfrom(fd, room, sizeof room, MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)&from,
                         &from_n);
    if (n < 0)
        return errno == EINTR || errno == ENOBUFS ? 0 : -1;
    if ((size_t)n > sizeof room || from.nl_pid != 0)
        return 0; /* too long, or not the kernel's */
    int left = (int)n;
    for (const struct nlmsghdr *h = (const void *)room; mnl_nlmsg_ok(h, left);
         h = mnl_nlmsg_next(h, &left))
        on_message(k, h, refused);
    return 0;
}

static void read_logs(struct keeper *k, bool inbound, bool refused)
{
    static const struct timespec pause = {0, PAUSE_MS * 1000000};
    bool more = true;
    for (int i = 0; i < BATCH && more; i++) {
        bool one = inbound && read_log(k, k->of->inbound, false) == 0;
        bool other = refused && read_log(k, k->of->refused, true) == 0;
        more = one || other;
    }
    if (more)
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

/* ---- in durward-init's place ---- */

static int say(struct msg *m)
{
    int r = msg_send(LAUNCHER_INIT, m);
    msg_done(m);
    return r < 0 ? -1 : 0; /* 1: nobody reads; what is told is a count, told again */
}

static int say_ready(void)
{
    static const char *const probes[] = {"rules", "interfaces", "listeners"};
    struct msg m;
    msg_init(&m, W_INIT_READY);
    msg_put_u8(&m, 1);
    msg_put_u32(&m, ARRAY_LEN(probes));
    for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
        msg_put_str(&m, probes[i]);
        msg_put_u8(&m, 1);
        msg_put_str(&m, "");
    }
    return say(&m);
}

static int tell_seen(struct keeper *k)
{
    struct msg m;
    msg_init(&m, W_POD_INBOUND);
    pod_seen_put(&k->seen, &m);
    k->due = 0;
    k->told = now_ms();
    return say(&m);
}

/* Commands and files of a pod are the cluster's business: kubectl. */
static int refuse(struct msg *asked)
{
    struct msg m;
    uint32_t number;
    bool file = asked->type == W_INIT_FILE || asked->type == W_INIT_WATCH;
    if (msg_get_u32(asked, &number) < 0)
        return -1;
    msg_init(&m, W_INIT_EXIT);
    msg_put_u32(&m, number);
    msg_put_u32(&m, file ? EOPNOTSUPP : EXIT_DURWARD_FAILED);
    msg_put_str(&m, "a pod's commands and files are its cluster's: kubectl exec, kubectl cp");
    return say(&m);
}

static int on_asked(void)
{
    struct msg asked, answer;
    if (msg_recv(LAUNCHER_INIT, &asked) <= 0)
        return -1;
    int r = 0;
    switch (asked.type) {
    case W_INIT_RESET:
        msg_init(&answer, W_INIT_RESET);
        r = say(&answer);
        break;
    case W_INIT_EXEC:
    case W_INIT_FILE:
    case W_INIT_CONNECT:
    case W_INIT_WATCH:
        r = refuse(&asked);
        break;
    default: /* of a command, which there is none */
        break;
    }
    msg_done(&asked);
    return r;
}

/* ---- its rights, and its loop ---- */

/* A name that libseccomp has not does not compile. */
#define SC(name) (&#name[0 * SCMP_SYS(name)])

static int confine(struct err *err)
{
    static const char *const calls[] = {
        SC(read),   SC(write),          SC(recvfrom),     SC(recvmsg),       SC(sendmsg),
        SC(sendto), SC(poll),           SC(close),        SC(clock_gettime), SC(clock_nanosleep),
        SC(brk),    SC(munmap),         SC(rt_sigreturn), SC(exit_group),    SC(restart_syscall),
        SC(mremap), SC(rt_sigprocmask), SC(futex),        SC(getpid),        SC(madvise),
    };
    struct scmp_arg_cmp plain[] = {SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)};
    struct filter *f = filter_new(FILTER_NATIVE, SCMP_ACT_ERRNO(EPERM));
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        filter_rule(f, SCMP_ACT_ALLOW, calls[i], 0, NULL);
    filter_rule(f, SCMP_ACT_ALLOW, SC(mmap), 1, plain);
    int r = SANITIZED ? 0 : filter_load(f, err);
    filter_free(f);
    return r;
}

static int give_up_rights(struct err *err)
{
    struct idmap nobody;
    idmap_root(&nobody);
    if (setgroups(0, NULL) < 0 || setresgid(nobody.gid, nobody.gid, nobody.gid) < 0 ||
        setresuid(nobody.uid, nobody.uid, nobody.uid) < 0)
        return err_sys(err, "cannot become uid %u", (unsigned)nobody.uid);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) /* the change of credentials took it back */
        return err_sys(err, "the pod's keeper");
    return confine(err);
}

/* The process whose end would be the sandbox's is this one. */
static int say_pid(struct err *err)
{
    char info[64];
    int n = snprintf(info, sizeof info, "{\"child-pid\": %d}\n", (int)getpid());
    return write(LAUNCHER_INFO, info, (size_t)n) == n ? 0 : err_sys(err, "the builder is gone");
}

/* False: it is over. */
static bool turn(struct keeper *k)
{
    struct pollfd p[5] = {{.fd = LAUNCHER_INIT, .events = POLLIN},
                          {.fd = k->of->inbound, .events = POLLIN},
                          {.fd = k->of->refused, .events = POLLIN},
                          {.fd = k->of->signals, .events = POLLIN},
                          {.fd = LAUNCHER_CHANNEL, .events = POLLIN}};
    uint64_t now = now_ms();
    int wait = k->due == 0 ? -1 : k->due > now ? (int)(k->due - now) : 0;
    int n = poll(p, ARRAY_LEN(p), wait);
    if (n < 0 && errno != EINTR)
        return false;
    if (n > 0 && (p[3].revents || p[4].revents))
        return false;
    if (n > 0 && p[0].revents && on_asked() < 0)
        return false;
    if (n > 0 && (p[1].revents || p[2].revents))
        read_logs(k, p[1].revents != 0, p[2].revents != 0);
    return k->due == 0 || now_ms() < k->due || tell_seen(k) == 0;
}

int pod_keep(const struct pod_keeper *of, struct err *err)
{
    static struct keeper k;
    k = (struct keeper){.of = of};
    /* only what turn() looks at stays open */
    if (say_pid(err) < 0)
        return -1;
    for (int fd = LAUNCHER_FILTER; fd < LAUNCHER_FDS; fd++)
        if (fd != LAUNCHER_CHANNEL)
            close(fd);
    if (give_up_rights(err) < 0)
        return -1;
    if (say_ready() < 0)
        return err_set(err, ERR_UNREADY, "the builder does not listen");
    while (turn(&k)) {
    }
    return 0;
}
