/* What of the host is bound into a sandbox, and whose it looks. */
#define _GNU_SOURCE 1
#include "rootfs_internal.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "mounts.h"
#include "view.h"

/* ---- what may be bound ---- */

static bool overlaps(const char *a, const char *b)
{
    return plan_path_within(a, b) || plan_path_within(b, a);
}

int rootfs_check_source(const struct rootfs_parts *parts, const struct plan *plan,
                        const char *source, struct err *err)
{
    static const char *const closed[] = {"/proc", "/sys", "/dev", "/run", "/var/run"};
    for (size_t i = 0; i < ARRAY_LEN(closed); i++)
        if (overlaps(source, closed[i]))
            return err_set(
                err, ERR_DENIED,
                "%s cannot be bound: %s is the host's own, with sockets and devices through "
                "which a sandbox could get out; bind something else",
                source, closed[i]);
    if (plan_path_within(plan->home, source))
        return err_set(err, ERR_DENIED,
                       "%s cannot be bound: it is or holds the home directory; bind a project's",
                       source);
    if (overlaps(source, parts->state_dir))
        return err_set(err, ERR_DENIED, "%s cannot be bound: Durward keeps its own state in %s",
                       source, parts->state_dir);
    return 0;
}

static int taken(const char *target, struct err *err)
{
    return err_set(err, ERR_DENIED,
                   "nothing can be bound to %s inside; give another place: --bind HOST:IN", target);
}

int rootfs_check_target(const char *target, struct err *err)
{
    static const char *const whole[] = {"/proc", "/sys", "/dev", "/run/durward", "/etc/durward"};
    static const char *const itself[] = {"/usr", "/etc", "/run", "/bin", "/sbin", "/lib", "/var"};
    for (size_t i = 0; i < ARRAY_LEN(whole); i++)
        if (overlaps(target, whole[i]))
            return taken(target, err);
    for (size_t i = 0; i < ARRAY_LEN(itself); i++)
        if (plan_path_within(itself[i], target))
            return taken(target, err);
    return 0;
}

/* Kernel interfaces that are mounted elsewhere than usual are still none of a sandbox's business.
 */
int rootfs_check_opened(int fd, const char *source, bool *is_dir, struct err *err)
{
    static const unsigned long closed[] = {
        PROC_SUPER_MAGIC,   SYSFS_MAGIC,   CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
        DEVPTS_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,      SECURITYFS_MAGIC,
        BPF_FS_MAGIC,       NSFS_MAGIC,    SOCKFS_MAGIC,       EFIVARFS_MAGIC,
    };
    struct stat st;
    struct statfs fs;
    if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
        return err_sys(err, "%s", source);
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return err_set(err, ERR_DENIED,
                       "%s cannot be bound: it is neither a directory nor a regular file", source);
    for (size_t i = 0; i < ARRAY_LEN(closed); i++)
        if ((unsigned long)fs.f_type == closed[i])
            return err_set(err, ERR_DENIED, "%s cannot be bound: it is the kernel's", source);
    *is_dir = S_ISDIR(st.st_mode);
    return 0;
}

static int open_source(const struct rootfs_parts *parts, const struct plan *plan,
                       const struct plan_bind *b, bool *is_dir, struct err *err)
{
    if (rootfs_check_source(parts, plan, b->source, err) < 0 ||
        rootfs_check_target(b->target, err) < 0)
        return -1;
    int fd = mounts_open(b->source, err);
    if (fd < 0)
        return err_wrap(err, "cannot bind");
    if (rootfs_check_opened(fd, b->source, is_dir, err) == 0)
        return fd;
    close(fd);
    return -1;
}

/* ---- as the host's root, before the sandbox's namespaces ---- */

/* Takes fd. */
static int show(int fd, bool readonly, int owners, bool *partly)
{
    int tree = fd < 0 ? -1 : mounts_clone_as(fd, readonly, owners, partly, NULL);
    if (fd >= 0)
        close(fd);
    return tree;
}

void rootfs_show(const struct rootfs_parts *parts, const struct plan *plan, struct rootfs_dirs *ret)
{
    bool partly;
    ret->foreign = true;
    for (unsigned i = 0; i < plan->nbinds; i++) {
        const struct plan_bind *b = &plan->binds[i];
        int fd = open_source(parts, plan, b, &ret->is_dir[i], NULL);
        ret->binds[i] = show(fd, !b->writable, parts->owners, &ret->partly[i]);
    }
    if (plan->sandbox_spec.image[0] == '\0' && plan->sandbox_spec.root != SANDBOX_SPEC_READ_ONLY)
        ret->usr = show(mounts_open("/usr", NULL), true, parts->owners, &partly);
}

/* ---- in them ---- */

static int note_owners(struct rootfs *s, unsigned i, struct err *err)
{
    const char *which = s->dirs.binds[i] < 0 ? "" : ", as far as something is mounted below it,";
    if (!s->dirs.foreign || (s->dirs.binds[i] >= 0 && !s->dirs.partly[i]))
        return 0;
    if (buf_printf(s->mask.notes,
                   "note: %.1000s%s is on a file system that cannot show root's files as the "
                   "sandbox's: it reads and writes there what everybody may\n",
                   s->plan->binds[i].source, which) < 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    return 0;
}

static int take(struct rootfs *s, unsigned i, struct err *err)
{
    const struct plan_bind *b = &s->plan->binds[i];
    if (s->dirs.binds[i] >= 0) {
        s->is_dir[i] = s->dirs.is_dir[i];
        int tree = fcntl(s->dirs.binds[i], F_DUPFD_CLOEXEC, 0);
        return tree < 0 ? err_sys(err, "dup") : tree;
    }
    int fd = open_source(s->parts, s->plan, b, &s->is_dir[i], err);
    if (fd < 0)
        return -1;
    int tree = mounts_clone(fd, !b->writable, err);
    close(fd);
    return tree < 0 ? err_wrap(err, "cannot bind %s", b->source) : tree;
}

int rootfs_open_sources(struct rootfs *s, struct err *err)
{
    for (unsigned i = 0; i < s->plan->nbinds; i++)
        if ((s->trees[i] = take(s, i, err)) < 0 || note_owners(s, i, err) < 0)
            return -1;
    return 0;
}

int rootfs_add_view(struct rootfs *s, unsigned i, int view, struct err *err)
{
    const struct plan_bind *b = &s->plan->binds[i];
    struct stat st;
    if (view_serve(s->dirs.views[i], s->trees[i], b->source, err) < 0)
        return -1;
    /* Until somebody asks, the kernel takes its root for uid 0's, which may have no number here:
     * then nobody could make a file in it. */
    if (fstat(view, &st) < 0)
        return err_sys(err, "the view");
    if (rootfs_attach_at(s, view, b->target, true, err) < 0)
        return -1;
    return mask_list(&s->mask, s->trees[i], b->source, err);
}
