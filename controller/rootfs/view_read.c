/* The operations that change nothing, and opening. */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "view_internal.h"

enum { RESOLVE = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };

/* ---- places ---- */

int view_open_at(const struct view *v, const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)flags | O_CLOEXEC | O_NOFOLLOW, .resolve = RESOLVE};
    int fd = (int)syscall(SYS_openat2, v->root, path[1] ? path + 1 : ".", &how, sizeof how);
    return fd < 0 ? -errno : fd;
}

int place_open(const struct view *v, const char *path, struct place *ret)
{
    char above[PATH_MAX];
    const char *name = strrchr(path, '/') + 1;
    size_t n = (size_t)(name - path) - 1;
    if (strlen(name) >= sizeof ret->name || n >= sizeof above)
        return -ENAMETOOLONG;
    memcpy(ret->name, *name ? name : ".", *name ? strlen(name) + 1 : 2);
    ret->dir = v->root;
    if (n == 0)
        return 0;
    memcpy(above, path, n);
    above[n] = '\0';
    ret->dir = view_open_at(v, above, O_PATH | O_DIRECTORY);
    return ret->dir < 0 ? ret->dir : 0;
}

void place_close(const struct view *v, struct place *p)
{
    if (p->dir != v->root)
        close(p->dir);
}

/* ---- attributes ---- */

/* All that is shown looks like the sandbox's own: what it may do the host decides, and the kernel
 * refuses to write what belongs to an owner that the user namespace has no number for. */
static void show_owner(const struct view *v, struct stat *st)
{
    st->st_uid = v->uid;
    st->st_gid = v->gid;
}

static void show_empty(struct stat *st)
{
    st->st_size = 0;
    st->st_blocks = 0;
    st->st_mode = S_IFREG | 0444;
}

/* st: as the host has it. -ENOENT where nothing is to be seen of it. */
static int show(struct view *v, const char *path, struct stat *st)
{
    if (judge_closed(v, path)) /* it is an empty directory that this would lie in */
        return -ENOENT;
    if (S_ISREG(st->st_mode) && judge_at(v, path, st) == JUDGED_MASKED)
        show_empty(st);
    show_owner(v, st);
    return 0;
}

int view_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    struct view *v = view_of();
    struct place p;
    if (fi) {
        const struct opened *o = (const struct opened *)(uintptr_t)fi->fh;
        if (fstat(o->fd, st) < 0)
            return -errno;
        if (o->masked)
            show_empty(st);
        show_owner(v, st);
        return 0;
    }
    int r = place_open(v, path, &p);
    if (r < 0)
        return r;
    r = fstatat(p.dir, p.name, st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    place_close(v, &p);
    return r < 0 ? r : show(v, path, st);
}

static int view_access(const char *path, int mode)
{
    struct view *v = view_of();
    struct stat st;
    struct place p;
    int r = view_getattr(path, &st, NULL);
    if (r < 0)
        return r;
    if (S_ISREG(st.st_mode) && judge_at(v, path, &st) == JUDGED_MASKED)
        return mode & (W_OK | X_OK) ? -EACCES : 0;
    if ((r = place_open(v, path, &p)) < 0)
        return r;
    r = faccessat(p.dir, p.name, mode, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    place_close(v, &p);
    return r;
}

static int view_readlink(const char *path, char *to, size_t size)
{
    struct view *v = view_of();
    struct place p;
    if (judge_closed(v, path))
        return -ENOENT;
    int r = place_open(v, path, &p);
    if (r < 0)
        return r;
    ssize_t n = readlinkat(p.dir, p.name, to, size - 1);
    r = n < 0 ? -errno : 0;
    if (n >= 0)
        to[n] = '\0';
    place_close(v, &p);
    return r;
}

static int view_statfs(const char *path, struct statvfs *st)
{
    (void)path;
    return fstatvfs(view_of()->root, st) < 0 ? -errno : 0;
}

/* ---- directories ---- */

/* An open directory, at fuse_file_info.fh; its path as it was opened by. */
struct listing {
    DIR *d; /* NULL: it is masked, and empty */
    char path[];
};

static int view_opendir(const char *path, struct fuse_file_info *fi)
{
    struct view *v = view_of();
    struct stat st = {.st_mode = S_IFDIR};
    if (judge_closed(v, path))
        return -ENOENT;
    struct listing *l = calloc(1, sizeof *l + strlen(path) + 1);
    if (l == NULL)
        return -ENOMEM;
    memcpy(l->path, path, strlen(path) + 1);
    fi->fh = (uint64_t)(uintptr_t)l;
    if (path[1] && judge_name(v, path, true) == MASK_YES && judge_at(v, path, &st) != JUDGED_OWN)
        return 0;
    int fd = view_open_at(v, path, O_RDONLY | O_DIRECTORY);
    l->d = fd < 0 ? NULL : fdopendir(fd);
    if (l->d)
        return 0;
    if (fd >= 0)
        close(fd);
    free(l);
    return fd < 0 ? fd : -ENOMEM;
}

/* With all that is known of it, so that nobody has to ask for each. */
static bool describe(struct view *v, const struct listing *l, const char *name, struct stat *st)
{
    char path[VIEW_PATH];
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        fstatat(dirfd(l->d), name, st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    int n = snprintf(path, sizeof path, "%s/%s", l->path[1] ? l->path : "", name);
    return n > 0 && (size_t)n < sizeof path && show(v, path, st) == 0;
}

static int view_readdir(const char *path, void *to, fuse_fill_dir_t fill, off_t at,
                        struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    const struct listing *l = (const struct listing *)(uintptr_t)fi->fh;
    (void)path;
    (void)at;
    if (l->d == NULL) {
        fill(to, ".", NULL, 0, 0);
        fill(to, "..", NULL, 0, 0);
        return 0;
    }
    rewinddir(l->d);
    for (struct dirent *e; (e = readdir(l->d)) != NULL;) {
        struct stat st = {.st_ino = e->d_ino, .st_mode = DTTOIF(e->d_type)}, whole;
        bool known = flags & FUSE_READDIR_PLUS && describe(view_of(), l, e->d_name, &whole);
        if (fill(to, e->d_name, known ? &whole : &st, 0, known ? FUSE_FILL_DIR_PLUS : 0) != 0)
            return -ENOMEM;
    }
    return 0;
}

static int view_releasedir(const char *path, struct fuse_file_info *fi)
{
    struct listing *l = (struct listing *)(uintptr_t)fi->fh;
    (void)path;
    if (l->d)
        closedir(l->d);
    free(l);
    return 0;
}

/* ---- files ---- */

/* What is asked for, without that which takes effect before we have judged. */
static int flags_of(int asked)
{
    return (asked & (O_ACCMODE | O_APPEND | O_SYNC | O_DSYNC)) | O_NONBLOCK;
}

/* A copy follows what is written where it is written. */
static int without_append(int fd, int flags)
{
    return flags & O_APPEND ? fcntl(fd, F_SETFL, flags & ~O_APPEND) : 0;
}

static int allow(struct view *v, int fd, int asked, struct opened *o)
{
    struct stat st;
    bool changes = (asked & O_ACCMODE) != O_RDONLY || asked & O_TRUNC;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -EACCES;
    if (!changes)
        (void)own_compare(&v->owns, fd); /* does somebody else write to it as well? */
    enum judged j = judge_open(v, fd);
    if (j == JUDGED_SHOWN && judge_linked(v, fd))
        j = JUDGED_MASKED;
    if (j == JUDGED_MASKED && changes)
        return -EACCES;
    o->masked = j == JUDGED_MASKED;
    if (j == JUDGED_OWN && without_append(fd, flags_of(asked)) < 0)
        return -errno;
    return asked & O_TRUNC && own_cut(&v->owns, fd, 0) < 0 ? -errno : 0;
}

int view_open(const char *path, struct fuse_file_info *fi)
{
    struct view *v = view_of();
    if (judge_closed(v, path))
        return -ENOENT;
    struct opened *o = calloc(1, sizeof *o);
    if (o == NULL)
        return -ENOMEM;
    o->fd = view_open_at(v, path, flags_of(fi->flags));
    int r = o->fd < 0 ? o->fd : allow(v, o->fd, fi->flags, o);
    if (r < 0) {
        if (o->fd >= 0)
            close(o->fd);
        free(o);
        return r;
    }
    fi->fh = (uint64_t)(uintptr_t)o;
    fi->direct_io = o->masked;
    return 0;
}

/* What was read is judged after it was read: then a name or a key that came before those bytes is
 * seen. */
static int view_read(const char *path, char *to, size_t n, off_t at, struct fuse_file_info *fi)
{
    struct view *v = view_of();
    const struct opened *o = (const struct opened *)(uintptr_t)fi->fh;
    (void)path;
    if (o->masked)
        return 0;
    ssize_t r = own_read(&v->owns, o->fd, to, n, at);
    if (r >= 0)
        return (int)r;
    r = pread(o->fd, to, n, at);
    if (r < 0)
        return -errno;
    return judge_open(v, o->fd) == JUDGED_SHOWN ? (int)r : -EACCES;
}

static int view_fsync(const char *path, int data, struct fuse_file_info *fi)
{
    const struct opened *o = (const struct opened *)(uintptr_t)fi->fh;
    (void)path;
    return (data ? fdatasync(o->fd) : fsync(o->fd)) < 0 ? -errno : 0;
}

static int view_release(const char *path, struct fuse_file_info *fi)
{
    struct opened *o = (struct opened *)(uintptr_t)fi->fh;
    (void)path;
    close(o->fd);
    free(o);
    return 0;
}

void view_add_reads(struct fuse_operations *ops)
{
    ops->getattr = view_getattr;
    ops->access = view_access;
    ops->readlink = view_readlink;
    ops->statfs = view_statfs;
    ops->opendir = view_opendir;
    ops->readdir = view_readdir;
    ops->releasedir = view_releasedir;
    ops->open = view_open;
    ops->read = view_read;
    ops->fsync = view_fsync;
    ops->release = view_release;
}
