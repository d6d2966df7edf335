#define _GNU_SOURCE 1
#include "stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "etcfiles.h"
#include "mask.h"
#include "mounts.h"

#define TMP "/tmp" /* bubblewrap too needs this directory; the stage hides the host's meanwhile */

struct stage {
    const struct stage_parts *parts;
    const struct plan *plan;
    int root;                  /* the new root's mount */
    int trust;                 /* the trust directory, opened before /tmp was hidden */
    int trees[PLAN_BINDS_MAX]; /* detached copies of the binds' sources; -1: none */
    bool is_dir[PLAN_BINDS_MAX];
    struct mask mask;
};

/* ---- what may be bound ---- */

static bool overlaps(const char *a, const char *b)
{
    return plan_path_within(a, b) || plan_path_within(b, a);
}

int stage_check_source(const struct stage_parts *parts, const struct plan *plan, const char *source,
                       struct err *err)
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

int stage_check_target(const char *target, struct err *err)
{
    static const char *const whole[] = {"/proc", "/sys", "/dev", "/run/durward", "/etc/durward"};
    static const char *const itself[] = {"/usr", "/etc", "/run", "/bin", "/sbin", "/lib", "/var"};
    for (size_t i = 0; i < ARRAY_LEN(whole); i++)
        if (overlaps(target, whole[i]))
            return err_set(err, ERR_DENIED, "nothing can be bound to %s", target);
    for (size_t i = 0; i < ARRAY_LEN(itself); i++)
        if (plan_path_within(itself[i], target))
            return err_set(err, ERR_DENIED, "nothing can be bound to %s", target);
    return 0;
}

/* Kernel interfaces that are mounted elsewhere than usual are still none of a sandbox's business.
 */
static int check_opened(int fd, const char *source, bool *is_dir, struct err *err)
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

static int open_sources(struct stage *s, struct err *err)
{
    for (unsigned i = 0; i < s->plan->nbinds; i++) {
        const struct plan_bind *b = &s->plan->binds[i];
        if (stage_check_source(s->parts, s->plan, b->source, err) < 0 ||
            stage_check_target(b->target, err) < 0)
            return -1;
        int fd = mounts_open(b->source, err);
        if (fd < 0)
            return err_wrap(err, "cannot bind");
        int r = check_opened(fd, b->source, &s->is_dir[i], err);
        if (r == 0 && (s->trees[i] = mounts_clone(fd, !b->writable, err)) < 0)
            r = err_wrap(err, "cannot bind %s", b->source);
        close(fd);
        if (r < 0)
            return -1;
    }
    s->trust = open(s->parts->trust_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (s->trust < 0)
        return err_sys(err, "trust bundles in %s", s->parts->trust_dir);
    return 0;
}

/* ---- pieces ---- */

static int attach_at(struct stage *s, int tree, const char *path, bool dir, struct err *err)
{
    int at = mounts_place(s->root, path, dir, err);
    int r = at < 0 ? -1 : mounts_attach(tree, at, err);
    if (at >= 0)
        close(at);
    return r < 0 ? err_wrap(err, "%s", path) : 0;
}

/* A tmpfs at path; its descriptor if asked (the caller's), else it is closed. */
static int add_tmpfs(struct stage *s, const char *path, const char *mode, int *keep,
                     struct err *err)
{
    int tree = mounts_tmpfs(mode, NULL, err);
    int r = tree < 0 ? -1 : attach_at(s, tree, path, true, err);
    if (r == 0 && keep) {
        *keep = tree;
        return 0;
    }
    if (tree >= 0)
        close(tree);
    return r;
}

/* The host's directory or file at an absolute path, read-only, in the same place. */
static int add_host(struct stage *s, const char *path, struct err *err)
{
    int fd = mounts_open(path, err);
    int tree = fd < 0 ? -1 : mounts_clone(fd, true, err);
    int r = tree < 0 ? -1 : attach_at(s, tree, path, true, err);
    if (fd >= 0)
        close(fd);
    if (tree >= 0)
        close(tree);
    return r;
}

static int make_stage(struct stage *s, struct err *err)
{
    int tmp = open(TMP, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int outer = tmp < 0 ? err_sys(err, TMP) : mounts_tmpfs("0755", NULL, err);
    int r = outer < 0 ? -1 : mounts_attach(outer, tmp, err);
    int at = r < 0 ? -1 : mounts_place(outer, "root", true, err);
    s->root = at < 0 ? -1 : mounts_tmpfs("0755", "16m", err);
    r = s->root < 0 ? -1 : mounts_attach(s->root, at, err);
    if (r == 0) {
        s->mask.empty_file = mounts_place(outer, "empty/file", false, err);
        s->mask.empty_dir = mounts_place(outer, "empty/directory", true, err);
        if (s->mask.empty_file < 0 || s->mask.empty_dir < 0)
            r = -1;
    }
    if (tmp >= 0)
        close(tmp);
    if (outer >= 0)
        close(outer);
    if (at >= 0)
        close(at);
    return r;
}

/* /bin, /sbin, /lib, /lib64, ...: a link where the host has a link, else the host's directory. */
static int add_system_entry(struct stage *s, int host, const char *name, struct err *err)
{
    struct stat st;
    char path[NAME_MAX + 2], to[PATH_MAX];
    if (fstatat(host, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    snprintf(path, sizeof path, "/%s", name);
    if (S_ISDIR(st.st_mode))
        return add_host(s, path, err);
    if (!S_ISLNK(st.st_mode))
        return 0;
    ssize_t n = readlinkat(host, name, to, sizeof to - 1);
    if (n < 0)
        return err_sys(err, "%s", path);
    to[n] = '\0';
    return symlinkat(to, s->root, name) < 0 ? err_sys(err, "%s", path) : 0;
}

static int add_system(struct stage *s, struct err *err)
{
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        if (fd >= 0)
            close(fd);
        return err_sys(err, "/");
    }
    int r = add_host(s, "/usr", err);
    for (struct dirent *e; r == 0 && (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, "bin") == 0 || strcmp(e->d_name, "sbin") == 0 ||
            strncmp(e->d_name, "lib", 3) == 0)
            r = add_system_entry(s, dirfd(d), e->d_name, err);
    closedir(d);
    return r;
}

static int add_etc(struct stage *s, struct err *err)
{
    int host = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int etc = host < 0 ? err_sys(err, "/etc") : mounts_place(s->root, "/etc", true, err);
    int r = etc < 0 ? -1 : etcfiles_write(etc, host, s->trust, s->plan, err);
    int tree = r < 0 ? -1 : mounts_clone(s->trust, true, err);
    r = tree < 0 ? -1 : attach_at(s, tree, "/etc/durward", true, err);
    if (host >= 0)
        close(host);
    if (etc >= 0)
        close(etc);
    if (tree >= 0)
        close(tree);
    return r;
}

/* Every JDK brings a trust store of its own; ours, if there is one, covers those that are files. */
static int cover_java(struct stage *s, struct err *err)
{
    int ours = openat(s->trust, "cacerts.p12", O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int jvm = openat(s->root, "usr/lib/jvm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = ours < 0 || jvm < 0 ? NULL : fdopendir(jvm);
    int r = 0;
    for (struct dirent *e; d && r == 0 && (e = readdir(d)) != NULL;) {
        char path[NAME_MAX + 40];
        struct stat st;
        if (e->d_type == DT_LNK || e->d_name[0] == '.')
            continue; /* another name of one that comes too */
        snprintf(path, sizeof path, "usr/lib/jvm/%s/lib/security/cacerts", e->d_name);
        if (fstatat(s->root, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
            continue;
        int tree = mounts_clone(ours, true, err);
        r = tree < 0 ? -1 : attach_at(s, tree, path, false, err);
        if (tree >= 0)
            close(tree);
    }
    if (d)
        closedir(d);
    else if (jvm >= 0)
        close(jvm);
    if (ours >= 0)
        close(ours);
    return r;
}

/* Our process 1, in a mount of its own that nobody can write to or rename. */
static int add_init(struct stage *s, struct err *err)
{
    int dir = -1;
    struct stat st;
    if (add_tmpfs(s, "/run/durward", "0755", &dir, err) < 0)
        return -1;
    int fd = openat(dir, "init", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    int r = fd < 0 || fstat(s->parts->init, &st) < 0 ? err_sys(err, "init") : 0;
    for (off_t at = 0; r == 0 && at < st.st_size;)
        if (sendfile(fd, s->parts->init, &at, (size_t)(st.st_size - at)) <= 0)
            r = err_sys(err, "cannot copy durward-init");
    if (fd >= 0)
        close(fd);
    if (r == 0)
        r = mounts_freeze(dir, err);
    close(dir);
    return r;
}

static int add_base(struct stage *s, struct err *err)
{
    static const char *const empty[] = {"/proc",    "/dev", "/var/lib", "/var/cache",
                                        "/var/log", "/mnt", "/srv",     "/opt"};
    for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
        int fd = mounts_place(s->root, empty[i], true, err);
        if (fd < 0)
            return -1;
        close(fd);
    }
    if (symlinkat("/run", s->root, "var/run") < 0 ||
        symlinkat("/run/lock", s->root, "var/lock") < 0)
        return err_sys(err, "/var");
    if (add_tmpfs(s, "/tmp", "1777", NULL, err) < 0 ||
        add_tmpfs(s, "/var/tmp", "1777", NULL, err) < 0 ||
        add_tmpfs(s, "/run", "0755", NULL, err) < 0)
        return -1;
    return add_init(s, err);
}

static int add_home(struct stage *s, struct err *err)
{
    for (unsigned i = 0; i < s->plan->nbinds; i++)
        if (plan_path_within(s->plan->home, s->plan->binds[i].target))
            return 0;
    return s->plan->home[1] == '\0' ? 0 : add_tmpfs(s, s->plan->home, "0700", NULL, err);
}

static int add_binds(struct stage *s, struct err *err)
{
    for (unsigned i = 0; i < s->plan->nbinds; i++) {
        const struct plan_bind *b = &s->plan->binds[i];
        if (attach_at(s, s->trees[i], b->target, s->is_dir[i], err) < 0)
            return err_wrap(err, "cannot bind %s", b->source);
        /* a single file that somebody binds is meant; what lies in a directory may not be known */
        if (s->is_dir[i] && mask_tree(&s->mask, s->trees[i], b->source, err) < 0)
            return -1;
    }
    return 0;
}

static void release(struct stage *s)
{
    int own[] = {s->root, s->trust, s->mask.empty_file, s->mask.empty_dir};
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (own[i] >= 0)
            close(own[i]);
    for (unsigned i = 0; i < s->plan->nbinds; i++)
        if (s->trees[i] >= 0)
            close(s->trees[i]);
}

int stage_build(const struct stage_parts *parts, const struct plan *plan, struct buf *notes,
                struct err *err)
{
    struct stage s = {.parts = parts, .plan = plan, .root = -1, .trust = -1};
    s.mask = (struct mask){.empty_file = -1, .empty_dir = -1, .notes = notes};
    for (unsigned i = 0; i < PLAN_BINDS_MAX; i++)
        s.trees[i] = -1;
    int r = -1;
    if (mounts_private(err) == 0 && open_sources(&s, err) == 0 && make_stage(&s, err) == 0 &&
        add_system(&s, err) == 0 && add_base(&s, err) == 0 && add_etc(&s, err) == 0 &&
        cover_java(&s, err) == 0 && add_home(&s, err) == 0 && add_binds(&s, err) == 0)
        r = mounts_freeze(s.root, err);
    release(&s);
    return r;
}
