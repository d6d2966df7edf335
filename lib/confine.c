/* The system calls that each role may make after its start, at most 60. Everything else is EPERM,
 * and beside the filter stands Landlock, where there is one. */
#include "filter.h"
#include "landlock.h"
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
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
    SC(getsockname),   SC(getpeername),  SC(getsockopt),      SC(setsockopt),
    SC(shutdown),      SC(pread64),      SC(mlock),           SC(munlock),
    SC(sched_yield),   SC(getuid),       SC(geteuid),         SC(timerfd_settime),
};

static const char *const gate_calls[] = {SC(accept4)};
static const char *const injector_calls[] = {SC(memfd_secret), SC(ftruncate)};
static const char *const courier_calls[] = {SC(lseek)};
static const char *const vault_calls[] = {SC(memfd_secret), SC(ftruncate), SC(lseek)};
static const char *const dialer_calls[] = {
    SC(sendto), SC(socket), SC(connect),    SC(bind),         SC(openat),
    SC(lseek),  SC(ioctl),  SC(getppid),    SC(sendmmsg),     SC(uname),
    SC(stat),   SC(fcntl),  SC(socketpair), SC(memfd_secret), SC(ftruncate)};
static const char *const logger_calls[] = {
    SC(openat),   SC(fdatasync), SC(fsync), SC(ftruncate),  SC(lseek),
    SC(renameat), SC(unlinkat),  SC(flock), SC(getdents64), SC(mkdirat),
    SC(fcntl),    SC(fchmod),    SC(dup),   SC(fallocate)};
/* SQLite's, mostly. sysinfo is qsort's, which asks how much memory there is. */
static const char *const controller_calls[] = {
    SC(openat), SC(fdatasync), SC(fsync),        SC(ftruncate),  SC(lseek),
    SC(unlink), SC(pwrite64),  SC(fcntl),        SC(accept4),    SC(fchmod),
    SC(access), SC(ioctl),     SC(memfd_create), SC(socketpair), SC(sysinfo)};
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

static void allow_if(struct filter *f, const char *call, struct scmp_arg_cmp condition)
{
    filter_rule(f, SCMP_ACT_ALLOW, call, 1, &condition);
}

/* Maps without execute permission; for roles that hold journals, anonymous ones or the shared map
 * of a memfd_secret only (a journal's descriptor is write-only, so it cannot be mapped at all). */
static void allow_memory(struct filter *f)
{
    allow_if(f, SC(mmap), SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    allow_if(f, SC(mprotect), SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
}

/* Sending without MSG_FASTOPEN, which is connect(2) by another name: a listening socket, once shut
 * down, would reach any address with it. Signals to ourselves only (abort): as an ordinary user all
 * roles have one uid. */
static void allow_with_bounds(struct filter *f)
{
    allow_if(f, SC(sendto), SCMP_A3(SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, 0));
    allow_if(f, SC(sendmsg), SCMP_A2(SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, 0));
    allow_if(f, SC(tgkill), SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
}

/* fcntl without F_SETFL: a journal's O_APPEND must stay. */
static void allow_fcntl(struct filter *f)
{
    static const int cmds[] = {F_GETFL, F_GETFD, F_SETFD, F_DUPFD_CLOEXEC};
    for (size_t i = 0; i < ARRAY_LEN(cmds); i++)
        allow_if(f, SC(fcntl), SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)cmds[i]));
}

struct role_list {
    const char *const *calls;
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
static const char *const bounded_calls[] = {SC(mmap), SC(mprotect), SC(sendto), SC(sendmsg),
                                            SC(tgkill)};

/* These two start other programs; what they start is confined by itself. */
static bool starts_programs(enum role r)
{
    return r == ROLE_PARENT || r == ROLE_BUILDER;
}

static bool bounds_fcntl(enum role r)
{
    return r != ROLE_DIALER && r != ROLE_LOGGER && r != ROLE_CONTROLLER;
}

size_t proc_calls(enum role r, uint32_t arch, int *calls, size_t cap)
{
    static const char *const fcntl_call[] = {SC(fcntl)};
    const struct role_list all[] = {{base_calls, ARRAY_LEN(base_calls), 0},
                                    {bounded_calls, ARRAY_LEN(bounded_calls), 0},
                                    {fcntl_call, bounds_fcntl(r) ? 1 : 0, 0},
                                    lists[r]};
    size_t n = 0;
    for (size_t l = 0; l < ARRAY_LEN(all) && !starts_programs(r); l++)
        for (size_t i = 0; i < all[l].n; i++) {
            int nr = filter_number(arch, all[l].calls[i]);
            size_t k = 0;
            while (k < n && calls[k] != nr)
                k++;
            if (k == n && n < cap && nr >= 0)
                calls[n++] = nr;
        }
    return n;
}

static struct filter *make(enum role r, uint32_t arch)
{
    struct filter *f = filter_new(arch, SCMP_ACT_ERRNO(EPERM));
    allow_all(f, base_calls, ARRAY_LEN(base_calls));
    allow_memory(f);
    allow_with_bounds(f);
    allow_all(f, lists[r].calls, lists[r].n);
    if (bounds_fcntl(r))
        allow_fcntl(f);
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

int proc_confine(enum role r, struct err *err)
{
    if (starts_programs(r))
        return 0;
    if (!SANITIZED && landlock_enter(lists[r].reach, err) < 0) /* LeakSanitizer opens files */
        return -1;
    struct filter *f = make(r, FILTER_NATIVE);
    int n = filter_load(f, err);
    filter_free(f);
    return n < 0 ? err_wrap(err, "the system calls of the %s", role_name(r)) : 0;
}
