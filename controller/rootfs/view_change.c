/* The operations that change something. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "view_internal.h"

/* A set-ID bit of a file on the host would be worth more there than in a sandbox. */
static mode_t plain_mode(mode_t mode)
{
    return mode & 01777;
}

/* Where something is to be made or removed. */
static int enter(struct view *v, const char *path, struct place *ret)
{
    return judge_closed(v, path) ? -EACCES : place_open(v, path, ret);
}

/* 0 when there is such a thing and it may be changed. */
static int changeable(struct view *v, const char *path, const struct place *p, struct stat *ret)
{
    if (fstatat(p->dir, p->name, ret, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return judge_at(v, path, ret) == JUDGED_MASKED ? -EACCES : 0;
}

/* ---- what is made ---- */

static bool credential(const struct view *v, const char *path, bool directory)
{
    return judge_name(v, path, directory) != MASK_NO;
}

static int make_file(struct view *v, const char *path, int flags, mode_t mode)
{
    struct place p;
    int r = enter(v, path, &p);
    if (r < 0)
        return r;
    bool kept = credential(v, path, false);
    flags = (flags & (O_ACCMODE | O_SYNC | O_DSYNC | (kept ? 0 : O_APPEND))) | O_CREAT | O_EXCL;
    int fd = openat(p.dir, p.name, flags | O_NOFOLLOW | O_CLOEXEC, plain_mode(mode));
    r = fd < 0 ? -errno : fd;
    if (fd >= 0 && kept)
        (void)own_add(&v->owns, fd, -1, OWN_HELD); /* else it can be written, not read */
    place_close(v, &p);
    return r;
}

static int view_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    struct opened *o = calloc(1, sizeof *o);
    if (o == NULL)
        return -ENOMEM;
    o->fd = make_file(view_of(), path, fi->flags, mode);
    if (o->fd < 0) {
        int r = o->fd;
        free(o);
        /* the host made it meanwhile */
        return r == -EEXIST && (fi->flags & O_EXCL) == 0 ? view_open(path, fi) : r;
    }
    fi->fh = (uint64_t)(uintptr_t)o;
    return 0;
}

static int view_mknod(const char *path, mode_t mode, dev_t dev)
{
    struct view *v = view_of();
    struct place p;
    (void)dev;
    if (S_ISREG(mode)) {
        int fd = make_file(v, path, O_WRONLY, mode);
        if (fd >= 0)
            close(fd);
        return fd < 0 ? fd : 0;
    }
    if (!S_ISFIFO(mode) && !S_ISSOCK(mode))
        return -EPERM;
    int r = enter(v, path, &p);
    if (r < 0)
        return r;
    r = mknodat(p.dir, p.name, (mode & S_IFMT) | plain_mode(mode), 0) < 0 ? -errno : 0;
    place_close(v, &p);
    return r;
}

static int view_mkdir(const char *path, mode_t mode)
{
    struct view *v = view_of();
    struct place p;
    int r = enter(v, path, &p);
    if (r < 0)
        return r;
    r = mkdirat(p.dir, p.name, plain_mode(mode)) < 0 ? -errno : 0;
    int fd = r == 0 && credential(v, path, true)
                 ? openat(p.dir, p.name, O_PATH | O_NOFOLLOW | O_CLOEXEC)
                 : -1;
    if (fd >= 0) {
        (void)own_add(&v->owns, fd, -1, OWN_HELD);
        close(fd);
    }
    place_close(v, &p);
    return r;
}

static int view_symlink(const char *target, const char *path)
{
    struct view *v = view_of();
    struct place p;
    int r = judge_linking(v, target, path);
    if (r < 0 || (r = enter(v, path, &p)) < 0)
        return r;
    r = symlinkat(target, p.dir, p.name) < 0 ? -errno : 0;
    place_close(v, &p);
    return r;
}

static int view_link(const char *from, const char *to)
{
    struct view *v = view_of();
    struct place f, t;
    struct stat st;
    if (credential(v, from, false) || credential(v, to, false))
        return -EPERM;
    int r = enter(v, from, &f);
    if (r < 0)
        return r;
    r = changeable(v, from, &f, &st);
    if (r == 0 && (r = enter(v, to, &t)) == 0) {
        r = linkat(f.dir, f.name, t.dir, t.name, 0) < 0 ? -errno : 0;
        place_close(v, &t);
    }
    place_close(v, &f);
    return r;
}

/* ---- what gets another name ---- */

struct move {
    const char *from, *to;
    struct place f, t;
    unsigned flags;
    struct stat st; /* of what moves */
    int keep;       /* it gets a credential's name, and was readable up to now */
};

/* What the sandbox can read before the move it can read after it. */
static int keep_readable(struct view *v, struct move *m)
{
    if (!S_ISREG(m->st.st_mode) || !credential(v, m->to, false) || credential(v, m->from, false))
        return 0;
    int fd = view_open_at(v, m->from, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return 0; /* it could not read it before either */
    if (judge_open(v, fd) != JUDGED_SHOWN || own_add(&v->owns, fd, fd, OWN_HELD) < 0) {
        close(fd);
        return 0;
    }
    m->keep = fd;
    return 0;
}

static int move_allowed(struct view *v, struct move *m)
{
    struct stat st;
    int r = changeable(v, m->from, &m->f, &m->st);
    if (r == 0 && (r = changeable(v, m->to, &m->t, &st)) == -ENOENT)
        return judge_naming(v, m->from, m->to, &m->st);
    if (r == 0)
        r = judge_naming(v, m->from, m->to, &m->st);
    if (r == 0 && m->flags & RENAME_EXCHANGE)
        r = judge_naming(v, m->to, m->from, &st);
    return r;
}

/* The host may have put something else there between the look and the move, or into it: what would
 * have been masked is moved back. */
static int look_again(struct view *v, struct move *m)
{
    struct stat st;
    if (fstatat(m->t.dir, m->t.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* gone already */
    if (judge_as(v, m->to, m->from, &st) != JUDGED_MASKED)
        return 0;
    (void)renameat2(m->t.dir, m->t.name, m->f.dir, m->f.name, RENAME_NOREPLACE);
    return -EACCES;
}

static int move(struct view *v, struct move *m)
{
    int r = move_allowed(v, m);
    if (r == 0)
        r = keep_readable(v, m);
    if (r == 0 && renameat2(m->f.dir, m->f.name, m->t.dir, m->t.name, m->flags) < 0)
        r = -errno;
    else if (r == 0)
        r = look_again(v, m);
    if (m->keep >= 0) {
        if (r < 0)
            own_drop(&v->owns, m->keep);
        close(m->keep);
    }
    return r;
}

static int view_rename(const char *from, const char *to, unsigned flags)
{
    struct view *v = view_of();
    struct move m = {.from = from, .to = to, .flags = flags, .keep = -1};
    bool known = credential(v, from, false) || credential(v, to, false) ||
                 credential(v, from, true) || credential(v, to, true);
    if (flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE))
        return -EINVAL;
    if (known && flags & RENAME_EXCHANGE)
        return -EPERM;
    int r = enter(v, from, &m.f);
    if (r < 0)
        return r;
    if ((r = enter(v, to, &m.t)) == 0) {
        r = move(v, &m);
        place_close(v, &m.t);
    }
    place_close(v, &m.f);
    return r;
}

/* ---- what goes ---- */

static int take_away(const char *path, int flags)
{
    struct view *v = view_of();
    struct place p;
    struct stat st;
    int r = enter(v, path, &p);
    if (r < 0)
        return r;
    r = changeable(v, path, &p, &st);
    if (r == 0) {
        int fd = v->owns.n ? openat(p.dir, p.name, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;
        r = unlinkat(p.dir, p.name, flags) < 0 ? -errno : 0;
        if (fd >= 0 && r == 0 && fstat(fd, &st) == 0 && (flags || st.st_nlink == 0))
            own_drop(&v->owns, fd);
        if (fd >= 0)
            close(fd);
    }
    place_close(v, &p);
    return r;
}

static int view_unlink(const char *path)
{
    return take_away(path, 0);
}

static int view_rmdir(const char *path)
{
    return take_away(path, AT_REMOVEDIR);
}

/* ---- what a file is ---- */

static int view_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    struct view *v = view_of();
    char link[32];
    if (mode & (S_ISUID | S_ISGID))
        return -EPERM;
    int fd = fi ? ((struct opened *)(uintptr_t)fi->fh)->fd : view_open_at(v, path, O_PATH);
    struct stat st;
    if (fd < 0)
        return fd;
    int r = fstat(fd, &st) < 0 ? -errno : S_ISLNK(st.st_mode) ? -EOPNOTSUPP : 0;
    if (r == 0 && path && (judge_closed(v, path) || judge_at(v, path, &st) == JUDGED_MASKED))
        r = S_ISDIR(st.st_mode) && !judge_closed(v, path) ? 0 : -EACCES;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (r == 0 && chmod(link, plain_mode(mode)) < 0)
        r = -errno;
    if (fi == NULL)
        close(fd);
    return r;
}

static int view_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
    struct view *v = view_of();
    struct place p;
    struct stat st;
    (void)fi;
    if (path == NULL) /* of a file that was removed */
        return 0;
    int r = enter(v, path, &p);
    if (r < 0)
        return r;
    r = changeable(v, path, &p, &st);
    if (r == 0 && fchownat(p.dir, p.name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
        r = -errno;
    place_close(v, &p);
    return r;
}

static int view_utimens(const char *path, const struct timespec at[2], struct fuse_file_info *fi)
{
    struct view *v = view_of();
    struct place p;
    if (fi)
        return futimens(((struct opened *)(uintptr_t)fi->fh)->fd, at) < 0 ? -errno : 0;
    int r = enter(v, path, &p);
    if (r < 0)
        return r;
    r = utimensat(p.dir, p.name, at, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    place_close(v, &p);
    return r;
}

static int cut(struct view *v, int fd, off_t n)
{
    if (judge_open(v, fd) == JUDGED_MASKED)
        return -EACCES;
    return own_cut(&v->owns, fd, n) < 0 ? -errno : 0;
}

static int view_truncate(const char *path, off_t n, struct fuse_file_info *fi)
{
    struct view *v = view_of();
    if (fi)
        return cut(v, ((struct opened *)(uintptr_t)fi->fh)->fd, n);
    if (judge_closed(v, path))
        return -ENOENT;
    int fd = view_open_at(v, path, O_WRONLY | O_NONBLOCK);
    int r = fd < 0 ? fd : cut(v, fd, n);
    if (fd >= 0)
        close(fd);
    return r;
}

static int view_write(const char *path, const char *from, size_t n, off_t at,
                      struct fuse_file_info *fi)
{
    const struct opened *o = (const struct opened *)(uintptr_t)fi->fh;
    (void)path;
    ssize_t r = own_write(&view_of()->owns, o->fd, from, n, at);
    return r < 0 ? -errno : (int)r;
}

static int view_fallocate(const char *path, int mode, off_t at, off_t n, struct fuse_file_info *fi)
{
    struct view *v = view_of();
    const struct opened *o = (const struct opened *)(uintptr_t)fi->fh;
    (void)path;
    if (judge_open(v, o->fd) != JUDGED_SHOWN)
        return -EOPNOTSUPP;
    return fallocate(o->fd, mode, at, n) < 0 ? -errno : 0;
}

void view_add_changes(struct fuse_operations *ops)
{
    ops->create = view_create;
    ops->mknod = view_mknod;
    ops->mkdir = view_mkdir;
    ops->symlink = view_symlink;
    ops->link = view_link;
    ops->rename = view_rename;
    ops->unlink = view_unlink;
    ops->rmdir = view_rmdir;
    ops->chmod = view_chmod;
    ops->chown = view_chown;
    ops->utimens = view_utimens;
    ops->truncate = view_truncate;
    ops->write = view_write;
    ops->fallocate = view_fallocate;
}
