/* The filters of every role and of the sandbox, as written for x86-64 and for arm64, on whichever
 * of them this is: read instruction by instruction, call by call. What the kernel makes of the one
 * of this processor is tried by test_proc and test_sandbox_seccomp. */
#define _GNU_SOURCE 1
#include "tap_main.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "filter_machine.h"
#include "filter_numbers.h"
#include "proc.h"
#include "sandbox_seccomp.h"

enum { LAST_NUMBER = 1100, X32 = 0x40000000, KILLED = -1 };

static const uint32_t archs[] = {SCMP_ARCH_X86_64, SCMP_ARCH_AARCH64};
/* Others that the same processors run, and some that they do not. */
static const uint32_t others[] = {AUDIT_ARCH_I386,
                                  AUDIT_ARCH_ARM,
                                  AUDIT_ARCH_X86_64,
                                  AUDIT_ARCH_AARCH64,
                                  AUDIT_ARCH_S390X,
                                  AUDIT_ARCH_RISCV64,
                                  0};
#define ROLE_BIT(role) (UINT64_C(1) << (role))
_Static_assert(ROLE_COUNT <= 64, "a bit for each");

#define FRONTS                                                                               \
    (ROLE_BIT(ROLE_SSH_FRONT) | ROLE_BIT(ROLE_POSTGRES_FRONT) | ROLE_BIT(ROLE_REDIS_FRONT) | \
     ROLE_BIT(ROLE_MYSQL_FRONT) | ROLE_BIT(ROLE_SMTP_FRONT) | ROLE_BIT(ROLE_IMAP_FRONT))
#define BACKS                                                                             \
    (ROLE_BIT(ROLE_SSH_BACK) | ROLE_BIT(ROLE_POSTGRES_BACK) | ROLE_BIT(ROLE_REDIS_BACK) | \
     ROLE_BIT(ROLE_MYSQL_BACK) | ROLE_BIT(ROLE_SMTP_BACK) | ROLE_BIT(ROLE_IMAP_BACK))

/* Each role that has a filter: all that are processes of ours but these two. */
static bool is_filtered(enum role r)
{
    return r != ROLE_PARENT && r != ROLE_BUILDER && r != ROLE_CLIENT;
}

static const char *arch_name(uint32_t arch)
{
    return arch == SCMP_ARCH_X86_64 ? "x86-64" : "arm64";
}

static int number(uint32_t arch, const char *call)
{
    for (size_t i = 0; i < ARRAY_LEN(filter_numbers); i++)
        if (strcmp(filter_numbers[i].name, call) == 0)
            return arch == SCMP_ARCH_X86_64 ? filter_numbers[i].x86_64 : filter_numbers[i].arm64;
    printf("# %s is not in the table of numbers\n", call);
    CU_FAIL("a call without a number");
    return NONE;
}

/* 0: allowed; the errno that it gets; KILLED; FILTER_WRONG. */
static int verdict(const struct filter_program *p, const struct seccomp_data *d)
{
    uint32_t a = filter_answer(p, d);
    if ((a & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
        return (int)(a & SECCOMP_RET_DATA);
    return a == SECCOMP_RET_ALLOW ? 0 : a == SECCOMP_RET_KILL_PROCESS ? KILLED : FILTER_WRONG;
}

struct call {
    const char *name;
    uint64_t args[6];
    int wants;
};

static void check_call(const struct filter_program *p, uint32_t arch, const char *whose,
                       const struct call *c)
{
    struct seccomp_data d = {.nr = number(arch, c->name), .arch = arch};
    memcpy(d.args, c->args, sizeof d.args);
    if (d.nr == NONE)
        return;
    int got = verdict(p, &d);
    CU_ASSERT_EQUAL(got, c->wants);
    if (got != c->wants)
        printf("# %s, %s: %s (%llx, %llx, %llx): %d instead of %d\n", arch_name(arch), whose,
               c->name, (unsigned long long)c->args[0], (unsigned long long)c->args[1],
               (unsigned long long)c->args[2], got, c->wants);
}

/* Calls of all other architectures kill, whatever their number. */
static void check_others(const struct filter_program *p, uint32_t arch)
{
    size_t left = 0;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        for (int nr = -1; nr <= LAST_NUMBER && others[i] != arch; nr++) {
            struct seccomp_data d = {.nr = nr, .arch = others[i]};
            left += verdict(p, &d) != KILLED;
        }
    CU_ASSERT_EQUAL(left, 0);
}

/* ---- roles ---- */

static bool listed(const int *calls, size_t n, int nr)
{
    for (size_t i = 0; i < n; i++)
        if (calls[i] == nr)
            return true;
    return false;
}

static const struct call harmless[] = {
    {"fcntl", {3, F_GETFL}, 0},
    {"ioctl", {3, FIONREAD}, 0},
    {"setsockopt", {3, IPPROTO_TCP, TCP_NODELAY}, 0},
    {"socket", {AF_INET, SOCK_STREAM | SOCK_CLOEXEC}, 0},
    {"socketpair", {AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC}, 0},
};

/* With arguments that no condition forbids, what the list holds is what is allowed. */
static void check_list(const struct filter_program *p, uint32_t arch, enum role r)
{
    int calls[256];
    size_t n = proc_calls(r, arch, calls, ARRAY_LEN(calls)), allowed = 0;
    CU_ASSERT(n > 40 && n <= 60);
    for (int nr = -1; nr <= LAST_NUMBER; nr++) {
        struct seccomp_data d = {.nr = nr, .arch = arch};
        if (nr == number(arch, "tgkill"))
            d.args[0] = (uint64_t)getpid();
        for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
            if (nr == number(arch, harmless[i].name))
                memcpy(d.args, harmless[i].args, sizeof d.args);
        if (nr == number(arch, "socketpair") && FRONTS >> r & 1)
            d.args[1] = SOCK_SEQPACKET;
        int got = verdict(p, &d), wants = listed(calls, n, nr) ? 0 : EPERM;
        allowed += got == 0;
        CU_ASSERT_EQUAL(got, wants);
        if (got != wants)
            printf("# %s, %s: call %d: %d instead of %d\n", arch_name(arch), role_name(r), nr, got,
                   wants);
    }
    CU_ASSERT_EQUAL(allowed, n);
    struct seccomp_data x32 = {.nr = X32 | number(arch, "read"), .arch = arch};
    CU_ASSERT_EQUAL(verdict(p, &x32), arch == SCMP_ARCH_X86_64 ? KILLED : EPERM);
}

/* What every role may do and none may. */
static void check_common(const struct filter_program *p, uint32_t arch, enum role r)
{
    static const char *const may[] = {
        "read",       "write",         "recvmsg", "close",     "epoll_pwait", "epoll_ctl",
        "munmap",     "brk",           "futex",   "getrandom", "exit_group",  "rt_sigreturn",
        "newfstatat", "clock_gettime", "madvise", "poll",      "statx"};
    static const char *const never[] = {"execve",
                                        "execveat",
                                        "clone",
                                        "clone3",
                                        "fork",
                                        "ptrace",
                                        "process_vm_readv",
                                        "kill",
                                        "prctl",
                                        "bpf",
                                        "mount",
                                        "io_uring_setup",
                                        "setns",
                                        "unshare",
                                        "chroot",
                                        "process_vm_writev",
                                        "seccomp"};
    const uint64_t high = UINT64_C(1) << 32, pid = (uint64_t)getpid();
    const struct call bounded[] = {
        {"mmap", {0, 4096, PROT_READ | PROT_WRITE}, 0},
        {"mmap", {0, 4096, PROT_READ | PROT_EXEC}, EPERM},
        {"mmap", {0, 4096, PROT_EXEC | high}, EPERM},
        {"mprotect", {0, 4096, PROT_READ}, 0},
        {"mprotect", {0, 4096, PROT_WRITE | PROT_EXEC}, EPERM},
        {"sendmsg", {3, 0, MSG_NOSIGNAL}, 0},
        {"sendmsg", {3, 0, MSG_FASTOPEN | MSG_NOSIGNAL}, EPERM},
        {"tgkill", {pid, pid, SIGABRT}, 0},
        {"tgkill", {1, 1, SIGKILL}, EPERM},
    };
    for (size_t i = 0; i < ARRAY_LEN(may); i++)
        check_call(p, arch, role_name(r), &(struct call){.name = may[i]});
    if (number(arch, "poll") == NONE)
        check_call(p, arch, role_name(r), &(struct call){.name = "ppoll"});
    for (size_t i = 0; i < ARRAY_LEN(never); i++)
        check_call(p, arch, role_name(r), &(struct call){.name = never[i], .wants = EPERM});
    for (size_t i = 0; i < ARRAY_LEN(bounded); i++)
        check_call(p, arch, role_name(r), &bounded[i]);
}

/* What some may: each with who. */
static void check_own(const struct filter_program *p, uint32_t arch, enum role r)
{
    static const struct {
        const char *call;
        uint64_t who;
    } own[] = {
        {"connect", ROLE_BIT(ROLE_DIALER)},
        {"bind", ROLE_BIT(ROLE_DIALER)},
        {"openat", ROLE_BIT(ROLE_DIALER) | ROLE_BIT(ROLE_LOGGER) | ROLE_BIT(ROLE_CONTROLLER)},
        {"accept4", ROLE_BIT(ROLE_GATE) | ROLE_BIT(ROLE_CONTROLLER)},
        {"memfd_secret", ROLE_BIT(ROLE_VAULT) | ROLE_BIT(ROLE_INJECTOR) | ROLE_BIT(ROLE_DIALER) |
                             ROLE_BIT(ROLE_FLEET) | BACKS},
        {"renameat", ROLE_BIT(ROLE_LOGGER)},
        {"fdatasync", ROLE_BIT(ROLE_LOGGER) | ROLE_BIT(ROLE_CONTROLLER)},
        {"pwrite64", ROLE_BIT(ROLE_CONTROLLER)},
        {"getdents64", ROLE_BIT(ROLE_LOGGER)},
    };
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        check_call(p, arch, role_name(r),
                   &(struct call){.name = own[i].call, .wants = own[i].who >> r & 1 ? 0 : EPERM});
    /* where the kernel has no unlink and no access, libc makes these */
    bool at_calls = number(arch, "unlink") == NONE && r == ROLE_CONTROLLER;
    check_call(
        p, arch, role_name(r),
        &(struct call){.name = "unlinkat", .wants = at_calls || r == ROLE_LOGGER ? 0 : EPERM});
    check_call(p, arch, role_name(r),
               &(struct call){.name = "faccessat", .wants = at_calls ? 0 : EPERM});
}

/* Calls that some may make with these arguments; nobody else, and with others nobody. */
#define EACH       UINT64_MAX
#define NOBODY     UINT64_C(0)
#define DIALER     ROLE_BIT(ROLE_DIALER)
#define LOGGER     ROLE_BIT(ROLE_LOGGER)
#define CONTROLLER ROLE_BIT(ROLE_CONTROLLER)
#define GATE       ROLE_BIT(ROLE_GATE)
static const struct {
    struct call call; /* what it wants is not looked at */
    uint64_t who;
} arguments[] = {
    /* a journal's O_APPEND stays, where journals are written to */
    {{"fcntl", {3, F_SETFL}, 0}, DIALER | CONTROLLER | BACKS},
    {{"fcntl", {3, F_SETLEASE}, 0}, LOGGER},
    {{"fcntl", {3, F_SETLK}, 0}, CONTROLLER},
    {{"fcntl", {3, F_GETLK}, 0}, CONTROLLER},
    {{"fcntl", {3, F_ADD_SEALS}, 0}, CONTROLLER},
    /* signals by other names */
    {{"fcntl", {3, F_SETOWN, 1}, 0}, NOBODY},
    {{"fcntl", {3, F_SETOWN_EX}, 0}, NOBODY},
    {{"fcntl", {3, F_SETSIG, SIGKILL}, 0}, NOBODY},
    {{"fcntl", {3, F_NOTIFY}, 0}, NOBODY},
    {{"ioctl", {3, FIOSETOWN}, 0}, NOBODY},
    {{"ioctl", {3, SIOCSPGRP}, 0}, NOBODY},
    {{"ioctl", {3, FIONREAD}, 0}, DIALER | CONTROLLER},
    {{"ioctl", {3, TIOCSTI}, 0}, NOBODY},
    {{"ioctl", {3, SIOCSIFADDR}, 0}, NOBODY},
    /* packet rules, routes and whatever else a network's owner may do to a socket of it */
    {{"setsockopt", {3, SOL_SOCKET, SO_LINGER}, 0}, EACH},
    {{"setsockopt", {3, SOL_SOCKET, SO_MARK}, 0}, NOBODY},
    {{"setsockopt", {3, SOL_SOCKET, SO_BINDTODEVICE}, 0}, NOBODY},
    {{"setsockopt", {3, SOL_SOCKET, SO_ATTACH_FILTER}, 0}, NOBODY},
    {{"setsockopt", {3, IPPROTO_TCP, TCP_NODELAY}, 0}, EACH},
    {{"setsockopt", {3, IPPROTO_TCP, TCP_REPAIR}, 0}, NOBODY},
    {{"setsockopt", {3, IPPROTO_IP, IP_PKTINFO}, 0}, GATE},
    {{"setsockopt", {3, IPPROTO_IP, 64 /* IPT_SO_SET_REPLACE */}, 0}, NOBODY},
    {{"setsockopt", {3, IPPROTO_IP, IP_TRANSPARENT}, 0}, NOBODY},
    {{"setsockopt", {3, IPPROTO_IPV6, IPV6_RECVPKTINFO}, 0}, GATE},
    {{"setsockopt", {3, IPPROTO_IPV6, 78 /* IPV6_FREEBIND */}, 0}, GATE},
    {{"setsockopt", {3, IPPROTO_IPV6, 64}, 0}, NOBODY},
    /* no service of the user's session, no packets */
    {{"socket", {AF_INET, SOCK_STREAM | SOCK_NONBLOCK}, 0}, DIALER},
    {{"socket", {AF_INET6, SOCK_STREAM | SOCK_CLOEXEC}, 0}, DIALER},
    {{"socket", {AF_INET, SOCK_DGRAM}, 0}, DIALER},
    {{"socket", {AF_INET6, SOCK_DGRAM}, 0}, DIALER},
    {{"socket", {AF_INET, SOCK_RAW, IPPROTO_RAW}, 0}, NOBODY},
    {{"socket", {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE}, 0}, DIALER},
    {{"socket", {AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER}, 0}, NOBODY},
    {{"socket", {AF_UNIX, SOCK_STREAM}, 0}, NOBODY},
    {{"socket", {AF_UNIX, SOCK_DGRAM}, 0}, NOBODY},
    {{"socket", {AF_PACKET, SOCK_RAW}, 0}, NOBODY},
    {{"socket", {AF_VSOCK, SOCK_STREAM}, 0}, NOBODY},
    {{"socketpair", {AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC}, 0}, DIALER | CONTROLLER | BACKS},
    {{"socketpair", {AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC}, 0}, FRONTS},
    {{"socketpair", {AF_UNIX, SOCK_DGRAM}, 0}, NOBODY}, /* can be connected elsewhere */
    {{"sendto", {3, 0, 0, MSG_NOSIGNAL}, 0}, EACH},
    {{"sendto", {3, 0, 0, MSG_FASTOPEN}, 0}, NOBODY},
};

static void check_arguments(const struct filter_program *p, uint32_t arch, enum role r)
{
    for (size_t i = 0; i < ARRAY_LEN(arguments); i++) {
        struct call c = arguments[i].call;
        c.wants = arguments[i].who >> r & 1 ? 0 : EPERM;
        check_call(p, arch, role_name(r), &c);
    }
}

static void test_roles(void)
{
    if (SANITIZED) {
        tap_skip("a sanitizer build widens the filters");
        return;
    }
    for (size_t a = 0; a < ARRAY_LEN(archs); a++)
        for (enum role r = ROLE_SIGNER; r < ROLE_COUNT; r++) {
            struct err err = {0};
            struct filter_program p;
            if (!is_filtered(r))
                continue;
            int failed = proc_filter(r, archs[a], &p, &err);
            if (failed < 0)
                printf("# %s\n", err.text);
            CU_ASSERT_EQUAL_FATAL(failed, 0);
            printf("# %s, %s: %zu instructions\n", arch_name(archs[a]), role_name(r), p.n);
            check_list(&p, archs[a], r);
            check_common(&p, archs[a], r);
            check_own(&p, archs[a], r);
            check_arguments(&p, archs[a], r);
            check_others(&p, archs[a]);
            filter_program_free(&p);
        }
}

/* What this processor loads is what is written for it by name. */
static void test_native(void)
{
    struct filter_program named, native;
    uint32_t arch = filter_arch(FILTER_NATIVE);
    CU_ASSERT_EQUAL_FATAL(proc_filter(ROLE_GATE, arch, &named, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(proc_filter(ROLE_GATE, FILTER_NATIVE, &native, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(named.n, native.n);
    CU_ASSERT_EQUAL(memcmp(named.code, native.code, native.n * sizeof *native.code), 0);
    filter_program_free(&named);
    filter_program_free(&native);
    CU_ASSERT_EQUAL(proc_filter(ROLE_PARENT, arch, &native, NULL), 0);
    CU_ASSERT_EQUAL(native.n, 0);
    CU_ASSERT_EQUAL(sandbox_seccomp_compile(SCMP_ARCH_S390X, false, &native, NULL), -1);
}

/* ---- the sandbox ---- */

static const uint64_t high = UINT64_C(1) << 32;

static void check_sandbox(const struct call *calls, size_t n)
{
    for (size_t a = 0; a < ARRAY_LEN(archs); a++) {
        struct err err = {0};
        struct filter_program p;
        CU_ASSERT_EQUAL_FATAL(sandbox_seccomp_compile(archs[a], false, &p, &err), 0);
        for (size_t i = 0; i < n; i++)
            check_call(&p, archs[a], "sandbox", &calls[i]);
        filter_program_free(&p);
    }
}

/* Asynchronous I/O is one number for the host: the kernel seems to have none. */
static void test_sandbox_absent(void)
{
    static const char *const absent[] = {
        "io_setup",      "io_destroy",     "io_submit",      "io_cancel",         "io_getevents",
        "io_pgetevents", "io_uring_setup", "io_uring_enter", "io_uring_register",
    };
    struct call calls[ARRAY_LEN(absent)] = {0};
    for (size_t i = 0; i < ARRAY_LEN(absent); i++)
        calls[i] = (struct call){.name = absent[i], .wants = ENOSYS};
    check_sandbox(calls, ARRAY_LEN(calls));
}

static void test_sandbox_refused(void)
{
    static const char *const refused[] = {"keyctl",
                                          "add_key",
                                          "request_key",
                                          "bpf",
                                          "perf_event_open",
                                          "userfaultfd",
                                          "fanotify_init",
                                          "ptrace",
                                          "process_vm_readv",
                                          "process_vm_writev",
                                          "process_madvise",
                                          "pidfd_getfd",
                                          "kcmp",
                                          "setns",
                                          "unshare",
                                          "mount",
                                          "umount2",
                                          "pivot_root",
                                          "chroot",
                                          "fsopen",
                                          "fsconfig",
                                          "fsmount",
                                          "fspick",
                                          "move_mount",
                                          "open_tree",
                                          "mount_setattr",
                                          "open_by_handle_at",
                                          "name_to_handle_at",
                                          "kexec_load",
                                          "kexec_file_load",
                                          "init_module",
                                          "finit_module",
                                          "delete_module",
                                          "swapon",
                                          "swapoff",
                                          "reboot",
                                          "quotactl",
                                          "quotactl_fd",
                                          "acct",
                                          "settimeofday",
                                          "clock_settime",
                                          "clock_adjtime",
                                          "syslog",
                                          "sethostname",
                                          "setdomainname",
                                          "vhangup",
                                          "iopl",
                                          "ioperm",
                                          "statmount",
                                          "listmount"};
    struct call calls[ARRAY_LEN(refused)] = {0};
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        calls[i] = (struct call){.name = refused[i], .wants = EPERM};
    check_sandbox(calls, ARRAY_LEN(calls));
}

/* Pages that the host has set aside, and what a uid may lock. */
static void test_sandbox_set_aside(void)
{
    const struct call calls[] = {
        {"mmap", {0, 1 << 21, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, ~0}, 0},
        {"mmap", {0, 1 << 21, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, ~0}, ENOMEM},
        {"mmap", {0, 1 << 21, PROT_READ, MAP_SHARED | MAP_HUGETLB | 21U << 26, ~0}, ENOMEM},
        {"memfd_create", {0, MFD_CLOEXEC}, 0},
        {"memfd_create", {0, MFD_CLOEXEC | MFD_HUGETLB}, EINVAL},
        {"shmget", {0, 1 << 21, IPC_CREAT | 0600}, 0},
        {"shmget", {0, 1 << 21, IPC_CREAT | SHM_HUGETLB | 0600}, ENOMEM},
        {"shmctl", {0, IPC_RMID, 0}, 0},
        {"shmctl", {0, SHM_LOCK | high, 0}, EPERM},
    };
    check_sandbox(calls, ARRAY_LEN(calls));
}

static void test_sandbox_arguments(void)
{
    const uint64_t make = O_CREAT | O_WRONLY, unnamed = O_TMPFILE | O_RDWR;
    const struct call calls[] = {
        {"socket", {AF_UNIX, SOCK_STREAM, 0}, 0},
        {"socket", {AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0}, 0},
        {"socket", {AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 17}, 0},
        {"socket", {AF_NETLINK, SOCK_RAW, 0}, 0},
        {"socket", {AF_NETLINK, SOCK_RAW, 12}, EPROTONOSUPPORT},
        {"socket", {AF_NETLINK | high, SOCK_RAW, 12}, EAFNOSUPPORT},
        {"socket", {AF_PACKET, SOCK_RAW, 0}, EAFNOSUPPORT},
        {"socket", {AF_PACKET | high, SOCK_RAW, 0}, EAFNOSUPPORT},
        {"socket", {AF_VSOCK, SOCK_STREAM, 0}, EAFNOSUPPORT},
        {"socket", {AF_ALG, SOCK_SEQPACKET, 0}, EAFNOSUPPORT},
        {"socket", {AF_INET, SOCK_RAW, 6}, EPROTONOSUPPORT},
        {"socket", {AF_INET6, SOCK_STREAM, 132}, EPROTONOSUPPORT},
        {"socket", {AF_INET6, SOCK_STREAM, 262 | high}, EPROTONOSUPPORT},
        {"socketpair", {AF_UNIX, SOCK_STREAM, 0}, 0},
        {"socketpair", {AF_TIPC, SOCK_STREAM, 0}, EAFNOSUPPORT},
        {"clone", {SIGCHLD}, 0},
        {"clone", {CLONE_NEWUSER | SIGCHLD}, EPERM},
        {"clone", {CLONE_NEWNET | SIGCHLD | high}, EPERM},
        {"clone", {CLONE_NEWCGROUP}, EPERM},
        {"clone3", {0}, ENOSYS},
        {"openat2", {0}, ENOSYS},
        {"ioctl", {0, TIOCSTI}, EPERM},
        {"ioctl", {0, TIOCSTI | high}, EPERM},
        {"ioctl", {0, TIOCLINUX}, EPERM},
        {"ioctl", {0, TIOCGWINSZ}, 0},
        {"chmod", {0, 04755}, EPERM},
        {"chmod", {0, 01777}, 0},
        {"fchmod", {3, 02755}, EPERM},
        {"fchmod", {3, 0755}, 0},
        {"fchmodat", {3, 0, 04755}, EPERM},
        {"fchmodat2", {3, 0, 04755}, EPERM},
        {"fchmodat2", {3, 0, 02000 | high}, EPERM},
        {"fchmodat2", {3, 0, 0755}, 0},
        {"creat", {0, 04755}, EPERM},
        {"mknod", {0, S_IFREG | 04755}, EPERM},
        {"mknodat", {3, 0, S_IFREG | 02755}, EPERM},
        {"open", {0, make, 04755}, EPERM},
        {"openat", {3, 0, make, 02755}, EPERM},
        {"openat", {3, 0, unnamed, 04755}, EPERM},
        {"openat", {3, 0, make, 0755}, 0},
        {"openat", {3, 0, O_DIRECTORY, 04755}, 0},
        {"personality", {0xffffffff}, 0},
        {"personality", {0}, 0},
        {"personality", {8}, 0},
        {"personality", {READ_IMPLIES_EXEC}, EPERM},
        {"personality", {ADDR_NO_RANDOMIZE}, EPERM},
        {"personality", {0xfffffffe}, EPERM},
        {"prlimit64", {0, RLIMIT_NOFILE, 1}, 0},
        {"prlimit64", {0, RLIMIT_CORE, 0}, 0},
    };
    check_sandbox(calls, ARRAY_LEN(calls));
}

/* A limit of core files is answered as if it were set. */
static void check_core_limit(const struct filter_program *p, uint32_t arch)
{
    struct seccomp_data d = {.nr = number(arch, "prlimit64"), .arch = arch};
    d.args[1] = RLIMIT_CORE;
    d.args[2] = 1; /* a pointer */
    CU_ASSERT_EQUAL(filter_answer(p, &d), SECCOMP_RET_ERRNO);
    d.nr = number(arch, "setrlimit");
    d.args[0] = RLIMIT_CORE;
    CU_ASSERT_EQUAL(filter_answer(p, &d), SECCOMP_RET_ERRNO);
}

static void test_sandbox_numbers(void)
{
    for (size_t a = 0; a < ARRAY_LEN(archs); a++) {
        struct err err = {0};
        struct filter_program p;
        CU_ASSERT_EQUAL_FATAL(sandbox_seccomp_compile(archs[a], false, &p, &err), 0);
        printf("# %s, sandbox: %zu instructions\n", arch_name(archs[a]), p.n);
        check_core_limit(&p, archs[a]);
        check_others(&p, archs[a]);
        for (int nr = 463; nr <= LAST_NUMBER; nr++) {
            struct seccomp_data d = {.nr = nr, .arch = archs[a]};
            CU_ASSERT_EQUAL(verdict(&p, &d), ENOSYS);
        }
        struct seccomp_data x32 = {.nr = X32 | number(archs[a], "getpid"), .arch = archs[a]};
        CU_ASSERT_EQUAL(verdict(&p, &x32), archs[a] == SCMP_ARCH_X86_64 ? KILLED : ENOSYS);
        static const char *const left[] = {"getpid", "execve", "read",         "epoll_create1",
                                           "kill",   "prctl",  "memfd_create", "seccomp"};
        for (size_t i = 0; i < ARRAY_LEN(left); i++)
            check_call(&p, archs[a], "sandbox", &(struct call){.name = left[i]});
        filter_program_free(&p);
    }
}

/* With no arguments at all: which numbers a sandbox with containers inside has beside others, and
 * which answer otherwise. THREAT_MODEL.md prints these lists. */
static void test_nested_numbers(void)
{
    static const char *const opened[] = {"chroot",    "mount",      "mount_setattr", "move_mount",
                                         "open_tree", "pivot_root", "setdomainname", "sethostname",
                                         "setns",     "umount2",    "unshare"};
    static const char *const absent[] = {"fsconfig", "fsmount", "fsopen", "fspick"};
    for (size_t a = 0; a < ARRAY_LEN(archs); a++) {
        struct err err = {0};
        struct filter_program plain, nested;
        size_t n_opened = 0, n_absent = 0, n_other = 0;
        CU_ASSERT_EQUAL_FATAL(sandbox_seccomp_compile(archs[a], false, &plain, &err), 0);
        CU_ASSERT_EQUAL_FATAL(sandbox_seccomp_compile(archs[a], true, &nested, &err), 0);
        for (int nr = 0; nr <= LAST_NUMBER; nr++) {
            struct seccomp_data d = {.nr = nr, .arch = archs[a]};
            int was = verdict(&plain, &d), is = verdict(&nested, &d);
            n_opened += was == EPERM && is == 0;
            n_absent += was == EPERM && is == ENOSYS;
            n_other += was != is && (was != EPERM || (is != 0 && is != ENOSYS));
        }
        printf("# %s, nested: %zu instructions, %zu calls more, %zu answer otherwise\n",
               arch_name(archs[a]), nested.n, n_opened, n_absent);
        CU_ASSERT_EQUAL(n_opened, ARRAY_LEN(opened));
        CU_ASSERT_EQUAL(n_absent, ARRAY_LEN(absent));
        CU_ASSERT_EQUAL(n_other, 0);
        for (size_t i = 0; i < ARRAY_LEN(opened); i++)
            check_call(&nested, archs[a], "nested", &(struct call){.name = opened[i]});
        for (size_t i = 0; i < ARRAY_LEN(absent); i++)
            check_call(&nested, archs[a], "nested",
                       &(struct call){.name = absent[i], .wants = ENOSYS});
        check_others(&nested, archs[a]);
        filter_program_free(&plain);
        filter_program_free(&nested);
    }
}

/* What is opened by its arguments, and what stays shut beside it. */
static void test_nested_arguments(void)
{
    static const struct call calls[] = {
        {"clone", {CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET}, 0},
        {"unshare", {CLONE_NEWUSER | CLONE_NEWCGROUP}, 0},
        {"unshare", {CLONE_NEWTIME | CLONE_NEWUSER}, EPERM},
        {"clone3", {0}, ENOSYS},
        {"fchmod", {3, 04755}, 0},
        {"openat", {3, 0, O_CREAT, 02755}, 0},
        {"openat2", {0}, ENOSYS},
        {"socket", {AF_PACKET, SOCK_RAW}, EAFNOSUPPORT},
        {"socket", {AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER}, EPROTONOSUPPORT},
        {"socket", {AF_INET, SOCK_RAW, IPPROTO_ICMP}, EPROTONOSUPPORT},
        {"setsockopt", {3, IPPROTO_IP, 64}, ENOPROTOOPT},   /* IPT_SO_SET_REPLACE */
        {"setsockopt", {3, IPPROTO_IP, 1155}, ENOPROTOOPT}, /* ip_vs */
        {"setsockopt", {3, IPPROTO_IPV6, 64}, ENOPROTOOPT},
        {"setsockopt", {3, IPPROTO_IPV6, 66}, 0},
        {"setsockopt", {3, IPPROTO_IP, 51}, 0},
        {"setsockopt", {3, SOL_SOCKET, 64}, 0},
        {"keyctl", {0}, EPERM},
        {"bpf", {0}, EPERM},
        {"ptrace", {0}, EPERM},
        {"io_uring_setup", {0}, ENOSYS},
        {"open_by_handle_at", {0}, EPERM},
        {"quotactl", {0}, EPERM},
        {"statmount", {0}, EPERM},
    };
    for (size_t a = 0; a < ARRAY_LEN(archs); a++) {
        struct err err = {0};
        struct filter_program p;
        CU_ASSERT_EQUAL_FATAL(sandbox_seccomp_compile(archs[a], true, &p, &err), 0);
        for (size_t i = 0; i < ARRAY_LEN(calls); i++)
            check_call(&p, archs[a], "nested", &calls[i]);
        struct seccomp_data d = {.nr = 452, .arch = archs[a], .args = {3, 0, 04755}};
        CU_ASSERT_EQUAL(verdict(&p, &d), 0); /* fchmodat2 */
        filter_program_free(&p);
    }
}

void tap_suites(void)
{
    if (getenv(
            "DURWARD_EMULATED")) /* libseccomp asks the kernel what it knows; that one has none */
        seccomp_api_set(4);
    CU_pSuite s = CU_add_suite("filters", NULL, NULL);
    CU_add_test(s, "of each role on x86-64 and arm64, every number", test_roles);
    CU_add_test(s, "what is loaded is what is written for this processor", test_native);
    CU_add_test(s, "of the sandbox: calls that are refused", test_sandbox_refused);
    CU_add_test(s, "of the sandbox: calls that are not there", test_sandbox_absent);
    CU_add_test(s, "of the sandbox: what the host has set aside", test_sandbox_set_aside);
    CU_add_test(s, "of the sandbox: calls by their arguments", test_sandbox_arguments);
    CU_add_test(s, "of containers inside: which calls are opened", test_nested_numbers);
    CU_add_test(s, "of containers inside: what is opened by arguments", test_nested_arguments);
    CU_add_test(s, "of the sandbox: unknown numbers and other ABIs", test_sandbox_numbers);
}
