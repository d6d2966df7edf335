#define _GNU_SOURCE 1
#include "sandbox_seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc.h"

enum {
    SYSCALL_LAST = 462, /* mseal, Linux 6.10: the last call that was looked at for this list */
    X32_BIT = 0x40000000,
    PROLOGUE = 6,
    PROGRAM_MAX = 4096, /* the kernel's own bound, BPF_MAXINSNS */
};

/* Calls that are refused whatever their arguments. */
static const char *const refused[] = {
    /* new attack surface without a file: rings, keys, tracing, programs */
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "keyctl",
    "add_key",
    "request_key",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "fanotify_init",
    "fanotify_mark",
    /* other processes */
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "process_mrelease",
    "pidfd_getfd",
    "kcmp",
    "lookup_dcookie",
    /* namespaces and mounts */
    "setns",
    "unshare",
    "mount",
    "umount",
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
    /* the machine */
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "create_module",
    "query_module",
    "get_kernel_syms",
    "nfsservctl",
    "swapon",
    "swapoff",
    "reboot",
    "quotactl",
    "quotactl_fd",
    "acct",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "stime",
    "syslog",
    "iopl",
    "ioperm",
    "modify_ldt",
    "vm86",
    "vm86old",
    "_sysctl",
    "sysfs",
    "uselib",
    "ustat",
    "vhangup",
    "sethostname",
    "setdomainname",
    "vserver",
};

/* The same for calls that this libseccomp may be too old to know; one number on every architecture
 * since Linux 5.x. */
static const int refused_numbers[] = {
    457, /* statmount: tells where the host keeps what was bound */
    458, /* listmount */
};

static int deny(scmp_filter_ctx c, uint32_t action, int nr, unsigned n,
                const struct scmp_arg_cmp *args, struct err *err)
{
    int r = seccomp_rule_add_array(c, action, nr, n, args);
    return r < 0 ? err_set(err, ERR_INTERNAL, "seccomp rule for call %d: %s", nr, strerror(-r)) : 0;
}

static int deny_names(scmp_filter_ctx c, struct err *err)
{
    uint32_t eperm = SCMP_ACT_ERRNO(EPERM);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        int nr = seccomp_syscall_resolve_name(refused[i]);
        /* a name that this libseccomp or this architecture does not have gives a negative number */
        if (nr >= 0 && deny(c, eperm, nr, 0, NULL, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < ARRAY_LEN(refused_numbers); i++)
        if (deny(c, eperm, refused_numbers[i], 0, NULL, err) < 0)
            return -1;
    return 0;
}

/* Comparisons are of 64 bits and the kernel takes the low 32 of these arguments; so "greater than"
 * also catches what carries anything above, and what is tested by equality is masked. */
static int deny_families(scmp_filter_ctx c, struct err *err)
{
    uint32_t no = SCMP_ACT_ERRNO(EAFNOSUPPORT);
    int nr = SCMP_SYS(socket);
    struct scmp_arg_cmp above[] = {SCMP_A0(SCMP_CMP_GT, AF_NETLINK)};
    if (deny(c, no, nr, 1, above, err) < 0)
        return -1;
    for (uint64_t family = 0; family < AF_NETLINK; family++) {
        struct scmp_arg_cmp is[] = {SCMP_A0(SCMP_CMP_EQ, family)};
        if (family != AF_UNIX && family != AF_INET && family != AF_INET6 &&
            deny(c, no, nr, 1, is, err) < 0)
            return -1;
    }
    struct scmp_arg_cmp netlink[] = {SCMP_A0(SCMP_CMP_EQ, AF_NETLINK),
                                     SCMP_A2(SCMP_CMP_NE, 0 /* NETLINK_ROUTE */)};
    if (deny(c, SCMP_ACT_ERRNO(EPROTONOSUPPORT), nr, 2, netlink, err) < 0)
        return -1;
    struct scmp_arg_cmp pair[] = {SCMP_A0(SCMP_CMP_NE, AF_UNIX)};
    return deny(c, no, SCMP_SYS(socketpair), 1, pair, err);
}

/* TCP and UDP: protocol 0, 6 or 17, and only stream and datagram sockets, because protocol 0 of
 * another type stands for SCTP, DCCP or raw. */
static int deny_protocols(scmp_filter_ctx c, uint64_t family, struct err *err)
{
    uint32_t no = SCMP_ACT_ERRNO(EPROTONOSUPPORT);
    int nr = SCMP_SYS(socket);
    struct scmp_arg_cmp above[] = {SCMP_A0(SCMP_CMP_EQ, family), SCMP_A2(SCMP_CMP_GT, 17)};
    if (deny(c, no, nr, 2, above, err) < 0)
        return -1;
    for (uint64_t protocol = 1; protocol < 17; protocol++) {
        struct scmp_arg_cmp is[] = {SCMP_A0(SCMP_CMP_EQ, family), SCMP_A2(SCMP_CMP_EQ, protocol)};
        if (protocol != 6 && deny(c, no, nr, 2, is, err) < 0)
            return -1;
    }
    for (uint64_t type = 0; type < 16; type++) {
        struct scmp_arg_cmp is[] = {SCMP_A0(SCMP_CMP_EQ, family),
                                    SCMP_A1(SCMP_CMP_MASKED_EQ, 15, type)};
        if (type != SOCK_STREAM && type != SOCK_DGRAM && deny(c, no, nr, 2, is, err) < 0)
            return -1;
    }
    return 0;
}

static int deny_ioctls(scmp_filter_ctx c, struct err *err)
{
    static const uint64_t requests[] = {TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD};
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        struct scmp_arg_cmp is[] = {SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, requests[i])};
        if (deny(c, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1, is, err) < 0)
            return -1;
    }
    return 0;
}

static int deny_clone(scmp_filter_ctx c, struct err *err)
{
    /* CLONE_NEWTIME is not among them: clone takes that bit for a part of the exit signal */
    static const uint64_t flags[] = {CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWNS,    CLONE_NEWPID,
                                     CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        struct scmp_arg_cmp is[] = {SCMP_A0(SCMP_CMP_MASKED_EQ, flags[i], flags[i])};
        if (deny(c, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, is, err) < 0)
            return -1;
    }
    /* its flags lie in memory, where a filter cannot look; libcs fall back to clone */
    int nr = SCMP_SYS(clone3);
    return nr < 0 ? 0 : deny(c, SCMP_ACT_ERRNO(ENOSYS), nr, 0, NULL, err);
}

/* A file in a bound directory is the host's, where its set-user-ID bit counts: of root's sandbox it
 * would make anybody root. No program inside has a use for one. */
static int deny_set_id(scmp_filter_ctx c, struct err *err)
{
    static const struct {
        const char *name;
        int nr; /* where libseccomp may be too old to know the name */
        unsigned arg;
    } modes[] = {{"chmod", -1, 1},      {"fchmod", -1, 1}, {"fchmodat", -1, 2},
                 {"fchmodat2", 452, 2}, {"creat", -1, 1},  {"open", -1, 2},
                 {"openat", -1, 3},     {"mknod", -1, 1},  {"mknodat", -1, 2}};
    static const uint64_t bits[] = {S_ISUID, S_ISGID};
    /* a mode that is not read may hold anything; of O_TMPFILE the bit that is not O_DIRECTORY */
    static const uint64_t flags[] = {O_CREAT, O_TMPFILE & ~O_DIRECTORY};
    uint32_t no = SCMP_ACT_ERRNO(EPERM);
    for (size_t i = 0; i < ARRAY_LEN(modes) * ARRAY_LEN(bits) * ARRAY_LEN(flags); i++) {
        size_t m = i / 4;
        uint64_t bit = bits[i / 2 % 2], flag = flags[i % 2];
        int nr = modes[m].nr >= 0 ? modes[m].nr : seccomp_syscall_resolve_name(modes[m].name);
        bool opens = strncmp(modes[m].name, "open", 4) == 0;
        if (nr < 0 || (!opens && flag != O_CREAT))
            continue;
        struct scmp_arg_cmp is[] = {{modes[m].arg, SCMP_CMP_MASKED_EQ, bit, bit},
                                    {modes[m].arg - 1, SCMP_CMP_MASKED_EQ, flag, flag}};
        if (deny(c, no, nr, opens ? 2 : 1, is, err) < 0)
            return -1;
    }
    /* its mode lies in memory; programs fall back to openat */
    int nr = seccomp_syscall_resolve_name("openat2");
    return nr < 0 ? 0 : deny(c, SCMP_ACT_ERRNO(ENOSYS), nr, 0, NULL, err);
}

/* Where the host hands core dumps to a program, that runs outside and as root, for each crash in
 * here, whatever the limit is, unless it is exactly 1 (core(5)); which the maker sets. So nobody
 * sets another, and programs that want 0 are told that they have it. */
static int keep_core_limit(scmp_filter_ctx c, struct err *err)
{
    struct scmp_arg_cmp set[] = {SCMP_A0(SCMP_CMP_EQ, RLIMIT_CORE)};
    struct scmp_arg_cmp change[] = {SCMP_A1(SCMP_CMP_EQ, RLIMIT_CORE), SCMP_A2(SCMP_CMP_NE, 0)};
    int nr = seccomp_syscall_resolve_name("setrlimit");
    if (nr >= 0 && deny(c, SCMP_ACT_ERRNO(0), nr, 1, set, err) < 0)
        return -1;
    return deny(c, SCMP_ACT_ERRNO(0), SCMP_SYS(prlimit64), 2, change, err);
}

/* Execution domains: plain Linux, 32-bit uname, 2.6 uname, both, and the question 0xffffffff. Bit
 * 31 set means that question, of which no bit may be missing; otherwise only bits 3 and 17 are
 * free. */
static int deny_personality(scmp_filter_ctx c, struct err *err)
{
    const uint64_t top = UINT64_C(1) << 31;
    for (unsigned b = 0; b < 31; b++) {
        uint64_t bit = UINT64_C(1) << b;
        struct scmp_arg_cmp plain[] = {SCMP_A0(SCMP_CMP_MASKED_EQ, top | bit, bit)};
        struct scmp_arg_cmp question[] = {SCMP_A0(SCMP_CMP_MASKED_EQ, top | bit, top)};
        uint32_t no = SCMP_ACT_ERRNO(EPERM);
        if ((b != 3 && b != 17 && deny(c, no, SCMP_SYS(personality), 1, plain, err) < 0) ||
            deny(c, no, SCMP_SYS(personality), 1, question, err) < 0)
            return -1;
    }
    return 0;
}

static uint32_t native_arch(void)
{
#if defined(__x86_64__)
    return AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
    return AUDIT_ARCH_AARCH64;
#else
#error "the sandbox's filter was not thought through for this architecture"
#endif
}

/* Put before the program: a native call with a number above all we know does not exist. Numbers of
 * the x32 ABI go on to the program, which kills. */
static void put_prologue(struct sock_filter *at)
{
    const struct sock_filter code[PROLOGUE] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, native_arch(), 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SYSCALL_LAST, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    };
    memcpy(at, code, sizeof code);
}

/* libseccomp writes programs to descriptors only. */
static int export(scmp_filter_ctx c, struct sandbox_seccomp *ret, struct err *err)
{
    int fd = memfd_create("filter", MFD_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "memfd_create");
    int r = -1;
    off_t size = 0;
    int failed = seccomp_export_bpf(c, fd);
    if (failed == 0)
        size = lseek(fd, 0, SEEK_END);
    size_t n = (size_t)size / sizeof(struct sock_filter);
    ret->code = calloc(PROLOGUE + n, sizeof(struct sock_filter));
    if (failed != 0 || size <= 0 || n + PROLOGUE > PROGRAM_MAX || ret->code == NULL) {
        err_set(err, ERR_INTERNAL, "cannot export the sandbox's filter");
    } else if (pread(fd, ret->code + PROLOGUE, (size_t)size, 0) != size) {
        err_sys(err, "cannot read the sandbox's filter");
    } else {
        put_prologue(ret->code);
        ret->n = n + PROLOGUE;
        r = 0;
    }
    close(fd);
    return r;
}

int sandbox_seccomp_compile(struct sandbox_seccomp *ret, struct err *err)
{
    memset(ret, 0, sizeof *ret);
    scmp_filter_ctx c = seccomp_init(SCMP_ACT_ALLOW);
    if (c == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    int r = -1;
    if (seccomp_attr_set(c, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) < 0 ||
        seccomp_attr_set(c, SCMP_FLTATR_CTL_OPTIMIZE, 2) < 0)
        err_set(err, ERR_INTERNAL, "libseccomp refuses an attribute");
    else if (deny_names(c, err) == 0 && deny_families(c, err) == 0 &&
             deny_protocols(c, AF_INET, err) == 0 && deny_protocols(c, AF_INET6, err) == 0 &&
             deny_ioctls(c, err) == 0 && deny_clone(c, err) == 0 && deny_set_id(c, err) == 0 &&
             deny_personality(c, err) == 0 && keep_core_limit(c, err) == 0)
        r = export(c, ret, err);
    seccomp_release(c);
    if (r < 0)
        sandbox_seccomp_free(ret);
    return r;
}

int sandbox_seccomp_memfd(const struct sandbox_seccomp *f, struct err *err)
{
    int fd = ipc_memfd("filter", f->code, f->n * sizeof *f->code, err);
    if (fd >= 0 && lseek(fd, 0, SEEK_SET) < 0) {
        close(fd);
        return err_sys(err, "lseek");
    }
    return fd;
}

void sandbox_seccomp_free(struct sandbox_seccomp *f)
{
    free(f->code);
    memset(f, 0, sizeof *f);
}
