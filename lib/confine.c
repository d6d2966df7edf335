/* The system calls that each role may make after its start, at most 60, some with certain arguments
 * only. Everything else is EPERM, and beside the filter stands Landlock, where there is one.
 *
 * As an ordinary user all roles have one uid, which may signal its own processes, talk to the
 * services of its session and configure the network of its sandboxes. What a role can do is
 * therefore what is here, and its uid adds nothing. */
#include "filter.h"
#include "landlock.h"
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A name that libseccomp has not does not compile. */
#define SC(name) (&#name[0 * SCMP_SYS(name)])

/* An event loop, memory, time. */
static const char *const base_calls[] = {
    SC(read),          SC(write),        SC(readv),           SC(writev),
    SC(recvmsg),       SC(recvfrom),     SC(close),           SC(epoll_wait),
    SC(epoll_pwait),   SC(epoll_ctl),    SC(munmap),          SC(brk),
    SC(madvise),       SC(mremap),       SC(futex),           SC(getrandom),
    SC(clock_gettime), SC(gettimeofday), SC(getpid),          SC(gettid),
    SC(exit),          SC(exit_group),   SC(rt_sigreturn),    SC(rt_sigprocmask),
    SC(fstat),         SC(newfstatat),   SC(restart_syscall), SC(poll),
    SC(getsockname),   SC(getpeername),  SC(getsockopt),      SC(shutdown),
    SC(pread64),       SC(mlock),        SC(munlock),         SC(sched_yield),
    SC(getuid),        SC(geteuid),      SC(timerfd_settime), SC(statx),
};

static const char *const gate_calls[] = {SC(accept4)};
static const char *const injector_calls[] = {SC(memfd_secret), SC(ftruncate)};
static const char *const exporter_calls[] = {SC(lseek)};
static const char *const fleet_calls[] = {SC(memfd_secret), SC(ftruncate), SC(lseek)};
static const char *const front_calls[] = {SC(lseek)};
static const char *const back_calls[] = {SC(memfd_secret), SC(ftruncate), SC(lseek)};
static const char *const vault_calls[] = {SC(memfd_secret), SC(ftruncate), SC(lseek)};
static const char *const dialer_calls[] = {SC(connect),      SC(bind),     SC(openat), SC(lseek),
                                           SC(getppid),      SC(sendmmsg), SC(uname),  SC(stat),
                                           SC(memfd_secret), SC(ftruncate)};
static const char *const logger_calls[] = {
    SC(openat),   SC(fdatasync), SC(fsync),  SC(ftruncate),  SC(lseek),
    SC(renameat), SC(unlinkat),  SC(flock),  SC(getdents64), SC(mkdirat),
    SC(fchmod),   SC(fallocate), SC(fstatfs)};
/* SQLite's, mostly. sysinfo is qsort's, which asks how much memory there is. */
static const char *const controller_calls[] = {
    SC(openat),   SC(fdatasync), SC(fsync),  SC(ftruncate),    SC(lseek),  SC(unlink),
    SC(pwrite64), SC(accept4),   SC(access), SC(memfd_create), SC(sysinfo)};
#if SANITIZED
static const char *const sanitizer_calls[] = {SC(ptrace),
                                              SC(open),
                                              SC(getdents),
                                              SC(clone),
                                              SC(wait4),
                                              SC(openat),
                                              SC(readlink),
                                              SC(getdents64),
                                              SC(sigaltstack),
                                              SC(prctl),
                                              SC(mmap),
                                              SC(mprotect),
                                              SC(gettid),
                                              SC(kill),
                                              SC(arch_prctl),
                                              SC(rt_sigaction),
                                              SC(getppid),
                                              SC(fcntl),
                                              SC(ioctl),
                                              SC(lseek),
                                              SC(sched_getaffinity),
                                              SC(process_vm_readv),
                                              SC(dup),
                                              SC(stat),
                                              SC(pipe),
                                              SC(pipe2),
                                              SC(getrlimit),
                                              SC(prlimit64),
                                              SC(set_robust_list),
                                              SC(rseq),
                                              SC(clone3),
                                              SC(sysinfo),
                                              SC(access),
                                              SC(unlink),
                                              SC(sigaltstack),
                                              SC(getcwd),
                                              SC(readlinkat),
                                              SC(lstat)};
#endif

static void allow_all(struct filter *f, const char *const *calls, size_t n)
{
    for (size_t i = 0; i < n; i++)
        filter_rule(f, SCMP_ACT_ALLOW, calls[i], 0, NULL);
}

/* A call with conditions on its arguments, all of which hold; whoever has several entries for a
 * call has what any of them allows. */
struct bounded_call {
    const char *call;
    unsigned who; /* roles, a bit each */
    struct scmp_arg_cmp when[2];
    unsigned n;
};

#define EACH    (~0U)
#define ONLY(r) (1U << ROLE_##r)
#define IS      FILTER_IS
#define HAS     FILTER_HAS
#define FRONTS                                                                        \
    (ONLY(SSH_FRONT) | ONLY(POSTGRES_FRONT) | ONLY(REDIS_FRONT) | ONLY(MYSQL_FRONT) | \
     ONLY(SMTP_FRONT) | ONLY(IMAP_FRONT))
#define BACKS                                                                     \
    (ONLY(SSH_BACK) | ONLY(POSTGRES_BACK) | ONLY(REDIS_BACK) | ONLY(MYSQL_BACK) | \
     ONLY(SMTP_BACK) | ONLY(IMAP_BACK))
#define TYPE_OF_SOCKET FILTER_SOCKET_TYPE

static const struct bounded_call bounded_calls[] = {
    /* Maps without execute permission; for roles that hold journals, anonymous ones or the shared
     * map of a memfd_secret only (a journal's descriptor is write-only, so it cannot be mapped at
     * all). */
    {SC(mmap), EACH, {HAS(2, PROT_EXEC, 0)}, 1},
    {SC(mprotect), EACH, {HAS(2, PROT_EXEC, 0)}, 1},
    /* MSG_FASTOPEN is connect(2) by another name: a listening socket, once shut down, would reach
     * any address with it. */
    {SC(sendto), EACH, {HAS(3, MSG_FASTOPEN, 0)}, 1},
    {SC(sendmsg), EACH, {HAS(2, MSG_FASTOPEN, 0)}, 1},
    /* Without F_SETFL: a journal's O_APPEND must stay; and nowhere F_SETOWN and F_SETSIG, which are
     * kill(2) by other names. */
    {SC(fcntl), EACH, {IS(1, F_GETFL)}, 1},
    {SC(fcntl), EACH, {IS(1, F_GETFD)}, 1},
    {SC(fcntl), EACH, {IS(1, F_SETFD)}, 1},
    {SC(fcntl), EACH, {IS(1, F_DUPFD_CLOEXEC)}, 1},
    {SC(fcntl), EACH, {IS(1, F_GET_SEALS)}, 1}, /* of a policy's image, before it is mapped */
    {SC(fcntl), ONLY(DIALER) | ONLY(CONTROLLER), {IS(1, F_SETFL)}, 1},
    {SC(fcntl), ONLY(LOGGER), {IS(1, F_SETLEASE)}, 1},
    {SC(fcntl), ONLY(CONTROLLER), {IS(1, F_GETLK)}, 1},
    {SC(fcntl), ONLY(CONTROLLER), {IS(1, F_SETLK)}, 1},
    {SC(fcntl), ONLY(CONTROLLER), {IS(1, F_ADD_SEALS)}, 1},
    {SC(ioctl), ONLY(DIALER) | ONLY(CONTROLLER), {IS(1, FIONREAD)}, 1},
    /* A terminal that a sandbox hands over: is it the master, and what is its size? */
    {SC(ioctl), ONLY(CONTROLLER), {IS(1, TIOCGPTN)}, 1},
    {SC(ioctl), ONLY(CONTROLLER), {IS(1, TIOCSWINSZ)}, 1},
    /* Whoever owns a sandbox's network may lay packet rules over any of its sockets, and a gate of
     * the same user does. */
    {SC(setsockopt), EACH, {IS(1, SOL_SOCKET), IS(2, SO_LINGER)}, 2},
    {SC(setsockopt), EACH, {IS(1, IPPROTO_TCP), IS(2, TCP_NODELAY)}, 2},
    {SC(setsockopt), ONLY(GATE), {IS(1, IPPROTO_IP), IS(2, IP_PKTINFO)}, 2},
    {SC(setsockopt), ONLY(GATE), {IS(1, IPPROTO_IPV6), IS(2, IPV6_RECVPKTINFO)}, 2},
    {SC(setsockopt), ONLY(GATE), {IS(1, IPPROTO_IPV6), IS(2, IPV6_FREEBIND)}, 2},
    /* No unix socket that could be connected: the user's session manager starts programs. */
    {SC(socket), ONLY(DIALER), {IS(0, AF_INET), HAS(1, TYPE_OF_SOCKET, SOCK_STREAM)}, 2},
    {SC(socket), ONLY(DIALER), {IS(0, AF_INET), HAS(1, TYPE_OF_SOCKET, SOCK_DGRAM)}, 2},
    {SC(socket), ONLY(DIALER), {IS(0, AF_INET6), HAS(1, TYPE_OF_SOCKET, SOCK_STREAM)}, 2},
    {SC(socket), ONLY(DIALER), {IS(0, AF_INET6), HAS(1, TYPE_OF_SOCKET, SOCK_DGRAM)}, 2},
    {SC(socket), ONLY(DIALER), {IS(0, AF_NETLINK), IS(2, NETLINK_ROUTE)}, 2},
    {SC(socketpair),
     ONLY(DIALER) | ONLY(CONTROLLER),
     {IS(0, AF_UNIX), HAS(1, TYPE_OF_SOCKET, SOCK_STREAM)},
     2},
    /* Between a broker's front and its back, and in the back towards its library: connected pairs,
     * which lead nowhere else. */
    {SC(socketpair), FRONTS, {IS(0, AF_UNIX), HAS(1, TYPE_OF_SOCKET, SOCK_SEQPACKET)}, 2},
    {SC(socketpair), BACKS, {IS(0, AF_UNIX), HAS(1, TYPE_OF_SOCKET, SOCK_STREAM)}, 2},
};

static void allow_with_bounds(struct filter *f, enum role r)
{
    for (size_t i = 0; i < ARRAY_LEN(bounded_calls); i++)
        if (bounded_calls[i].who >> r & 1)
            filter_rule(f, SCMP_ACT_ALLOW, bounded_calls[i].call, bounded_calls[i].n,
                        bounded_calls[i].when);
    /* libssh makes its socket block once it is connected, and goes on with nothing else: it is told
     * that it did. The socket stays as it is, and so does a journal's O_APPEND. */
    const struct scmp_arg_cmp flags = IS(1, F_SETFL);
    if (BACKS >> r & 1)
        filter_rule(f, SCMP_ACT_ERRNO(0), SC(fcntl), 1, &flags);
    /* signals to ourselves only (abort) */
    const struct scmp_arg_cmp self = IS(0, (scmp_datum_t)getpid());
    filter_rule(f, SCMP_ACT_ALLOW, SC(tgkill), 1, &self);
}

struct role_list {
    const char *const *calls;
    size_t n;
};

#define LIST(a)         \
    {                   \
        a, ARRAY_LEN(a) \
    }
static const struct role_list lists[ROLE_COUNT] = {
    [ROLE_GATE] = LIST(gate_calls),          [ROLE_INJECTOR] = LIST(injector_calls),
    [ROLE_VAULT] = LIST(vault_calls),        [ROLE_DIALER] = LIST(dialer_calls),
    [ROLE_LOGGER] = LIST(logger_calls),      [ROLE_CONTROLLER] = LIST(controller_calls),
    [ROLE_EXPORTER] = LIST(exporter_calls),  [ROLE_SSH_FRONT] = LIST(front_calls),
    [ROLE_SSH_BACK] = LIST(back_calls),      [ROLE_POSTGRES_FRONT] = LIST(front_calls),
    [ROLE_POSTGRES_BACK] = LIST(back_calls), [ROLE_REDIS_FRONT] = LIST(front_calls),
    [ROLE_REDIS_BACK] = LIST(back_calls),    [ROLE_MYSQL_FRONT] = LIST(front_calls),
    [ROLE_MYSQL_BACK] = LIST(back_calls),    [ROLE_SMTP_FRONT] = LIST(front_calls),
    [ROLE_SMTP_BACK] = LIST(back_calls),     [ROLE_IMAP_FRONT] = LIST(front_calls),
    [ROLE_IMAP_BACK] = LIST(back_calls),     [ROLE_FLEET] = LIST(fleet_calls),
};

/* These two start other programs; what they start is confined by itself. */
static bool starts_programs(enum role r)
{
    return r == ROLE_PARENT || r == ROLE_BUILDER;
}

static size_t add_call(uint32_t arch, const char *call, int *calls, size_t n, size_t cap)
{
    int nr = filter_number(arch, call);
    size_t k = 0;
    while (k < n && calls[k] != nr)
        k++;
    if (k == n && n < cap && nr >= 0)
        calls[n++] = nr;
    return n;
}

size_t proc_calls(enum role r, uint32_t arch, int *calls, size_t cap)
{
    size_t n = 0;
    if (starts_programs(r))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(base_calls); i++)
        n = add_call(arch, base_calls[i], calls, n, cap);
    for (size_t i = 0; i < ARRAY_LEN(bounded_calls); i++)
        if (bounded_calls[i].who >> r & 1)
            n = add_call(arch, bounded_calls[i].call, calls, n, cap);
    n = add_call(arch, SC(tgkill), calls, n, cap);
    for (size_t i = 0; i < lists[r].n; i++)
        n = add_call(arch, lists[r].calls[i], calls, n, cap);
    return n;
}

static struct filter *make(enum role r, uint32_t arch)
{
    struct filter *f = filter_new(arch, SCMP_ACT_ERRNO(EPERM));
    allow_all(f, base_calls, ARRAY_LEN(base_calls));
    allow_with_bounds(f, r);
    allow_all(f, lists[r].calls, lists[r].n);
#if SANITIZED
    allow_all(f, sanitizer_calls, ARRAY_LEN(sanitizer_calls));
#endif
    return f;
}

int proc_filter(enum role r, uint32_t arch, struct filter_program *ret, struct err *err)
{
    memset(ret, 0, sizeof *ret);
    if (starts_programs(r))
        return 0;
    struct filter *f = make(r, arch);
    int n = filter_write(f, 0, ret, err);
    filter_free(f);
    return n;
}

int proc_confine_to(enum role r, const struct landlock_place *places, size_t n, struct err *err)
{
    const struct landlock_reach reach = {places, n, .connects = r == ROLE_DIALER};
    if (starts_programs(r))
        return 0;
    tzset(); /* libc looks for the time zone once, for UTC too */
    if (!SANITIZED && landlock_enter(&reach, err) < 0) /* LeakSanitizer opens files */
        return -1;
    struct filter *f = make(r, FILTER_NATIVE);
    int loaded = filter_load(f, err);
    filter_free(f);
    return loaded < 0 ? err_wrap(err, "the system calls of the %s", role_name(r)) : 0;
}

int proc_confine(enum role r, struct err *err)
{
    return proc_confine_to(r, NULL, 0, err);
}
