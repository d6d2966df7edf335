/* The file systems that a root is made of: scratch and base on tmpfs, terminals, overlays for the
 * root and for the host's /usr. */
#define _GNU_SOURCE 1
#include "rootfs_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mounts.h"

#define TMP                                                                              \
    "/tmp" /* bubblewrap too needs this directory; the rootfs hides the host's meanwhile \
            */

enum { BYTES_A_FILE = 8192, INODES_MIN = 4096, INODES_MAX = 1000000, TERMINALS = 32 };

bool rootfs_layered(const struct plan *plan)
{
    return plan->sandbox_spec.image[0] || plan->sandbox_spec.root != SANDBOX_SPEC_READ_ONLY;
}

int rootfs_attach_at(struct rootfs *s, int tree, const char *path, bool dir, struct err *err)
{
    int at = mounts_place(s->root, path, dir, err);
    int r = at < 0 ? -1 : mounts_attach(tree, at, err);
    if (at >= 0)
        close(at);
    return r < 0 ? err_wrap(err, "%s", path) : 0;
}

/* A tmpfs on outer/name. */
static int attach_outer(struct rootfs *s, const char *name, const char *size, const char *inodes,
                        struct err *err)
{
    int at = mounts_place(s->outer, name, true, err);
    int tree = at < 0 ? -1 : mounts_tmpfs("0755", size, inodes, err);
    if (tree >= 0 && mounts_attach(tree, at, err) < 0) {
        close(tree);
        tree = -1;
    }
    if (at >= 0)
        close(at);
    return tree;
}

static int attach_terminals(struct rootfs *s, struct err *err)
{
    int at = mounts_place(s->outer, "pts", true, err);
    int tree = at < 0 ? -1 : mounts_devpts(TERMINALS, err);
    int r = tree < 0 ? -1 : mounts_attach(tree, at, err);
    if (tree >= 0)
        close(tree);
    if (at >= 0)
        close(at);
    return r;
}

int rootfs_make(struct rootfs *s, struct err *err)
{
    char size[32], inodes[32];
    uint64_t disk = plan_scratch(s->plan);
    snprintf(size, sizeof size, "%llu", (unsigned long long)disk);
    /* an empty file is kernel memory too */
    uint64_t files = disk == 0 ? INODES_MAX : disk / BYTES_A_FILE;
    snprintf(inodes, sizeof inodes, "%llu",
             (unsigned long long)(files < INODES_MIN ? INODES_MIN : files));
    int tmp = open(TMP, O_PATH | O_DIRECTORY | O_CLOEXEC);
    s->outer = tmp < 0 ? err_sys(err, TMP) : mounts_tmpfs("0755", NULL, NULL, err);
    int r = s->outer < 0 ? -1 : mounts_attach(s->outer, tmp, err);
    if (tmp >= 0)
        close(tmp);
    if (r < 0 || (s->scratch = attach_outer(s, "scratch", disk ? size : NULL, inodes, err)) < 0)
        return -1;
    s->mask.empty_file = mounts_place(s->outer, "empty/file", false, err);
    s->mask.empty_dir = mounts_place(s->outer, "empty/directory", true, err);
    if (s->mask.empty_file < 0 || s->mask.empty_dir < 0 || attach_terminals(s, err) < 0)
        return -1;
    bool layered = rootfs_layered(s->plan);
    s->base = attach_outer(s, layered ? "base" : "root", "16m", NULL, err);
    if (s->base < 0)
        return -1;
    if (!layered && (s->root = fcntl(s->base, F_DUPFD_CLOEXEC, 0)) < 0)
        return err_sys(err, "dup");
    return 0;
}

/* A directory of scratch, O_PATH. */
static int scratch_dir(struct rootfs *s, const char *name, mode_t mode, struct err *err)
{
    if (mkdirat(s->scratch, name, mode) < 0)
        return err_sys(err, "cannot make %s", name);
    if (fchmodat(s->scratch, name, mode, 0) < 0) /* the umask */
        return err_sys(err, "chmod");
    int fd = openat(s->scratch, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_sys(err, "%s", name) : fd;
}

int rootfs_add_scratch(struct rootfs *s, const char *name, const char *path, mode_t mode,
                       struct err *err)
{
    int fd = scratch_dir(s, name, mode, err);
    int tree = fd < 0 ? -1 : mounts_clone(fd, false, err);
    int r = tree < 0 ? -1 : rootfs_attach_at(s, tree, path, true, err);
    if (fd >= 0)
        close(fd);
    if (tree >= 0)
        close(tree);
    return r;
}

/* A detached overlay above these, written to the kept layer or to scratch. */
static int make_overlay(struct rootfs *s, const int *lower, unsigned n, enum layer_part part,
                        struct err *err)
{
    static const char *const names[LAYER_PARTS][2] = {{"root", "root.work"}, {"usr", "usr.work"}};
    int upper = s->dirs.layer.upper[part], work = s->dirs.layer.work[part];
    if (upper >= 0)
        return mounts_overlay(lower, n, upper, work, err);
    upper = scratch_dir(s, names[part][0], 0755, err);
    work = upper < 0 ? -1 : scratch_dir(s, names[part][1], 0700, err);
    int tree = work < 0 ? -1 : mounts_overlay(lower, n, upper, work, err);
    if (upper >= 0)
        close(upper);
    if (work >= 0)
        close(work);
    return tree;
}

/* Is nothing at this path in the image, and no link on the way? No name is followed. */
static bool image_lacks(const struct rootfs *s, const char *path)
{
    char part[PATH_MAX];
    struct stat st;
    for (const char *end = path; *end;) {
        end += 1 + strcspn(end + 1, "/");
        snprintf(part, sizeof part, "%.*s", (int)(end - path - 1), path + 1);
        if (fstatat(s->dirs.image, part, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return errno == ENOENT;
        if (!S_ISDIR(st.st_mode))
            return false;
    }
    return false;
}

/* The directories on the way, as the image has them. */
static int lay_way(struct rootfs *s, const char *path, struct err *err)
{
    char part[PATH_MAX];
    struct stat st, have;
    for (const char *end = path + 1; (end = strchr(end, '/')) != NULL; end++) {
        snprintf(part, sizeof part, "%.*s", (int)(end - path - 1), path + 1);
        if (fstatat(s->base, part, &have, AT_SYMLINK_NOFOLLOW) == 0)
            continue;
        mode_t mode = fstatat(s->dirs.image, part, &st, AT_SYMLINK_NOFOLLOW) == 0
                          ? st.st_mode & (mode_t)01777
                          : 0755;
        int fd = mounts_place(s->base, part, true, err);
        if (fd < 0)
            return -1;
        close(fd);
        if (fchmodat(s->base, part, mode, 0) < 0)
            return err_sys(err, "%s", part);
    }
    return 0;
}

int rootfs_lay_place(struct rootfs *s, const char *path, bool dir, struct err *err)
{
    if (s->dirs.image < 0 || !image_lacks(s, path))
        return 0;
    int fd = lay_way(s, path, err) < 0 ? -1 : mounts_place(s->base, path, dir, err);
    if (fd >= 0)
        close(fd);
    return fd < 0 ? err_wrap(err, "%s", path) : 0;
}

int rootfs_make_root(struct rootfs *s, struct err *err)
{
    if (s->root >= 0)
        return 0; /* no layers */
    int lower[2] = {s->base, s->dirs.image};
    int at = mounts_place(s->outer, "root", true, err);
    if (at < 0)
        return -1;
    s->root = make_overlay(s, lower, s->dirs.image >= 0 ? 2 : 1, LAYER_ROOT, err);
    int r = s->root < 0 ? -1 : mounts_attach(s->root, at, err);
    close(at);
    return r;
}

/* An overlay wants its lower directories attached: beside the root, where nobody inside sees it. */
static int place_usr(struct rootfs *s, struct err *err)
{
    if (s->dirs.usr < 0)
        return mounts_open("/usr", err);
    int at = mounts_place(s->outer, "usr", true, err);
    int r = at < 0 ? -1 : mounts_attach(s->dirs.usr, at, err);
    if (at >= 0)
        close(at);
    int fd = r < 0 ? -1 : fcntl(s->dirs.usr, F_DUPFD_CLOEXEC, 0);
    return r == 0 && fd < 0 ? err_sys(err, "dup") : fd;
}

/* The host's files are root's: only root can have them copied up, so for others a layer above would
 * only cost. Root's own sandbox has them copied where they are shown as its own; else it still sees
 * what it wrote there when they were. */
int rootfs_add_usr(struct rootfs *s, struct err *err)
{
    bool layered = s->plan->sandbox_spec.root != SANDBOX_SPEC_READ_ONLY && s->plan->uid == 0;
    int fd = layered ? place_usr(s, err) : mounts_open("/usr", err);
    int tree = fd < 0    ? -1
               : layered ? make_overlay(s, &fd, 1, LAYER_USR, err)
                         : mounts_clone(fd, true, err);
    int r = tree < 0 ? -1 : rootfs_attach_at(s, tree, "/usr", true, err);
    if (fd >= 0)
        close(fd);
    if (tree >= 0)
        close(tree);
    return r;
}
