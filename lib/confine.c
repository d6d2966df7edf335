/* The system calls that each role may make after its start, at most 60. Everything else is EPERM,
 * and beside the filter stands Landlock, where there is one. */
#include "landlock.h"
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define SC(name) SCMP_SYS(name)

/* Where the kernel has no call of that name (arm64, riscv64), libc makes the newer one, and the
 * filter must know that one. Of the rest libseccomp leaves out what an architecture lacks. */
#ifdef __NR_poll
#define SC_POLL SC(poll)
#else
#define SC_POLL SC(ppoll)
#endif

#ifdef __NR_renameat
#define SC_RENAMEAT SC(renameat)
#else
#define SC_RENAMEAT SC(renameat2)
#endif
#ifdef __NR_unlink
#define SC_UNLINK SC(unlink)
#else
#define SC_UNLINK SC(unlinkat)
#endif
#ifdef __NR_access
#define SC_ACCESS SC(access)
#else
#define SC_ACCESS SC(faccessat)
#endif

/* An event loop, memory, time. */
static const int base_calls[] = {
    SC(read),          SC(write),        SC(readv),           SC(writev),
    SC(recvmsg),       SC(recvfrom),     SC(close),           SC(epoll_wait),
    SC(epoll_pwait),   SC(epoll_ctl),    SC(munmap),          SC(brk),
    SC(madvise),       SC(mremap),       SC(futex),           SC(getrandom),
    SC(clock_gettime), SC(gettimeofday), SC(getpid),          SC(gettid),
    SC(exit),          SC(exit_group),   SC(rt_sigreturn),    SC(rt_sigprocmask),
    SC(fstat),         SC(newfstatat),   SC(restart_syscall), SC_POLL,
    SC(getsockname),   SC(getpeername),  SC(getsockopt),      SC(setsockopt),
    SC(shutdown),      SC(pread64),      SC(mlock),           SC(munlock),
    SC(sched_yield),   SC(getuid),       SC(geteuid),         SC(timerfd_settime),
};

static const int gate_calls[] = {SC(accept4)};
static const int injector_calls[] = {SC(memfd_secret), SC(ftruncate)};
static const int courier_calls[] = {SC(lseek)};
static const int vault_calls[] = {SC(memfd_secret), SC(ftruncate), SC(lseek)};
static const int dialer_calls[] = {SC(sendto),     SC(socket),       SC(connect),  SC(bind),
                                   SC(openat),     SC(lseek),        SC(ioctl),    SC(getppid),
                                   SC(sendmmsg),   SC(uname),        SC(stat),     SC(fcntl),
                                   SC(socketpair), SC(memfd_secret), SC(ftruncate)};
static const int logger_calls[] = {
    SC(openat), SC(fdatasync),  SC(fsync),   SC(ftruncate), SC(lseek),  SC_RENAMEAT, SC(unlinkat),
    SC(flock),  SC(getdents64), SC(mkdirat), SC(fcntl),     SC(fchmod), SC(dup),     SC(fallocate)};
/* SQLite's, mostly. sysinfo is qsort's, which asks how much memory there is. */
static const int controller_calls[] = {
    SC(openat), SC(fdatasync), SC(fsync),        SC(ftruncate),  SC(lseek),
    SC_UNLINK,  SC(pwrite64),  SC(fcntl),        SC(accept4),    SC(fchmod),
    SC_ACCESS,  SC(ioctl),     SC(memfd_create), SC(socketpair), SC(sysinfo)};
#if SANITIZED
static const int sanitizer_calls[] = {SC(ptrace),
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

static int allow_all(scmp_filter_ctx f, const int *calls, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (seccomp_rule_add(f, SCMP_ACT_ALLOW, calls[i], 0) < 0)
            return -1;
    return 0;
}

/* Maps without execute permission; for roles that hold journals, anonymous ones or the shared map
 * of a memfd_secret only (a journal's descriptor is write-only, so it cannot be mapped at all). */
static int allow_memory(scmp_filter_ctx f)
{
    int r =
        seccomp_rule_add(f, SCMP_ACT_ALLOW, SC(mmap), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    return r | seccomp_rule_add(f, SCMP_ACT_ALLOW, SC(mprotect), 1,
                                SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
}

/* Sending without MSG_FASTOPEN, which is connect(2) by another name: a listening socket, once shut
 * down, would reach any address with it. Signals to ourselves only (abort): as an ordinary user all
 * roles have one uid. */
static int allow_with_bounds(scmp_filter_ctx f)
{
    int r = seccomp_rule_add(f, SCMP_ACT_ALLOW, SC(sendto), 1,
                             SCMP_A3(SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, 0));
    r |= seccomp_rule_add(f, SCMP_ACT_ALLOW, SC(sendmsg), 1,
                          SCMP_A2(SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, 0));
    return r | seccomp_rule_add(f, SCMP_ACT_ALLOW, SC(tgkill), 1,
                                SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
}

/* fcntl without F_SETFL: a journal's O_APPEND must stay. */
static int allow_fcntl(scmp_filter_ctx f)
{
    static const int cmds[] = {F_GETFL, F_GETFD, F_SETFD, F_DUPFD_CLOEXEC};
    int r = 0;
    for (size_t i = 0; i < ARRAY_LEN(cmds); i++)
        r |= seccomp_rule_add(f, SCMP_ACT_ALLOW, SC(fcntl), 1,
                              SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)cmds[i]));
    return r;
}

struct role_list {
    const int *calls;
    size_t n;
    enum landlock_reach reach;
};

#define LIST(a, reach)         \
    {                          \
        a, ARRAY_LEN(a), reach \
    }
static const struct role_list lists[ROLE_COUNT] = {
    [ROLE_GATE] = LIST(gate_calls, LANDLOCK_NOTHING),
    [ROLE_INJECTOR] = LIST(injector_calls, LANDLOCK_NOTHING),
    [ROLE_VAULT] = LIST(vault_calls, LANDLOCK_NOTHING),
    [ROLE_DIALER] = LIST(dialer_calls, LANDLOCK_READS),
    [ROLE_LOGGER] = LIST(logger_calls, LANDLOCK_KEEPS),
    [ROLE_CONTROLLER] = LIST(controller_calls, LANDLOCK_KEEPS),
    [ROLE_COURIER] = LIST(courier_calls, LANDLOCK_NOTHING),
};

/* Each of these with a condition on its arguments. */
static const int bounded_calls[] = {SC(mmap), SC(mprotect), SC(sendto), SC(sendmsg), SC(tgkill)};

/* These two start other programs; what they start is confined by itself. */
static bool starts_programs(enum role r)
{
    return r == ROLE_PARENT || r == ROLE_BUILDER;
}

static bool bounds_fcntl(enum role r)
{
    return r != ROLE_DIALER && r != ROLE_LOGGER && r != ROLE_CONTROLLER;
}

size_t proc_calls(enum role r, int *calls, size_t cap)
{
    static const int fcntl_call[] = {SC(fcntl)};
    const struct role_list all[] = {{base_calls, ARRAY_LEN(base_calls), 0},
                                    {bounded_calls, ARRAY_LEN(bounded_calls), 0},
                                    {fcntl_call, bounds_fcntl(r) ? 1 : 0, 0},
                                    lists[r]};
    size_t n = 0;
    for (size_t l = 0; l < ARRAY_LEN(all) && !starts_programs(r); l++)
        for (size_t i = 0; i < all[l].n; i++) {
            size_t k = 0;
            while (k < n && calls[k] != all[l].calls[i])
                k++;
            if (k == n && n < cap && all[l].calls[i] >= 0) /* below: not of this architecture */
                calls[n++] = all[l].calls[i];
        }
    return n;
}

int proc_confine(enum role r, struct err *err)
{
    if (starts_programs(r))
        return 0;
    if (!SANITIZED && landlock_enter(lists[r].reach, err) < 0) /* LeakSanitizer opens files */
        return -1;
    scmp_filter_ctx f = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (f == NULL)
        return err_set(err, ERR_INTERNAL, "seccomp_init failed");
    int bad = seccomp_attr_set(f, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    bad |= seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    bad |= allow_all(f, base_calls, ARRAY_LEN(base_calls));
    bad |= allow_memory(f);
    bad |= allow_with_bounds(f);
    bad |= allow_all(f, lists[r].calls, lists[r].n);
    if (bounds_fcntl(r))
        bad |= allow_fcntl(f);
#if SANITIZED
    bad |= allow_all(f, sanitizer_calls, ARRAY_LEN(sanitizer_calls));
#endif
    if (bad == 0)
        bad = seccomp_load(f);
    seccomp_release(f);
    if (bad)
        return err_set(err, ERR_INTERNAL, "cannot install the system-call filter of the %s",
                       role_name(r));
    return 0;
}
