/* Calls the kernel's mount interface, which older libcs do not have, and explains its errors. */
#define _GNU_SOURCE 1
#include "mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The numbers are the kernel's (linux/mount.h), which does not go together with older libcs. */
enum {
    TREE_CLONE = 1,
    MOVE_FROM_EMPTY = 0x4,
    MOVE_TO_EMPTY = 0x40,
    ATTR_RDONLY = 0x1,
    ATTR_NOSUID = 0x2,
    ATTR_NODEV = 0x4,
    ATTR_NOEXEC = 0x8,
    ATTR_IDMAP = 0x100000,
    TREE_RECURSIVE = 0x8000, /* AT_RECURSIVE */
    CONFIG_FLAG = 0,
    CONFIG_STRING = 1,
    CONFIG_CREATE = 6,
};

struct attributes { /* struct mount_attr */
    uint64_t set, clear, propagation, userns;
};

int mounts_private(struct err *err)
{
    /* slave, not private: an unmount on the host is not kept busy by us */
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return err_sys(err, "cannot separate the mounts from the host's");
    return 0;
}

int mounts_open(const char *path, struct err *err)
{
    struct open_how how = {
        .flags = O_PATH | O_CLOEXEC, /* with O_NOFOLLOW a link at the end would be opened itself */
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    if (fd < 0 && errno == ELOOP)
        return err_set(err, ERR_DENIED, "%s: a component is a symbolic link", path);
    if (fd < 0)
        return err_sys(err, "%s", path);
    return fd;
}

static int set_attributes(int fd, uint64_t set, unsigned flags, struct err *err)
{
    struct attributes a = {.set = set};
    if (syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | flags, &a, sizeof a) < 0)
        return err_sys(err,
                       errno == ENOSYS ? "Linux 5.12 is needed: mount_setattr" : "mount_setattr");
    return 0;
}

static int clone_tree(int fd, struct err *err)
{
    int tree = (int)syscall(SYS_open_tree, fd, "",
                            TREE_CLONE | O_CLOEXEC | AT_EMPTY_PATH | TREE_RECURSIVE);
    return tree < 0 ? err_sys(err, "open_tree") : tree;
}

int mounts_clone_as(int fd, bool readonly, int owners, bool *partly, struct err *err)
{
    int tree = clone_tree(fd, err);
    struct attributes a = {.set = ATTR_NOSUID | ATTR_NODEV | (readonly ? ATTR_RDONLY : 0),
                           .propagation = MS_SLAVE}, /* as after mounts_private */
        as = {.set = ATTR_IDMAP, .userns = (uint64_t)owners};
    if (tree < 0)
        return -1;
    const unsigned all = AT_EMPTY_PATH | TREE_RECURSIVE;
    bool ok = syscall(SYS_mount_setattr, tree, "", all, &a, sizeof a) == 0;
    *partly = ok && syscall(SYS_mount_setattr, tree, "", all, &as, sizeof as) < 0;
    if (*partly)
        ok = syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &as, sizeof as) == 0;
    if (ok)
        return tree;
    err_sys(err, "mount_setattr");
    close(tree);
    return -1;
}

int mounts_clone(int fd, bool readonly, struct err *err)
{
    int tree = clone_tree(fd, err);
    if (tree < 0)
        return -1;
    uint64_t set = ATTR_NOSUID | ATTR_NODEV | (readonly ? ATTR_RDONLY : 0);
    if (set_attributes(tree, set, TREE_RECURSIVE, err) < 0) {
        close(tree);
        return -1;
    }
    return tree;
}

int mounts_tmpfs(const char *mode, const char *size, const char *inodes, struct err *err)
{
    int fs = (int)syscall(SYS_fsopen, "tmpfs", 1 /* FSOPEN_CLOEXEC */);
    if (fs < 0)
        return err_sys(err, "fsopen tmpfs");
    int tree = -1;
    if (syscall(SYS_fsconfig, fs, CONFIG_STRING, "mode", mode, 0) < 0 ||
        (size && syscall(SYS_fsconfig, fs, CONFIG_STRING, "size", size, 0) < 0) ||
        (inodes && syscall(SYS_fsconfig, fs, CONFIG_STRING, "nr_inodes", inodes, 0) < 0) ||
        syscall(SYS_fsconfig, fs, CONFIG_STRING, "source", "durward", 0) < 0 ||
        syscall(SYS_fsconfig, fs, CONFIG_CREATE, NULL, NULL, 0) < 0)
        err_sys(err, "cannot make a tmpfs");
    else if ((tree = (int)syscall(SYS_fsmount, fs, 1 /* CLOEXEC */, ATTR_NOSUID | ATTR_NODEV)) < 0)
        err_sys(err, "fsmount tmpfs");
    close(fs);
    return tree;
}

int mounts_devpts(unsigned most, struct err *err)
{
    char max[16];
    int tree = -1, fs = (int)syscall(SYS_fsopen, "devpts", 1 /* FSOPEN_CLOEXEC */);
    if (fs < 0)
        return err_sys(err, "fsopen devpts");
    snprintf(max, sizeof max, "%u", most);
    if (syscall(SYS_fsconfig, fs, CONFIG_STRING, "source", "durward", 0) < 0 ||
        syscall(SYS_fsconfig, fs, CONFIG_STRING, "mode", "0620", 0) < 0 ||
        syscall(SYS_fsconfig, fs, CONFIG_STRING, "ptmxmode", "0666", 0) < 0 ||
        syscall(SYS_fsconfig, fs, CONFIG_STRING, "max", max, 0) < 0 ||
        syscall(SYS_fsconfig, fs, CONFIG_CREATE, NULL, NULL, 0) < 0)
        err_sys(err, "cannot make a devpts");
    else if ((tree = (int)syscall(SYS_fsmount, fs, 1 /* CLOEXEC */, ATTR_NOSUID | ATTR_NOEXEC)) < 0)
        err_sys(err, "fsmount devpts");
    close(fs);
    return tree;
}

static int set_overlay(int fs, const char *lower, int upper, int work)
{
    char u[32], w[32];
    snprintf(u, sizeof u, "/proc/self/fd/%d", upper);
    snprintf(w, sizeof w, "/proc/self/fd/%d", work);
    if (syscall(SYS_fsconfig, fs, CONFIG_STRING, "source", "durward", 0) < 0 ||
        syscall(SYS_fsconfig, fs, CONFIG_FLAG, "userxattr", NULL, 0) < 0 ||
        syscall(SYS_fsconfig, fs, CONFIG_FLAG, "volatile", NULL, 0) < 0 ||
        syscall(SYS_fsconfig, fs, CONFIG_STRING, "lowerdir", lower, 0) < 0 ||
        syscall(SYS_fsconfig, fs, CONFIG_STRING, "upperdir", u, 0) < 0 ||
        syscall(SYS_fsconfig, fs, CONFIG_STRING, "workdir", w, 0) < 0)
        return -1;
    return (int)syscall(SYS_fsconfig, fs, CONFIG_CREATE, NULL, NULL, 0);
}

/* Why there is none. An overlay is what most containers have as their root. */
static void explain_overlay(int upper, struct err *err)
{
    struct statfs fs;
    int why = errno;
    bool nested = fstatfs(upper, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC;
    errno = why;
    if (nested)
        err_set(err, ERR_UNREADY,
                "what sandboxes write cannot be kept on an overlay (as the root of a container is "
                "one): put controller.state onto a volume or another file system");
    else
        err_sys(err, "overlayfs cannot be mounted in a user namespace (Linux 5.11 is needed, and "
                     "a file system with user attributes)");
}

int mounts_overlay(const int *lower, unsigned n, int upper, int work, struct err *err)
{
    char dirs[128];
    size_t at = 0;
    int tree = -1, fs = (int)syscall(SYS_fsopen, "overlay", 1 /* FSOPEN_CLOEXEC */);
    if (fs < 0)
        return err_sys(err, "overlayfs cannot be used (as root: modprobe overlay)");
    for (unsigned i = 0; i < n; i++)
        at += (size_t)snprintf(dirs + at, sizeof dirs - at, "%s/proc/self/fd/%d", i ? ":" : "",
                               lower[i]);
    if (set_overlay(fs, dirs, upper, work) < 0)
        explain_overlay(upper, err);
    else if ((tree = (int)syscall(SYS_fsmount, fs, 1 /* CLOEXEC */, ATTR_NOSUID | ATTR_NODEV)) < 0)
        err_sys(err, "fsmount overlay");
    close(fs);
    return tree;
}

int mounts_attach(int tree, int at, struct err *err)
{
    if (syscall(SYS_move_mount, tree, "", at, "", MOVE_FROM_EMPTY | MOVE_TO_EMPTY) < 0)
        return err_sys(err, "move_mount");
    return 0;
}

int mounts_freeze(int fd, struct err *err)
{
    return set_attributes(fd, ATTR_RDONLY, 0, err);
}

/* One component below `at`; made when it is not there. */
static int step(int at, const char *name, bool dir, struct err *err)
{
    int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(at, name, flags);
    if (fd < 0 && errno == ENOENT) {
        int made = dir ? mkdirat(at, name, 0755)
                       : openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (made < 0 && errno != EEXIST)
            return err_sys(err, "cannot make %s", name);
        if (made > 0)
            close(made);
        fd = openat(at, name, flags);
    }
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        err_sys(err, "%s", name);
    } else if (S_ISLNK(st.st_mode)) {
        err_set(err, ERR_DENIED, "%s is a symbolic link inside the sandbox", name);
    } else if (dir != (bool)S_ISDIR(st.st_mode)) {
        err_set(err, ERR_DENIED, "%s is %sa directory", name, dir ? "not " : "");
    } else {
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

int mounts_place(int root, const char *path, bool dir, struct err *err)
{
    int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
    if (at < 0)
        return err_sys(err, "dup");
    for (;;) {
        path += strspn(path, "/");
        size_t n = strcspn(path, "/");
        char name[NAME_MAX + 1];
        if (n == 0)
            return at;
        if (n >= sizeof name) {
            close(at);
            return err_set(err, ERR_LIMIT, "a path component is too long");
        }
        memcpy(name, path, n);
        name[n] = '\0';
        path += n;
        int next = step(at, name, dir || path[strspn(path, "/")] != '\0', err);
        close(at);
        if (next < 0)
            return -1;
        at = next;
    }
}

int mounts_show(int root, const char *path, int from, bool dir, struct err *err)
{
    int at = mounts_place(root, path, dir, err);
    int tree = at < 0 ? -1 : mounts_clone(from, true, err);
    int r = tree < 0 ? -1 : mounts_attach(tree, at, err);
    if (at >= 0)
        close(at);
    if (tree >= 0)
        close(tree);
    return r;
}
