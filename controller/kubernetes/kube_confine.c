/* Landlock for files, and a filter of system calls for what Landlock does not hold: other processes
 * of this uid and services behind unix sockets, which are root's where the daemon is. */
#define _GNU_SOURCE 1
#include "kube_confine.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "cluster.h"
#include "filter.h"
#include "landlock.h"
#include "proc.h"

/* A name that libseccomp has not does not compile. */
#define SC(name) (&#name[0 * SCMP_SYS(name)])

/* ---- who asks ---- */

static int confine_files(const char *token, int keep, struct err *err)
{
    static const char *const paths[] = {"/etc/resolv.conf",
                                        "/etc/hosts",
                                        "/etc/nsswitch.conf",
                                        "/etc/host.conf",
                                        "/etc/gai.conf",
                                        "/usr/lib",
                                        "/lib",
                                        "/lib64"};
    enum { FIXED = 2, N = FIXED + ARRAY_LEN(paths) };
    struct landlock_place places[N];
    char folder[CLUSTER_PATH_MAX + 1];
    size_t n = 0;
    snprintf(folder, sizeof folder, "%s", token); /* which is replaced by another file */
    char *slash = strrchr(folder, '/');
    if (slash && slash > folder)
        *slash = '\0';
    places[n++] = (struct landlock_place){open(folder, O_PATH | O_CLOEXEC), LANDLOCK_READ};
    if (places[0].fd < 0)
        return err_sys(err, "%s", folder);
    if (keep >= 0)
        places[n++] = (struct landlock_place){fcntl(keep, F_DUPFD_CLOEXEC, 3), LANDLOCK_KEEP};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        int fd = open(paths[i], O_PATH | O_CLOEXEC);
        if (fd >= 0)
            places[n++] = (struct landlock_place){fd, LANDLOCK_READ};
    }
    struct landlock_reach reach = {.places = places, .n = n, .connects = true};
    int r = landlock_enter(&reach, err);
    for (size_t i = 0; i < n; i++)
        close(places[i].fd);
    return r;
}

#define LOW 0xffffffff /* of an argument: the kernel takes an int */

static void refuse_where(struct filter *f, const char *call, struct scmp_arg_cmp when)
{
    filter_rule(f, SCMP_ACT_ERRNO(EPERM), call, 1, &when);
}

static const char *const refused[] = {
    SC(execve),
    SC(execveat),
    SC(kill),
    SC(tkill),
    SC(rt_sigqueueinfo),
    SC(rt_tgsigqueueinfo),
    SC(pidfd_open),
    SC(pidfd_send_signal),
    SC(pidfd_getfd),
    SC(ptrace),
    SC(process_vm_readv),
    SC(process_vm_writev),
    SC(process_madvise),
    SC(kcmp),
    SC(setpriority),
    SC(ioprio_set),
    SC(sched_setaffinity),
    SC(sched_setscheduler),
    SC(sched_setattr),
    SC(sched_setparam),
    SC(migrate_pages),
    SC(move_pages),
    SC(unshare),
    SC(setns),
    SC(mount),
    SC(umount2),
    SC(pivot_root),
    SC(bpf),
    SC(perf_event_open),
    SC(userfaultfd),
    SC(io_uring_setup),
    SC(io_uring_enter),
    SC(io_uring_register),
    SC(add_key),
    SC(request_key),
    SC(keyctl),
    SC(shmget),
    SC(msgget),
    SC(semget),
    SC(mq_open),
    SC(memfd_create),
    SC(name_to_handle_at),
    SC(open_by_handle_at),
};

/* What a resolver's modules call is the host's business, so that this says what nobody may. */
static int refuse_calls(struct err *err)
{
    struct filter *f = filter_new(FILTER_NATIVE, SCMP_ACT_ALLOW);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        filter_rule(f, SCMP_ACT_ERRNO(EPERM), refused[i], 0, NULL);
    for (uint64_t family = 0; family < AF_MAX; family++)
        if (family != AF_INET && family != AF_INET6 && family != AF_NETLINK)
            refuse_where(f, SC(socket), SCMP_A0(SCMP_CMP_MASKED_EQ, LOW, family));
    refuse_where(f, SC(fcntl), SCMP_A1(SCMP_CMP_MASKED_EQ, LOW, F_SETOWN)); /* kill(2) by others' */
    refuse_where(f, SC(fcntl), SCMP_A1(SCMP_CMP_MASKED_EQ, LOW, F_SETOWN_EX)); /* names */
    refuse_where(f, SC(tgkill), SCMP_A0(SCMP_CMP_NE, (scmp_datum_t)getpid()));
    refuse_where(f, SC(prlimit64), SCMP_A0(SCMP_CMP_NE, 0));
    refuse_where(f, SC(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER));
    filter_rule(f, SCMP_ACT_ERRNO(ENOSYS), SC(clone3), 0, NULL); /* its flags lie in memory */
    int r = SANITIZED ? 0 : filter_load(f, err);
    filter_free(f);
    return r;
}

int kube_confine(const char *token, int keep, struct err *err)
{
    return confine_files(token, keep, err) < 0 ? -1 : refuse_calls(err);
}

/* ---- who carries ---- */

int kube_confine_carrier(struct err *err)
{
    static const char *const calls[] = {
        SC(read),      SC(write),      SC(recvfrom),        SC(recvmsg),       SC(sendmsg),
        SC(sendto),    SC(poll),       SC(close),           SC(clock_gettime), SC(gettimeofday),
        SC(brk),       SC(munmap),     SC(mremap),          SC(madvise),       SC(futex),
        SC(getrandom), SC(getpid),     SC(gettid),          SC(rt_sigreturn),  SC(rt_sigprocmask),
        SC(exit),      SC(exit_group), SC(restart_syscall), SC(fstat),
    };
    static const struct landlock_reach nothing = {.places = NULL};
    struct scmp_arg_cmp plain[] = {SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)};
    struct scmp_arg_cmp size[] = {SCMP_A1(SCMP_CMP_EQ, TIOCGWINSZ)};
    if (landlock_enter(&nothing, err) < 0)
        return -1;
    struct filter *f = filter_new(FILTER_NATIVE, SCMP_ACT_ERRNO(EPERM));
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        filter_rule(f, SCMP_ACT_ALLOW, calls[i], 0, NULL);
    filter_rule(f, SCMP_ACT_ALLOW, SC(mmap), 1, plain);
    filter_rule(f, SCMP_ACT_ALLOW, SC(mprotect), 1, plain);
    filter_rule(f, SCMP_ACT_ALLOW, SC(ioctl), 1, size);
    int r = SANITIZED ? 0 : filter_load(f, err);
    filter_free(f);
    return r;
}
