/* Keeps a volume within its size: each operation that makes something longer, or a new name, is
 * paid for before it is done, and what is removed is given back when nobody has it open any more.
 *
 * A file counts its length, rounded up, holes too; a name counts a block, which pays for its entry.
 * All processes that serve the volume share one count and one lock (volume.h). The lock is held for
 * an operation, never for a wait; whoever does not get it in time, as its holder is frozen, fails
 * with EIO. Whoever dies in between leaves the count too high, never too low. */
#define _GNU_SOURCE 1
#include "view_bound.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "view_internal.h"

enum { LOCK_SECONDS = 5 };

static struct fuse_operations inner; /* what is done, once it is paid for */

void bound_init(struct bound *b, const struct volume *v, int lock)
{
    memset(b, 0, sizeof *b);
    b->usage = v->usage;
    b->size = (int64_t)v->size;
    b->slot = v->slot;
    b->lock = lock;
}

/* ---- the count ---- */

static struct bound *begin(void)
{
    struct bound *b = view_of()->bound;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LOCK_SECONDS;
    int r = pthread_mutex_timedlock(&b->usage->lock, &until);
    if (r == EOWNERDEAD) /* whoever it was had paid before */
        r = pthread_mutex_consistent(&b->usage->lock);
    return r == 0 ? b : NULL;
}

static int end(struct bound *b, int r)
{
    (void)pthread_mutex_unlock(&b->usage->lock);
    return r;
}

static bool pay(struct bound *b, int64_t n)
{
    if (n > 0 && (n > b->size || b->usage->used > b->size - n))
        return false;
    b->usage->used += n;
    return true;
}

/* ---- what is open ---- */

/* Where it is in the slot, or where there is room for it; VOLUME_OPEN_MAX: neither. */
static unsigned place_of(const struct bound *b, uint64_t inode)
{
    const uint64_t *open = b->usage->open[b->slot];
    unsigned from = (unsigned)(inode % VOLUME_OPEN_MAX), room = VOLUME_OPEN_MAX;
    for (unsigned i = 0; i < VOLUME_OPEN_MAX; i++) {
        unsigned at = (from + i) % VOLUME_OPEN_MAX;
        if (open[at] == inode)
            return at;
        if (open[at] == 0 && room == VOLUME_OPEN_MAX)
            room = at;
    }
    return room;
}

static bool is_open_in(const struct bound *b, unsigned slot, uint64_t inode)
{
    for (unsigned i = 0; i < VOLUME_OPEN_MAX; i++)
        if (b->usage->open[slot][i] == inode)
            return true;
    return false;
}

/* By anybody who lives. What a process left that was killed is its slot's next owner's to clear. */
static bool is_open(const struct bound *b, uint64_t inode)
{
    for (unsigned i = 0; i < VOLUME_MOUNTS_MAX; i++)
        if (b->usage->n_open[i] && (i == b->slot || volume_slot_lives(b->lock, i)) &&
            is_open_in(b, i, inode))
            return true;
    return false;
}

/* It is open from here on. One that has no name any more was removed meanwhile: what it counted is
 * given back already, or is somebody's to give. */
static int note_open(struct bound *b, int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    unsigned at = place_of(b, st.st_ino);
    if (at == VOLUME_OPEN_MAX)
        return -ENFILE;
    if (st.st_nlink == 0 && b->usage->open[b->slot][at] == 0)
        return -ENOENT;
    b->usage->n_open[b->slot] += b->opens[at] == 0;
    b->usage->open[b->slot][at] = st.st_ino;
    b->opens[at]++;
    return 0;
}

static void note_closed(struct bound *b, int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return;
    unsigned at = place_of(b, st.st_ino);
    if (at == VOLUME_OPEN_MAX || b->usage->open[b->slot][at] == 0 || --b->opens[at] > 0)
        return;
    b->usage->open[b->slot][at] = 0;
    b->usage->n_open[b->slot]--;
    if (st.st_nlink == 0 && !is_open(b, st.st_ino))
        pay(b, -volume_length(st.st_size));
}

/* ---- what is there ---- */

static int fd_of(const struct fuse_file_info *fi)
{
    return ((const struct opened *)(uintptr_t)fi->fh)->fd;
}

static bool look(const char *path, struct stat *st)
{
    struct place p;
    const struct view *v = view_of();
    if (path == NULL || place_open(v, path, &p) < 0)
        return false;
    bool found = fstatat(p.dir, p.name, st, AT_SYMLINK_NOFOLLOW) == 0;
    place_close(v, &p);
    return found;
}

/* What a name counts, and with it what only this name still leads to. */
static int64_t worth(const struct bound *b, const struct stat *st)
{
    if (S_ISLNK(st->st_mode))
        return 2 * (int64_t)VOLUME_BLOCK;
    bool last = S_ISREG(st->st_mode) && st->st_nlink == 1 && !is_open(b, st->st_ino);
    return VOLUME_BLOCK + (last ? volume_length(st->st_size) : 0);
}

static int64_t length_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) < 0 ? -1 : volume_length(st.st_size);
}

/* What a file costs more that grows to `to`. */
static int64_t more(int64_t from, int64_t to)
{
    int64_t length = to > INT64_MAX - VOLUME_BLOCK ? INT64_MAX : volume_length(to);
    return length > from ? length - from : 0;
}

/* Paid was `paid` for what had `before`; it has become what it is. */
static void settle(struct bound *b, int fd, int64_t before, int64_t paid)
{
    int64_t now = length_of(fd);
    pay(b, -paid);
    b->usage->used += now < 0 ? paid : now - before;
}

/* ---- operations: contents ---- */

static int bound_write(const char *path, const char *from, size_t n, off_t at,
                       struct fuse_file_info *fi)
{
    struct bound *b = begin();
    int fd = fd_of(fi);
    if (b == NULL)
        return -EIO;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return end(b, -errno);
    off_t begins = fcntl(fd, F_GETFL) & O_APPEND ? st.st_size : at;
    int64_t before = volume_length(st.st_size);
    if (begins < 0 || begins > INT64_MAX - (off_t)n)
        return end(b, -EFBIG);
    int64_t paid = more(before, begins + (off_t)n);
    if (!pay(b, paid))
        return end(b, -ENOSPC);
    int r = inner.write(path, from, n, at, fi);
    settle(b, fd, before, paid);
    return end(b, r);
}

static int cut(struct bound *b, const char *path, off_t n, int fd, struct fuse_file_info *fi)
{
    int64_t before = length_of(fd), paid = before < 0 || n < 0 ? -1 : more(before, n);
    if (paid < 0)
        return n < 0 ? -EINVAL : -EIO;
    if (!pay(b, paid))
        return -ENOSPC;
    int r = inner.truncate(path, n, fi);
    settle(b, fd, before, paid);
    return r;
}

static int bound_truncate(const char *path, off_t n, struct fuse_file_info *fi)
{
    struct bound *b = begin();
    if (b == NULL)
        return -EIO;
    int fd = fi ? fd_of(fi) : view_open_at(view_of(), path, O_WRONLY | O_NONBLOCK);
    int r = fd < 0 ? fd : cut(b, path, n, fd, fi);
    if (fi == NULL && fd >= 0)
        close(fd);
    return end(b, r);
}

/* Nothing is kept beyond a file's length, where it would not be counted. */
static int bound_fallocate(const char *path, int mode, off_t at, off_t n, struct fuse_file_info *fi)
{
    bool hole = mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
    if ((mode != 0 && !hole) || at < 0 || n <= 0 || at > INT64_MAX - n)
        return mode != 0 && !hole ? -EOPNOTSUPP : -EINVAL;
    struct bound *b = begin();
    if (b == NULL)
        return -EIO;
    int fd = fd_of(fi);
    int64_t before = length_of(fd), paid = hole ? 0 : more(before, at + n);
    if (before < 0 || !pay(b, paid))
        return end(b, before < 0 ? -EIO : -ENOSPC);
    int r = inner.fallocate(path, mode, at, n, fi);
    settle(b, fd, before, paid);
    return end(b, r);
}

/* ---- operations: opening ---- */

static int keep(struct bound *b, const char *path, int r, struct fuse_file_info *fi)
{
    int noted = r < 0 ? r : note_open(b, fd_of(fi));
    if (r >= 0 && noted < 0)
        (void)inner.release(path, fi);
    return noted;
}

static int bound_open(const char *path, struct fuse_file_info *fi)
{
    struct bound *b = begin();
    struct stat was, is;
    if (b == NULL)
        return -EIO;
    bool cuts = fi->flags & O_TRUNC && look(path, &was) && S_ISREG(was.st_mode);
    int r = keep(b, path, inner.open(path, fi), fi);
    if (r == 0 && cuts && fstat(fd_of(fi), &is) == 0 && is.st_ino == was.st_ino)
        pay(b, volume_length(is.st_size) - volume_length(was.st_size));
    return end(b, r);
}

static int bound_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    struct bound *b = begin();
    struct stat was;
    if (b == NULL)
        return -EIO;
    bool there = look(path, &was);
    if (!there && !pay(b, VOLUME_BLOCK))
        return end(b, -ENOSPC);
    int r = inner.create(path, mode, fi);
    if (r < 0 && !there)
        pay(b, -VOLUME_BLOCK);
    if (r == 0 && there && fi->flags & O_TRUNC)
        pay(b, length_of(fd_of(fi)) - volume_length(was.st_size));
    return end(b, keep(b, path, r, fi));
}

static int bound_release(const char *path, struct fuse_file_info *fi)
{
    struct bound *b = begin();
    if (b)
        note_closed(b, fd_of(fi));
    int r = inner.release(path, fi);
    return b ? end(b, r) : r;
}

/* ---- operations: names ---- */

static int pay_for(struct bound *b, int64_t n, int r)
{
    if (r < 0)
        pay(b, -n);
    return end(b, r);
}

static int bound_mknod(const char *path, mode_t mode, dev_t dev)
{
    struct bound *b = begin();
    if (b == NULL)
        return -EIO;
    return pay(b, VOLUME_BLOCK) ? pay_for(b, VOLUME_BLOCK, inner.mknod(path, mode, dev))
                                : end(b, -ENOSPC);
}

static int bound_mkdir(const char *path, mode_t mode)
{
    struct bound *b = begin();
    if (b == NULL)
        return -EIO;
    return pay(b, VOLUME_BLOCK) ? pay_for(b, VOLUME_BLOCK, inner.mkdir(path, mode))
                                : end(b, -ENOSPC);
}

static int bound_symlink(const char *target, const char *path)
{
    struct bound *b = begin();
    if (b == NULL)
        return -EIO;
    return pay(b, 2 * VOLUME_BLOCK) ? pay_for(b, 2 * VOLUME_BLOCK, inner.symlink(target, path))
                                    : end(b, -ENOSPC);
}

static int bound_link(const char *from, const char *to)
{
    struct bound *b = begin();
    struct stat st;
    if (b == NULL)
        return -EIO;
    /* of a link another one would count less than it is worth when it goes */
    if (look(from, &st) && S_ISLNK(st.st_mode))
        return end(b, -EPERM);
    return pay(b, VOLUME_BLOCK) ? pay_for(b, VOLUME_BLOCK, inner.link(from, to)) : end(b, -ENOSPC);
}

/* Something loses its name. */
static int take_away(const char *path, int (*fn)(const char *path))
{
    struct bound *b = begin();
    struct stat st;
    if (b == NULL)
        return -EIO;
    int64_t n = look(path, &st) ? worth(b, &st) : 0;
    int r = fn(path);
    if (r == 0)
        pay(b, -n);
    return end(b, r);
}

static int bound_unlink(const char *path)
{
    return take_away(path, inner.unlink);
}

static int bound_rmdir(const char *path)
{
    return take_away(path, inner.rmdir);
}

static int bound_rename(const char *from, const char *to, unsigned flags)
{
    struct bound *b = begin();
    struct stat was, moved;
    if (b == NULL)
        return -EIO;
    bool same = look(to, &was) && look(from, &moved) && was.st_ino == moved.st_ino;
    bool replaces = flags == 0 && !same && look(to, &was);
    int64_t n = replaces ? worth(b, &was) : 0;
    int r = inner.rename(from, to, flags);
    if (r == 0)
        pay(b, -n);
    return end(b, r);
}

/* ---- operations: what a file is ---- */

/* All look like the sandbox's own; there is nobody else to give them to. */
static int bound_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
    const struct view *v = view_of();
    (void)path;
    (void)fi;
    bool own = (uid == (uid_t)-1 || uid == v->uid) && (gid == (gid_t)-1 || gid == v->gid);
    return own ? 0 : -EPERM;
}

static int bound_statfs(const char *path, struct statvfs *st)
{
    const struct bound *b = view_of()->bound;
    int r = inner.statfs(path, st);
    if (r < 0)
        return r;
    uint64_t there = (uint64_t)st->f_bavail * st->f_frsize / VOLUME_BLOCK;
    int64_t used = b->usage->used, left = used < b->size ? b->size - used : 0;
    uint64_t room = (uint64_t)left / VOLUME_BLOCK;
    st->f_bsize = st->f_frsize = VOLUME_BLOCK;
    st->f_blocks = (uint64_t)b->size / VOLUME_BLOCK;
    st->f_bfree = st->f_bavail = room < there ? room : there;
    st->f_files = st->f_blocks;
    st->f_ffree = st->f_favail = st->f_bfree;
    return 0;
}

void view_add_bound(struct fuse_operations *ops)
{
    inner = *ops;
    ops->write = bound_write;
    ops->truncate = bound_truncate;
    ops->fallocate = bound_fallocate;
    ops->open = bound_open;
    ops->create = bound_create;
    ops->release = bound_release;
    ops->mknod = bound_mknod;
    ops->mkdir = bound_mkdir;
    ops->symlink = bound_symlink;
    ops->link = bound_link;
    ops->unlink = bound_unlink;
    ops->rmdir = bound_rmdir;
    ops->rename = bound_rename;
    ops->chown = bound_chown;
    ops->statfs = bound_statfs;
}
