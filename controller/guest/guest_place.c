/* File systems, modules, and the place of durward-init: root, /proc, /dev, and no right. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "guest.h"
#include "guest_internal.h"

enum { FILES = 65536, COMPRESSED = 4 /* of finit_module(2) */, PATH = 128 };

#define EMPTY  "/empty" /* a file of the first ones, which none sees */
#define GROUPS "/groups"
#define GROUP  GROUPS "/sandbox"

static int put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    if (fd >= 0)
        close(fd);
    return n < 0 ? guest_fail(path) : 0;
}

static int mount_at(const char *type, const char *at, unsigned long flags, const char *data)
{
    (void)mkdir(at, 0755);
    return mount(type, at, type, flags, data) < 0 ? guest_fail(at) : 0;
}

static int load_modules(void)
{
    char path[PATH];
    for (unsigned i = 0;; i++) {
        snprintf(path, sizeof path, "/" GUEST_MODULE, i);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return errno == ENOENT ? 0 : guest_fail(path);
        long r = syscall(SYS_finit_module, fd, "", 0);
        if (r < 0 && errno == ENOEXEC)
            r = syscall(SYS_finit_module, fd, "", COMPRESSED);
        if (r < 0 && errno != EEXIST)
            return guest_fail(path);
        close(fd);
        (void)unlink(path);
    }
}

/* Tasks of the sandbox, by their group; durward-init's is one. */
static int bound_tasks(unsigned pids)
{
    char text[16];
    if (pids == 0)
        return 0;
    snprintf(text, sizeof text, "%u", pids + 1);
    if (mount_at("cgroup2", GROUPS, MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ||
        put(GROUPS "/cgroup.subtree_control", "+pids") < 0)
        return -1;
    (void)mkdir(GROUP, 0755);
    return put(GROUP "/pids.max", text);
}

int guest_place_make(const struct guest_words *w)
{
    if (mount_at("devtmpfs", "/dev", MS_NOSUID, NULL) < 0 ||
        mount_at("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ||
        load_modules() < 0 || bound_tasks(w->pids) < 0)
        return -1;
    (void)mkdir(GUEST_ROOT, 0755);
    if (mknod(EMPTY, S_IFREG | 0444, 0) < 0)
        return guest_fail(EMPTY);
    if (mount(GUEST_TAG, GUEST_ROOT, "virtiofs", MS_NOSUID | MS_NODEV, NULL) < 0)
        return guest_fail("the root");
    /* what the kernel says later is nobody's */
    return put("/proc/sys/kernel/printk", "0");
}

/* ---- in namespaces of its own ---- */

static int make_nodes(void)
{
    static const struct {
        const char *name;
        unsigned major, minor;
    } nodes[] = {{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
                 {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};
    char path[PATH];
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
        snprintf(path, sizeof path, "dev/%s", nodes[i].name);
        if (mknod(path, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)) < 0)
            return guest_fail(path);
    }
    return symlink("pts/ptmx", "dev/ptmx") < 0 || symlink("/proc/self/fd", "dev/fd") < 0 ||
                   symlink("/proc/self/fd/0", "dev/stdin") < 0 ||
                   symlink("/proc/self/fd/1", "dev/stdout") < 0 ||
                   symlink("/proc/self/fd/2", "dev/stderr") < 0
               ? guest_fail("dev")
               : 0;
}

static int make_dev(unsigned long shared)
{
    char text[64];
    snprintf(text, sizeof text, "mode=1777,size=%lu", shared);
    umask(0);
    if (mount_at("tmpfs", "dev", MS_NOSUID, "mode=755") < 0 || make_nodes() < 0 ||
        mount_at("devpts", "dev/pts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620") <
            0 ||
        mount_at("tmpfs", "dev/shm", MS_NOSUID | MS_NODEV, text) < 0)
        return -1;
    umask(022);
    return mount(NULL, "dev", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID, NULL) < 0
               ? guest_fail("dev")
               : 0;
}

/* What there is of /proc that is not of processes: root inside owns it, whose right is to write. */
static int cover(const char *name, bool whole)
{
    char path[PATH];
    snprintf(path, sizeof path, "proc/%s", name);
    if (access(path, F_OK) < 0)
        return 0;
    if (mount(whole ? EMPTY : path, path, NULL, MS_BIND, NULL) < 0 ||
        mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC, NULL) < 0)
        return guest_fail(path);
    return 0;
}

static int cover_proc(void)
{
    static const char *const read_only[] = {"sys",  "irq",    "bus",           "fs",  "scsi",
                                            "acpi", "driver", "dynamic_debug", "mtrr"};
    static const char *const empty[] = {"keys",        "key-users", "sysrq-trigger", "kcore",
                                        "kmsg",        "kallsyms",  "timer_list",    "sched_debug",
                                        "vmallocinfo", "slabinfo"};
    for (size_t i = 0; i < ARRAY_LEN(read_only); i++)
        if (cover(read_only[i], false) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(empty); i++)
        if (cover(empty[i], true) < 0)
            return -1;
    return 0;
}

/* As switch_root(8) does it: the first files lie below, where nobody comes. */
static int enter_root(const struct guest_words *w)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || chdir(GUEST_ROOT) < 0 ||
        sethostname(w->hostname, strlen(w->hostname)) < 0)
        return guest_fail("the root");
    if (mount_at("proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ||
        make_dev(w->shared) < 0 || cover_proc() < 0 ||
        (access("sys", F_OK) == 0 && /* a root that is only read may have none */
         mount_at("tmpfs", "sys", MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0))
        return -1;
    if (mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
        return guest_fail("the root");
    return 0;
}

static int give_up_rights(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    const struct rlimit files = {FILES, FILES}, core = {1, 1}; /* no dump, by no program either */
    for (int c = 0; prctl(PR_CAPBSET_READ, c) >= 0; c++)
        if (prctl(PR_CAPBSET_DROP, c) < 0)
            return guest_fail("capabilities");
    if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_CORE, &core) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capset, &head, none) < 0)
        return guest_fail("capabilities");
    return 0;
}

static NORETURN void become(const struct guest_words *w, int control)
{
    char *const none[] = {NULL};
    if (setsid() < 0 || enter_root(w) < 0 || dup2(control, STDIN_FILENO) < 0 ||
        give_up_rights() < 0)
        _exit(1);
    execve(w->init[0], w->init, none);
    (void)guest_fail(w->init[0]);
    _exit(1);
}

int guest_place_start(const struct guest_words *w, const struct guest_net *net, int control)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid < 0 ? -1 : 0;
    if ((w->pids > 0 && put(GROUP "/cgroup.procs", "0") < 0) ||
        setns(net->theirs, CLONE_NEWNET) < 0 ||
        unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) < 0)
        _exit(1);
    pid = fork();
    if (pid == 0)
        become(w, control);
    _exit(pid < 0);
}
