/* The sandbox's system-call filter, loaded in children: what it refuses, what it must leave. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "sandbox_seccomp.h"
#include "tap_main.h"

static struct filter_program filter;

struct call {
    const char *name;
    long nr;
    long args[6];
    int wants; /* errno, or 0: must work */
};

static void load_filter(void)
{
    struct sock_fprog p = {.len = (unsigned short)filter.n, .filter = filter.code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p) < 0)
        _exit(99);
}

/* The errno of one call made under the filter; -signal when that killed the child. */
static int outcome(const struct call *c)
{
    pid_t pid = fork();
    if (pid == 0) {
        load_filter();
        errno = 0;
        long r =
            syscall(c->nr, c->args[0], c->args[1], c->args[2], c->args[3], c->args[4], c->args[5]);
        syscall(SYS_exit_group, r < 0 ? errno : 0);
    }
    int status = 0;
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void check(const struct call *calls, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int got = outcome(&calls[i]);
        CU_ASSERT_EQUAL(got, calls[i].wants);
        if (got != calls[i].wants)
            printf("# %s: %d instead of %d\n", calls[i].name, got, calls[i].wants);
    }
}

static void test_sockets(void)
{
    static const long high = 1L << 32; /* the kernel looks at the low half only */
    const struct call calls[] = {
        {"unix", SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, 0},
        {"tcp", SYS_socket, {AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0}, 0},
        {"tcp, named", SYS_socket, {AF_INET, SOCK_STREAM, 6}, 0},
        {"udp", SYS_socket, {AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 17}, 0},
        {"rtnetlink", SYS_socket, {AF_NETLINK, SOCK_RAW, 0}, 0},
        {"netfilter", SYS_socket, {AF_NETLINK, SOCK_RAW, 12}, EPROTONOSUPPORT},
        {"sock_diag", SYS_socket, {AF_NETLINK, SOCK_RAW, 4}, EPROTONOSUPPORT},
        {"netfilter, high", SYS_socket, {AF_NETLINK | high, SOCK_RAW, 12}, EAFNOSUPPORT},
        {"rtnetlink, high", SYS_socket, {AF_NETLINK, SOCK_RAW, high}, EPROTONOSUPPORT},
        {"packet", SYS_socket, {AF_PACKET, SOCK_RAW, 0}, EAFNOSUPPORT},
        {"packet, high", SYS_socket, {AF_PACKET | high, SOCK_RAW, 0}, EAFNOSUPPORT},
        {"vsock", SYS_socket, {AF_VSOCK, SOCK_STREAM, 0}, EAFNOSUPPORT},
        {"alg", SYS_socket, {AF_ALG, SOCK_SEQPACKET, 0}, EAFNOSUPPORT},
        {"bluetooth", SYS_socket, {AF_BLUETOOTH, SOCK_RAW, 0}, EAFNOSUPPORT},
        {"x25", SYS_socket, {AF_X25, SOCK_SEQPACKET, 0}, EAFNOSUPPORT},
        {"raw", SYS_socket, {AF_INET, SOCK_RAW, 6}, EPROTONOSUPPORT},
        {"ping", SYS_socket, {AF_INET, SOCK_DGRAM, 1}, EPROTONOSUPPORT},
        {"sctp", SYS_socket, {AF_INET, SOCK_SEQPACKET, 0}, EPROTONOSUPPORT},
        {"sctp 6", SYS_socket, {AF_INET6, SOCK_STREAM, 132}, EPROTONOSUPPORT},
        {"dccp", SYS_socket, {AF_INET, SOCK_DCCP, 0}, EPROTONOSUPPORT},
        {"mptcp", SYS_socket, {AF_INET, SOCK_STREAM, 262}, EPROTONOSUPPORT},
        {"mptcp 6, high", SYS_socket, {AF_INET6, SOCK_STREAM, 262 | high}, EPROTONOSUPPORT},
        {"udplite", SYS_socket, {AF_INET, SOCK_DGRAM, 136}, EPROTONOSUPPORT},
        {"tipc pair", SYS_socketpair, {AF_TIPC, SOCK_STREAM, 0, 0}, EAFNOSUPPORT},
    };
    check(calls, ARRAY_LEN(calls));
}

/* A set-ID bit on a bound file would count on the host. */
static void test_set_id(void)
{
    static const char room[1];
    const long p = (long)room, make = O_CREAT | O_WRONLY, unnamed = O_TMPFILE | O_RDWR;
    const struct call calls[] = {
        {"fchmod u+s", SYS_fchmod, {-1, 04000}, EPERM},
        {"fchmod", SYS_fchmod, {-1, 0755}, EBADF},
        {"fchmodat u+s", SYS_fchmodat, {-1, p, 04755}, EPERM},
        {"fchmodat2 u+s", 452, {-1, p, 04755, 0}, EPERM},
        {"mknodat g+s", SYS_mknodat, {-1, p, 0102755, 0}, EPERM},
        {"openat g+s", SYS_openat, {-1, p, make, 02755}, EPERM},
        {"openat unnamed u+s", SYS_openat, {-1, p, unnamed, 04755}, EPERM},
        {"openat", SYS_openat, {-100, p, make, 0755}, ENOENT},
        {"openat, mode not read", SYS_openat, {-100, p, O_DIRECTORY, 04755}, ENOENT},
        {"openat2", SYS_openat2, {-100, p, p, 24}, ENOSYS},
#ifdef SYS_open /* arm64 has none of these */
        {"chmod u+s", SYS_chmod, {p, 04755}, EPERM},
        {"chmod g+s", SYS_chmod, {p, 02755}, EPERM},
        {"chmod", SYS_chmod, {p, 01777}, ENOENT},
        {"creat u+s", SYS_creat, {p, 04755}, EPERM},
        {"mknod u+s", SYS_mknod, {p, 0104755, 0}, EPERM},
        {"open u+s", SYS_open, {p, make, 04755}, EPERM},
#endif
    };
    check(calls, ARRAY_LEN(calls));
}

/* Who serves a sandbox's files makes namespaces and roots, and sets no such bit. */
static void test_files(void)
{
    const struct call calls[] = {{"unshare", SYS_unshare, {0}, 0},
                                 {"chroot", SYS_chroot, {0}, EFAULT}};
    struct filter_program whole = filter;
    struct err err = {0};
    CU_ASSERT_EQUAL_FATAL(sandbox_seccomp_files(&filter, &err), 0);
    check(calls, ARRAY_LEN(calls));
    test_set_id();
    filter_program_free(&filter);
    filter = whole;
}

static void test_refused(void)
{
    static char room[256];
    long p = (long)room;
    const struct call calls[] = {
        {"io_uring_setup", SYS_io_uring_setup, {1, p}, ENOSYS},
        {"io_setup", SYS_io_setup, {1, p}, ENOSYS},
        {"io_submit", SYS_io_submit, {0, 0, p}, ENOSYS},
        {"memfd of huge pages", SYS_memfd_create, {p, MFD_HUGETLB}, EINVAL},
        {"memfd, as Chromium asks for it", SYS_memfd_create, {p, 0xffffffff}, EINVAL},
        {"huge pages shared", SYS_shmget, {0, 1 << 21, SHM_HUGETLB | 0600}, ENOMEM},
        {"huge pages", SYS_mmap, {0, 0, 0, MAP_HUGETLB | MAP_PRIVATE | MAP_ANONYMOUS, -1}, ENOMEM},
        {"SHM_LOCK", SYS_shmctl, {-1, SHM_LOCK, 0}, EPERM},
        {"SHM_LOCK, high", SYS_shmctl, {-1, SHM_LOCK | 1L << 32, 0}, EPERM},
        {"keyctl", SYS_keyctl, {0, -3}, EPERM},
        {"add_key", SYS_add_key, {p, p, p, 1, -3}, EPERM},
        {"request_key", SYS_request_key, {p, p, 0, 0}, EPERM},
        {"ptrace", SYS_ptrace, {0}, EPERM},
        {"process_vm_writev", SYS_process_vm_writev, {1}, EPERM},
        {"pidfd_getfd", SYS_pidfd_getfd, {-1, 0, 0}, EPERM},
        {"bpf", SYS_bpf, {0, p, 0}, EPERM},
        {"perf_event_open", SYS_perf_event_open, {p, 0, -1, -1, 0}, EPERM},
        {"userfaultfd", SYS_userfaultfd, {0}, EPERM},
        {"setns", SYS_setns, {-1, 0}, EPERM},
        {"unshare", SYS_unshare, {CLONE_NEWUSER}, EPERM},
        {"clone user", SYS_clone, {CLONE_NEWUSER | SIGCHLD}, EPERM},
        {"clone net", SYS_clone, {CLONE_NEWNET | SIGCHLD | 1L << 40}, EPERM},
        {"clone3", SYS_clone3, {p, 0}, ENOSYS},
        {"mount", SYS_mount, {p, p, p, 0, 0}, EPERM},
        {"umount2", SYS_umount2, {p, 0}, EPERM},
        {"pivot_root", SYS_pivot_root, {p, p}, EPERM},
        {"fsopen", SYS_fsopen, {p, 0}, EPERM},
        {"move_mount", SYS_move_mount, {-1, p, -1, p, 0}, EPERM},
        {"open_tree", SYS_open_tree, {-1, p, 0}, EPERM},
        {"mount_setattr", SYS_mount_setattr, {-1, p, 0, 0, 0}, EPERM},
        {"statmount", 457, {p, p, 0, 0}, EPERM},
        {"listmount", 458, {p, p, 0, 0}, EPERM},
        {"chroot", SYS_chroot, {p}, EPERM},
        {"kexec_load", SYS_kexec_load, {0}, EPERM},
        {"init_module", SYS_init_module, {p, 0, p}, EPERM},
        {"swapon", SYS_swapon, {p, 0}, EPERM},
        {"reboot", SYS_reboot, {0}, EPERM},
        {"quotactl", SYS_quotactl, {0}, EPERM},
        {"acct", SYS_acct, {0}, EPERM},
        {"settimeofday", SYS_settimeofday, {p, 0}, EPERM},
        {"clock_settime", SYS_clock_settime, {0, p}, EPERM},
        {"open_by_handle_at", SYS_open_by_handle_at, {-1, p, 0}, EPERM},
        {"name_to_handle_at", SYS_name_to_handle_at, {-1, p, p, p, 0}, EPERM},
        {"TIOCSTI", SYS_ioctl, {0, TIOCSTI, p}, EPERM},
        {"TIOCSTI, high", SYS_ioctl, {0, TIOCSTI | 1L << 32, p}, EPERM},
        {"TIOCLINUX", SYS_ioctl, {0, TIOCLINUX, p}, EPERM},
        {"a call to come", 463, {0}, ENOSYS},
        {"no call", 100000, {0}, ENOSYS},
    };
    check(calls, ARRAY_LEN(calls));
}

static void test_left_alone(void)
{
    static char room[512];
    long p = (long)room;
    const struct call calls[] = {
        {"getpid", SYS_getpid, {0}, 0},
        {"uname", SYS_uname, {p}, 0},
        {"query personality", SYS_personality, {0xffffffff}, 0},
        {"plain personality", SYS_personality, {0}, 0},
        {"32-bit uname", SYS_personality, {8}, 0},
        {"read implies exec", SYS_personality, {READ_IMPLIES_EXEC}, EPERM},
        {"no randomisation", SYS_personality, {ADDR_NO_RANDOMIZE}, EPERM},
        {"almost the query", SYS_personality, {0xfffffffe}, EPERM},
        {"seccomp", SYS_seccomp, {SECCOMP_GET_ACTION_AVAIL, 0, p}, EOPNOTSUPP},
        {"epoll", SYS_epoll_create1, {0}, 0},
        {"memfd", SYS_memfd_create, {p, 0}, 0},
        {"shmctl", SYS_shmctl, {-1, SHM_UNLOCK, 0}, EINVAL},
        {"mmap", SYS_mmap, {0, 4096, 0, MAP_PRIVATE | MAP_ANONYMOUS, -1}, 0},
    };
    memset(room, 0, sizeof room);
    uint32_t unknown = 0x12345678;
    memcpy(room, &unknown, sizeof unknown);
    check(calls, ARRAY_LEN(calls));
}

#ifdef __x86_64__
static int i386_outcome(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        load_filter();
        long r = 20;
        __asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
        syscall(SYS_exit_group, 0);
    }
    int status = 0;
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void test_other_abis(void)
{
    const struct call x32 = {"x32", 0x40000000 | SYS_getpid, {0}, -SIGSYS};
    CU_ASSERT_EQUAL(outcome(&x32), -SIGSYS);
    int got = i386_outcome();
    CU_ASSERT_TRUE(got == -SIGSYS || got == -SIGSEGV); /* the latter: a kernel without that ABI */
}
#endif

/* bubblewrap reads it from the start of a file. */
static void test_file(void)
{
    struct err err = {0};
    struct sock_filter first;
    int fd = sandbox_seccomp_memfd(&filter, &err);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(read(fd, &first, sizeof first), (ssize_t)sizeof first);
    CU_ASSERT_EQUAL(memcmp(&first, filter.code, sizeof first), 0);
    CU_ASSERT_EQUAL(lseek(fd, 0, SEEK_END), (off_t)(filter.n * sizeof first));
    CU_ASSERT_EQUAL(write(fd, &first, sizeof first), -1);
    close(fd);
}

static int compile(void)
{
    struct err err = {0};
    return sandbox_seccomp_compile(FILTER_NATIVE, false, &filter, &err);
}

static int release(void)
{
    filter_program_free(&filter);
    return 0;
}

/* Nobody takes what was not compiled for a filter. */
static void test_none(void)
{
    const struct filter_program none = {0};
    struct err err = {0};
    CU_ASSERT_EQUAL(sandbox_seccomp_memfd(&none, &err), -1);
    CU_ASSERT(err.text[0] != 0);
}

static void suite_sandbox_seccomp(void)
{
    CU_pSuite s = CU_add_suite("sandbox_seccomp", compile, release);
    CU_add_test(s, "sockets", test_sockets);
    CU_add_test(s, "refused calls", test_refused);
    CU_add_test(s, "no set-ID bit is put on a file", test_set_id);
    CU_add_test(s, "nor by who serves files", test_files);
    CU_add_test(s, "calls that are left", test_left_alone);
#ifdef __x86_64__
    CU_add_test(s, "other ABIs", test_other_abis);
#endif
    CU_add_test(s, "as a file", test_file);
    CU_add_test(s, "no filter", test_none);
}

void tap_suites(void)
{
    suite_sandbox_seccomp();
}
