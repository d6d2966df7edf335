/* Lists what is refused and why, compiles it with libseccomp, and puts instructions of our own in
 * front for calls that libseccomp may be too old to know. */
#define _GNU_SOURCE 1
#include "sandbox_seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc.h"

enum {
    /* since Linux 5.1 a new call has one number on every architecture */
    FCHMODAT2 = 452,
    STATMOUNT = 457,
    LISTMOUNT = 458,
    SYSCALL_LAST = 462, /* mseal, Linux 6.10: the last call that was looked at for this list */
    X32_BIT = 0x40000000,
    PROLOGUE = 12,
};

/* Calls that are refused whatever their arguments. */
static const char *const refused[] = {
    /* new attack surface without a file: keys, tracing, programs */
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
    /* files past their paths */
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
    "vserver",
};

/* Namespaces, roots and mounts: refused, unless containers inside are meant. */
static const char *const nesting[] = {
    "setns",  "unshare",     "mount",         "umount",    "umount2",    "pivot_root",
    "chroot", "sethostname", "setdomainname", "open_tree", "move_mount", "mount_setattr",
};

/* The newer calls that make a file system of its parameters: refused. Where mount(2) is open these
 * are absent, as programs go back to that. */
static const char *const making[] = {"fsopen", "fsconfig", "fsmount", "fspick"};

/* Calls that this kernel seems not to have, for which programs have another way. Requests of
 * asynchronous I/O come out of one number for the whole host (fs.aio-max-nr), which no namespace
 * and no control group divides: whoever takes all stops the host's databases. */
static const char *const absent[] = {
    "io_setup",      "io_destroy",     "io_submit",      "io_cancel",         "io_getevents",
    "io_pgetevents", "io_uring_setup", "io_uring_enter", "io_uring_register",
};

static void deny(struct filter *f, uint32_t action, const char *call, unsigned n,
                 const struct scmp_arg_cmp *conditions)
{
    filter_rule(f, action, call, n, conditions);
}

static void deny_names(struct filter *f, bool nested)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        deny(f, SCMP_ACT_ERRNO(EPERM), refused[i], 0, NULL);
    for (size_t i = 0; !nested && i < ARRAY_LEN(nesting); i++)
        deny(f, SCMP_ACT_ERRNO(EPERM), nesting[i], 0, NULL);
    for (size_t i = 0; i < ARRAY_LEN(making); i++)
        deny(f, SCMP_ACT_ERRNO(nested ? ENOSYS : EPERM), making[i], 0, NULL);
    for (size_t i = 0; i < ARRAY_LEN(absent); i++)
        deny(f, SCMP_ACT_ERRNO(ENOSYS), absent[i], 0, NULL);
}

/* Huge pages are set aside by the host for one of its programs, and anybody may map them: in here
 * there are none left. A memfd of them is what an older kernel knows nothing of: Chromium asks with
 * all flags set whether there are memfds, and ends if the answer is another. SHM_LOCK counts
 * against what the uid may lock on the whole host. */
static void deny_set_aside(struct filter *f)
{
    struct scmp_arg_cmp huge[] = {SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_HUGETLB, MAP_HUGETLB)};
    deny(f, SCMP_ACT_ERRNO(ENOMEM), "mmap", 1, huge);
    struct scmp_arg_cmp file[] = {SCMP_A1(SCMP_CMP_MASKED_EQ, MFD_HUGETLB, MFD_HUGETLB)};
    deny(f, SCMP_ACT_ERRNO(EINVAL), "memfd_create", 1, file);
    struct scmp_arg_cmp segment[] = {SCMP_A2(SCMP_CMP_MASKED_EQ, SHM_HUGETLB, SHM_HUGETLB)};
    deny(f, SCMP_ACT_ERRNO(ENOMEM), "shmget", 1, segment);
    struct scmp_arg_cmp lock[] = {SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, SHM_LOCK)};
    deny(f, SCMP_ACT_ERRNO(EPERM), "shmctl", 1, lock);
}

/* Comparisons are of 64 bits and the kernel takes the low 32 of these arguments; so "greater than"
 * also catches what carries anything above, and what is tested by equality is masked. */
static void deny_families(struct filter *f)
{
    uint32_t no = SCMP_ACT_ERRNO(EAFNOSUPPORT);
    struct scmp_arg_cmp above[] = {SCMP_A0(SCMP_CMP_GT, AF_NETLINK)};
    deny(f, no, "socket", 1, above);
    for (uint64_t family = 0; family < AF_NETLINK; family++) {
        struct scmp_arg_cmp is[] = {SCMP_A0(SCMP_CMP_EQ, family)};
        if (family != AF_UNIX && family != AF_INET && family != AF_INET6)
            deny(f, no, "socket", 1, is);
    }
    struct scmp_arg_cmp netlink[] = {SCMP_A0(SCMP_CMP_EQ, AF_NETLINK),
                                     SCMP_A2(SCMP_CMP_NE, 0 /* NETLINK_ROUTE */)};
    deny(f, SCMP_ACT_ERRNO(EPROTONOSUPPORT), "socket", 2, netlink);
    struct scmp_arg_cmp pair[] = {SCMP_A0(SCMP_CMP_NE, AF_UNIX)};
    deny(f, no, "socketpair", 1, pair);
}

/* TCP and UDP: protocol 0, 6 or 17, and only stream and datagram sockets, because protocol 0 of
 * another type stands for SCTP, DCCP or raw. */
static void deny_protocols(struct filter *f, uint64_t family)
{
    uint32_t no = SCMP_ACT_ERRNO(EPROTONOSUPPORT);
    struct scmp_arg_cmp above[] = {SCMP_A0(SCMP_CMP_EQ, family), SCMP_A2(SCMP_CMP_GT, 17)};
    deny(f, no, "socket", 2, above);
    for (uint64_t protocol = 1; protocol < 17; protocol++) {
        struct scmp_arg_cmp is[] = {SCMP_A0(SCMP_CMP_EQ, family), SCMP_A2(SCMP_CMP_EQ, protocol)};
        if (protocol != 6)
            deny(f, no, "socket", 2, is);
    }
    for (uint64_t type = 0; type < 16; type++) {
        struct scmp_arg_cmp is[] = {SCMP_A0(SCMP_CMP_EQ, family),
                                    SCMP_A1(SCMP_CMP_MASKED_EQ, 15, type)};
        if (type != SOCK_STREAM && type != SOCK_DGRAM)
            deny(f, no, "socket", 2, is);
    }
}

static void deny_ioctls(struct filter *f)
{
    static const uint64_t requests[] = {TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD};
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        struct scmp_arg_cmp is[] = {SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, requests[i])};
        deny(f, SCMP_ACT_ERRNO(EPERM), "ioctl", 1, is);
    }
}

/* The old interfaces of packet rules (ip_tables, arp_tables, ip6_tables, ip_vs) are options of any
 * socket, for who has CAP_NET_ADMIN over its network: with a user namespace of one's own that is
 * everybody. IP's own options end at 51, where theirs begin at 64; IPv6's go on at 66. */
static void deny_tables(struct filter *f)
{
    uint32_t no = SCMP_ACT_ERRNO(ENOPROTOOPT);
    struct scmp_arg_cmp v4[] = {SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, IPPROTO_IP),
                                SCMP_A2(SCMP_CMP_GE, 64)};
    deny(f, no, "setsockopt", 2, v4);
    for (uint64_t option = 64; option <= 65; option++) {
        struct scmp_arg_cmp v6[] = {SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, IPPROTO_IPV6),
                                    SCMP_A2(SCMP_CMP_MASKED_EQ, 0xffffffff, option)};
        deny(f, no, "setsockopt", 2, v6);
    }
}

static void deny_clone(struct filter *f, bool nested)
{
    /* CLONE_NEWTIME is not among them: clone takes that bit for a part of the exit signal */
    static const uint64_t flags[] = {CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWNS,    CLONE_NEWPID,
                                     CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};
    for (size_t i = 0; !nested && i < ARRAY_LEN(flags); i++) {
        struct scmp_arg_cmp is[] = {SCMP_A0(SCMP_CMP_MASKED_EQ, flags[i], flags[i])};
        deny(f, SCMP_ACT_ERRNO(EPERM), "clone", 1, is);
    }
    if (nested) {
        struct scmp_arg_cmp time[] = {SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWTIME, CLONE_NEWTIME)};
        deny(f, SCMP_ACT_ERRNO(EPERM), "unshare", 1, time);
    }
    /* its flags lie in memory, where a filter cannot look; libcs fall back to clone */
    deny(f, SCMP_ACT_ERRNO(ENOSYS), "clone3", 0, NULL);
}

/* A file in a bound directory is the host's, where its set-user-ID bit counts: of root's sandbox it
 * would make anybody root. No program inside has a use for one. (fchmodat2: put_prologue) */
static void deny_set_id(struct filter *f, bool nested)
{
    static const struct {
        const char *call;
        unsigned arg;
    } modes[] = {{"chmod", 1}, {"fchmod", 1}, {"fchmodat", 2}, {"creat", 1},
                 {"open", 2},  {"openat", 3}, {"mknod", 1},    {"mknodat", 2}};
    static const uint64_t bits[] = {S_ISUID, S_ISGID};
    /* a mode that is not read may hold anything; of O_TMPFILE the bit that is not O_DIRECTORY */
    static const uint64_t flags[] = {O_CREAT, O_TMPFILE & ~O_DIRECTORY};
    for (size_t i = 0; !nested && i < ARRAY_LEN(modes) * ARRAY_LEN(bits) * ARRAY_LEN(flags); i++) {
        size_t m = i / 4;
        uint64_t bit = bits[i / 2 % 2], flag = flags[i % 2];
        bool opens = strncmp(modes[m].call, "open", 4) == 0;
        struct scmp_arg_cmp is[] = {{modes[m].arg, SCMP_CMP_MASKED_EQ, bit, bit},
                                    {modes[m].arg - 1, SCMP_CMP_MASKED_EQ, flag, flag}};
        if (opens || flag == O_CREAT)
            deny(f, SCMP_ACT_ERRNO(EPERM), modes[m].call, opens ? 2 : 1, is);
    }
    /* its mode lies in memory; programs fall back to openat */
    deny(f, SCMP_ACT_ERRNO(ENOSYS), "openat2", 0, NULL);
}

/* Where the host hands core dumps to a program, that runs outside and as root, for each crash in
 * here, whatever the limit is, unless it is exactly 1 (core(5)); which the launcher sets. So nobody
 * sets another, and programs that want 0 are told that they have it. */
static void keep_core_limit(struct filter *f)
{
    struct scmp_arg_cmp set[] = {SCMP_A0(SCMP_CMP_EQ, RLIMIT_CORE)};
    struct scmp_arg_cmp change[] = {SCMP_A1(SCMP_CMP_EQ, RLIMIT_CORE), SCMP_A2(SCMP_CMP_NE, 0)};
    deny(f, SCMP_ACT_ERRNO(0), "setrlimit", 1, set);
    deny(f, SCMP_ACT_ERRNO(0), "prlimit64", 2, change);
}

/* Execution domains: plain Linux, 32-bit uname, 2.6 uname, both, and the question 0xffffffff. Bit
 * 31 set means that question, of which no bit may be missing; otherwise only bits 3 and 17 are
 * free. */
static void deny_personality(struct filter *f)
{
    const uint64_t top = UINT64_C(1) << 31;
    for (unsigned b = 0; b < 31; b++) {
        uint64_t bit = UINT64_C(1) << b;
        struct scmp_arg_cmp plain[] = {SCMP_A0(SCMP_CMP_MASKED_EQ, top | bit, bit)};
        struct scmp_arg_cmp question[] = {SCMP_A0(SCMP_CMP_MASKED_EQ, top | bit, top)};
        uint32_t no = SCMP_ACT_ERRNO(EPERM);
        if (b != 3 && b != 17)
            deny(f, no, "personality", 1, plain);
        deny(f, no, "personality", 1, question);
    }
}

/* Put before the program, because libseccomp may be too old to know them: calls above all that we
 * know do not exist; statmount and listmount, which tell where the host keeps what was bound, are
 * refused; so is a set-ID bit by fchmodat2, if it is elsewhere. Numbers of the x32 ABI go on to the
 * program, which kills. */
static void put_prologue(struct sock_filter *at, uint32_t arch, bool nested)
{
    /* an architecture is the kernel's number of it; both have an argument's low half first */
    const struct sock_filter code[PROLOGUE] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arch, 0, 10),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, arch == SCMP_ARCH_X86_64 ? 8 : 0, 0),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SYSCALL_LAST, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, STATMOUNT, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LISTMOUNT, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FCHMODAT2, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, nested ? 0 : S_ISUID | S_ISGID, 1, 2),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    memcpy(at, code, sizeof code);
}

int sandbox_seccomp_compile(uint32_t arch, bool nested, struct filter_program *ret, struct err *err)
{
    arch = filter_arch(arch);
    if (arch != SCMP_ARCH_X86_64 && arch != SCMP_ARCH_AARCH64)
        return err_set(err, ERR_INTERNAL, "no sandbox's filter was made for this processor");
    struct filter *f = filter_new(arch, SCMP_ACT_ALLOW);
    deny_names(f, nested);
    deny_set_aside(f);
    deny_families(f);
    deny_protocols(f, AF_INET);
    deny_protocols(f, AF_INET6);
    deny_ioctls(f);
    deny_clone(f, nested);
    if (nested)
        deny_tables(f);
    deny_set_id(f, nested);
    deny_personality(f);
    keep_core_limit(f);
    int r = filter_write(f, PROLOGUE, ret, err);
    if (r == 0)
        put_prologue(ret->code, arch, nested);
    filter_free(f);
    return r;
}

int sandbox_seccomp_files(struct filter_program *ret, struct err *err)
{
    uint32_t arch = filter_arch(FILTER_NATIVE);
    struct filter *f = filter_new(arch, SCMP_ACT_ALLOW);
    deny_set_id(f, false);
    int r = filter_write(f, PROLOGUE, ret, err);
    if (r == 0)
        put_prologue(ret->code, arch, false);
    filter_free(f);
    return r;
}

int sandbox_seccomp_memfd(const struct filter_program *p, struct err *err)
{
    if (p->n == 0) /* an empty one might be taken for one that allows all */
        return err_set(err, ERR_INTERNAL, "there is no filter of system calls");
    int fd = ipc_memfd("filter", p->code, p->n * sizeof *p->code, err);
    if (fd >= 0 && lseek(fd, 0, SEEK_SET) < 0) {
        close(fd);
        return err_sys(err, "lseek");
    }
    return fd;
}
