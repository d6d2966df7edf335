/* Keeps a volume within its size: each operation that makes something longer, or a new name, is
 * paid for before it is done, and what is removed is given back when nobody has it open any more.
 *
 * A file counts its length, rounded up, holes too; so does a directory, which may keep the length
 * that it once needed; a name counts a block. All processes that serve the volume share one count
 * and one lock (volume.h). The lock is held for an operation, never for a wait; whoever does not
 * get it in time, as its holder was taken over, fails with EIO. Whoever dies in between leaves the
 * count too high, never too low. */
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

enum {
    LOCK_SECONDS = 5,
    GROWTH = 4 * VOLUME_BLOCK /* what a directory may get longer by one name */
};

static struct fuse_operations inner; /* what is done, once it is paid for */

void bound_init(struct bound *b, const struct volume *v, int lock)
{
    memset(b, 0, sizeof *b);
    (void)pthread_mutex_init(&b->own, NULL); /* cannot fail: it has no attributes */
    b->size = (int64_t)v->size;
    b->slot = v->slot;
    b->lock = lock;
}

/* ---- the count ---- */

static struct bound *begin(void)
{
    struct bound *b = view_of()->bound;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LOCK_SECONDS;
    if (pthread_mutex_clocklock(&b->own, CLOCK_MONOTONIC, &until) != 0)
        return NULL;
    if (volume_usage_lock(b->lock, &until) == 0) {
        if (volume_usage_read(b->lock, (uint64_t)b->size, &b->usage) == 0)
            return b;
        volume_usage_unlock(b->lock);
    }
    (void)pthread_mutex_unlock(&b->own);
    return NULL;
}

static int end(struct bound *b, int r)
{
    volume_usage_unlock(b->lock);
    (void)pthread_mutex_unlock(&b->own);
    return r;
}

/* Written before what it pays for is done. */
static int pay(struct bound *b, int64_t n)
{
    int64_t used;
    if (n == 0)
        return 0;
    if (n > 0 && (n > b->size || b->usage.used > b->size - n))
        return -ENOSPC;
    if (__builtin_add_overflow(b->usage.used, n, &used))
        return -EIO;
    b->usage.used = used < 0 ? 0 : used;
    return volume_usage_write(b->lock, &b->usage) < 0 ? -EIO : 0;
}

/* What is there already, whatever the bound says. */
static void add(struct bound *b, int64_t n)
{
    int64_t used;
    if (n == 0 || __builtin_add_overflow(b->usage.used, n, &used))
        return;
    b->usage.used = used < 0 ? 0 : used;
    (void)volume_usage_write(b->lock, &b->usage);
}

/* ---- what is open ---- */

/* Where it is in the slot, or where there is room for it; VOLUME_OPEN_MAX: neither. */
static unsigned place_of(const struct bound *b, uint64_t inode)
{
    unsigned from = (unsigned)(inode % VOLUME_OPEN_MAX), room = VOLUME_OPEN_MAX;
    for (unsigned i = 0; i < VOLUME_OPEN_MAX; i++) {
        unsigned at = (from + i) % VOLUME_OPEN_MAX;
        if (b->inodes[at] == inode)
            return at;
        if (b->inodes[at] == 0 && room == VOLUME_OPEN_MAX)
            room = at;
    }
    return room;
}

/* By anybody who lives. What a process left that was killed is its slot's next owner's to clear. */
static bool is_open(const struct bound *b, uint64_t inode)
{
    unsigned at = place_of(b, inode);
    if (at < VOLUME_OPEN_MAX && b->inodes[at] == inode)
        return true;
    for (unsigned i = 0; i < VOLUME_MOUNTS_MAX; i++)
        if (i != b->slot && b->usage.n_open[i] && volume_slot_lives(b->lock, i) &&
            volume_usage_names(b->lock, i, inode))
            return true;
    return false;
}

static int tell_place(struct bound *b, unsigned at, uint64_t inode)
{
    b->usage.n_open[b->slot] = b->n_open;
    return volume_usage_place(b->lock, b->slot, at, inode) < 0 ||
                   volume_usage_write(b->lock, &b->usage) < 0
               ? -EIO
               : 0;
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
    if (b->inodes[at] == st.st_ino) {
        b->opens[at]++;
        return 0;
    }
    if (st.st_nlink == 0)
        return -ENOENT;
    b->n_open++;
    if (tell_place(b, at, st.st_ino) < 0) {
        b->n_open--;
        return -EIO;
    }
    b->inodes[at] = st.st_ino;
    b->opens[at] = 1;
    return 0;
}

static void note_closed(struct bound *b, int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return;
    unsigned at = place_of(b, st.st_ino);
    if (at == VOLUME_OPEN_MAX || b->inodes[at] == 0 || --b->opens[at] > 0)
        return;
    b->inodes[at] = 0;
    b->n_open--;
    (void)tell_place(b, at, 0);
    if (st.st_nlink == 0 && !is_open(b, st.st_ino))
        add(b, -volume_length(st.st_size));
}

/* One more, within the bound; then it is there. */
static bool take_handle(struct bound *b)
{
    if (atomic_fetch_add(&b->handles, 1) < VOLUME_OPEN_MAX)
        return true;
    atomic_fetch_sub(&b->handles, 1);
    return false;
}

static void drop_handle(struct bound *b)
{
    atomic_fetch_sub(&b->handles, 1);
}

/* ---- what is there ---- */

static int fd_of(const struct fuse_file_info *fi)
{
    return ((const struct opened *)(uintptr_t)fi->fh)->fd;
}

static int look_in(const struct place *p, struct stat *st)
{
    if (fstatat(p->dir, p->name, st, AT_SYMLINK_NOFOLLOW) == 0)
        return 1;
    return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
}

/* 1; 0: there is nothing; or -errno: it cannot be told. */
static int look(const char *path, struct stat *st)
{
    struct place p;
    const struct view *v = view_of();
    int r = path ? place_open(v, path, &p) : -ENOENT;
    if (r < 0)
        return r == -ENOENT || r == -ENOTDIR ? 0 : r;
    r = look_in(&p, st);
    place_close(v, &p);
    return r;
}

/* What a name counts, and with it what only this name still leads to. */
static int64_t worth(const struct bound *b, const struct stat *st)
{
    if (S_ISLNK(st->st_mode))
        return 2 * (int64_t)VOLUME_BLOCK;
    if (S_ISDIR(st->st_mode))
        return VOLUME_BLOCK + volume_length(st->st_size);
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
    if (now >= 0)
        add(b, now - before - paid);
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
    int r = pay(b, paid);
    if (r < 0)
        return end(b, r);
    r = inner.write(path, from, n, at, fi);
    settle(b, fd, before, paid);
    return end(b, r);
}

static int cut(struct bound *b, const char *path, off_t n, int fd, struct fuse_file_info *fi)
{
    int64_t before = length_of(fd), paid = before < 0 || n < 0 ? -1 : more(before, n);
    if (paid < 0)
        return n < 0 ? -EINVAL : -EIO;
    int r = pay(b, paid);
    if (r < 0)
        return r;
    r = inner.truncate(path, n, fi);
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
    int r = before < 0 ? -EIO : pay(b, paid);
    if (r < 0)
        return end(b, r);
    r = inner.fallocate(path, mode, at, n, fi);
    settle(b, fd, before, paid);
    return end(b, r);
}

/* ---- operations: opening ---- */

/* Takes the handle, which it keeps when it is open. */
static int keep(struct bound *b, const char *path, int r, struct fuse_file_info *fi)
{
    int noted = r < 0 ? r : note_open(b, fd_of(fi));
    if (r >= 0 && noted < 0)
        (void)inner.release(path, fi);
    if (noted < 0)
        drop_handle(b);
    return noted;
}

static int open_file(struct bound *b, const char *path, struct fuse_file_info *fi)
{
    struct stat was, is;
    int there = fi->flags & O_TRUNC ? look(path, &was) : 0;
    bool cuts = there > 0 && S_ISREG(was.st_mode);
    int r = keep(b, path, there < 0 ? there : inner.open(path, fi), fi);
    if (r == 0 && cuts && fstat(fd_of(fi), &is) == 0 && is.st_ino == was.st_ino)
        add(b, volume_length(is.st_size) - volume_length(was.st_size));
    return r;
}

static int bound_open(const char *path, struct fuse_file_info *fi)
{
    struct bound *b = begin();
    if (b == NULL)
        return -EIO;
    return end(b, take_handle(b) ? open_file(b, path, fi) : -ENFILE);
}

static int bound_release(const char *path, struct fuse_file_info *fi)
{
    struct bound *own = view_of()->bound, *b = begin();
    if (b)
        note_closed(b, fd_of(fi));
    int r = inner.release(path, fi);
    drop_handle(own);
    return b ? end(b, r) : r;
}

static int bound_opendir(const char *path, struct fuse_file_info *fi)
{
    struct bound *b = view_of()->bound;
    if (!take_handle(b))
        return -ENFILE;
    int r = inner.opendir(path, fi);
    if (r < 0)
        drop_handle(b);
    return r;
}

static int bound_releasedir(const char *path, struct fuse_file_info *fi)
{
    int r = inner.releasedir(path, fi);
    drop_handle(view_of()->bound);
    return r;
}

/* ---- operations: names ---- */

struct naming { /* a directory gets a name, or loses one */
    struct bound *b;
    struct place at;
    int64_t before; /* the directory's length */
    int64_t paid;
};

/* n: what is paid before. 0, or -errno: then it has not begun. */
static int begin_naming(const char *path, int64_t n, struct naming *ret)
{
    *ret = (struct naming){.b = begin(), .paid = n};
    if (ret->b == NULL)
        return -EIO;
    int r = place_open(view_of(), path, &ret->at);
    if (r < 0)
        return end(ret->b, r);
    ret->before = length_of(ret->at.dir);
    r = ret->before < 0 ? -EIO : pay(ret->b, n);
    if (r < 0) {
        place_close(view_of(), &ret->at);
        return end(ret->b, r);
    }
    return 0;
}

/* cost: what the name counts now, less what it counted before. */
static int end_naming(struct naming *n, int64_t cost, int r)
{
    int64_t now = length_of(n->at.dir);
    add(n->b, cost - n->paid + (now < 0 ? GROWTH : now - n->before));
    place_close(view_of(), &n->at);
    return end(n->b, r);
}

static int bound_mknod(const char *path, mode_t mode, dev_t dev)
{
    struct naming n;
    int r = begin_naming(path, VOLUME_BLOCK + GROWTH, &n);
    if (r < 0)
        return r;
    r = inner.mknod(path, mode, dev);
    return end_naming(&n, r < 0 ? 0 : VOLUME_BLOCK, r);
}

static int bound_mkdir(const char *path, mode_t mode)
{
    struct naming n;
    struct stat st;
    int r = begin_naming(path, 2 * VOLUME_BLOCK + GROWTH, &n);
    if (r < 0)
        return r;
    r = inner.mkdir(path, mode);
    int64_t cost = r < 0                     ? 0
                   : look_in(&n.at, &st) > 0 ? worth(n.b, &st)
                                             : 2 * (int64_t)VOLUME_BLOCK;
    return end_naming(&n, cost, r);
}

static int bound_symlink(const char *target, const char *path)
{
    struct naming n;
    int r = begin_naming(path, 2 * VOLUME_BLOCK + GROWTH, &n);
    if (r < 0)
        return r;
    r = inner.symlink(target, path);
    return end_naming(&n, r < 0 ? 0 : 2 * VOLUME_BLOCK, r);
}

static int bound_link(const char *from, const char *to)
{
    struct naming n;
    struct stat st;
    int r = begin_naming(to, VOLUME_BLOCK + GROWTH, &n);
    if (r < 0)
        return r;
    r = look(from, &st);
    /* of a link another one would count less than it is worth when it goes */
    if (r > 0)
        r = S_ISLNK(st.st_mode) ? -EPERM : 0;
    else if (r == 0)
        r = -ENOENT;
    if (r == 0)
        r = inner.link(from, to);
    return end_naming(&n, r < 0 ? 0 : VOLUME_BLOCK, r);
}

static int create(struct naming *n, const char *path, mode_t mode, struct fuse_file_info *fi)
{
    struct stat was;
    int there = look_in(&n->at, &was);
    int r = there < 0 ? there : there ? 0 : pay(n->b, VOLUME_BLOCK + GROWTH);
    if (r < 0) {
        drop_handle(n->b);
        return end_naming(n, 0, r);
    }
    n->paid = there ? 0 : VOLUME_BLOCK + GROWTH;
    r = inner.create(path, mode, fi);
    int64_t cost = r < 0 || there ? 0 : VOLUME_BLOCK;
    if (r == 0 && there && fi->flags & O_TRUNC && S_ISREG(was.st_mode))
        cost = length_of(fd_of(fi)) - volume_length(was.st_size);
    return end_naming(n, cost, keep(n->b, path, r, fi));
}

static int bound_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    struct naming n;
    int r = begin_naming(path, 0, &n);
    if (r < 0)
        return r;
    return take_handle(n.b) ? create(&n, path, mode, fi) : end_naming(&n, 0, -ENFILE);
}

/* Something loses its name. */
static int take_away(const char *path, int (*fn)(const char *path))
{
    struct naming n;
    struct stat st;
    int r = begin_naming(path, 0, &n);
    if (r < 0)
        return r;
    r = look_in(&n.at, &st);
    if (r <= 0)
        return end_naming(&n, 0, r < 0 ? r : -ENOENT);
    int64_t cost = worth(n.b, &st);
    r = fn(path);
    return end_naming(&n, r < 0 ? 0 : -cost, r);
}

static int bound_unlink(const char *path)
{
    return take_away(path, inner.unlink);
}

static int bound_rmdir(const char *path)
{
    return take_away(path, inner.rmdir);
}

/* From there to where a naming has begun. */
static int64_t length_above(const struct place *from, const struct place *to)
{
    struct stat f, t;
    if (fstat(from->dir, &f) < 0 || fstat(to->dir, &t) < 0)
        return -1;
    return f.st_ino == t.st_ino ? 0 : volume_length(f.st_size);
}

static int move(struct naming *n, const struct place *f, const char *from, const char *to,
                unsigned flags)
{
    struct stat was, moved;
    int there = look_in(&n->at, &was), here = look_in(f, &moved);
    int64_t above = length_above(f, &n->at);
    if (there < 0 || here <= 0 || above < 0)
        return end_naming(n, 0, there < 0 ? there : here < 0 ? here : above < 0 ? -EIO : -ENOENT);
    bool same = there && was.st_ino == moved.st_ino;
    int64_t cost = there && !same && flags == 0 ? -worth(n->b, &was) : 0;
    int r = pay(n->b, there ? 0 : GROWTH);
    if (r < 0)
        return end_naming(n, 0, r);
    n->paid = there ? 0 : GROWTH;
    r = inner.rename(from, to, flags);
    cost = r < 0 ? 0 : cost;
    int64_t now = length_above(f, &n->at);
    return end_naming(n, cost + (now < 0 ? 0 : now - above), r);
}

static int bound_rename(const char *from, const char *to, unsigned flags)
{
    struct naming n;
    struct place f;
    const struct view *v = view_of();
    int r = begin_naming(to, 0, &n);
    if (r < 0)
        return r;
    r = place_open(v, from, &f);
    if (r < 0)
        return end_naming(&n, 0, r);
    r = move(&n, &f, from, to, flags);
    place_close(v, &f);
    return r;
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
    struct volume_usage now;
    int r = inner.statfs(path, st);
    if (r < 0)
        return r;
    if (volume_usage_read(b->lock, (uint64_t)b->size, &now) < 0)
        return -EIO;
    uint64_t there = (uint64_t)st->f_bavail * st->f_frsize / VOLUME_BLOCK;
    int64_t left = now.used < b->size ? b->size - now.used : 0;
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
    ops->opendir = bound_opendir;
    ops->releasedir = bound_releasedir;
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
