/* A directory with a disk that fails: faulty_fs BACKING MOUNT CONTROL [cached].
 *
 * Everything goes through to BACKING. The first byte of CONTROL says how what changes the disk
 * (write, fsync, create, rename, truncate) fares: 'o' well, 'e' EIO, 'n' ENOSPC, 's' half of a
 * write and then ENOSPC, 'f' EIO of fsync only, 'h' it hangs until the byte is another. cached:
 * writes lie in the page cache first, as with a disk; otherwise each write(2) comes here. */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 35
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int backing = -1;
static bool cached, halved;
static const volatile char *control;

static const char *inside(const char *path)
{
    return path[1] ? path + 1 : ".";
}

/* 0, or what the disk says. */
static int weather(bool sync)
{
    static const struct timespec while_ = {0, 5000000};
    while (*control == 'h')
        nanosleep(&while_, NULL);
    char now = *control;
    if (now != 's')
        halved = false;
    if (now == 'e' || (now == 'f' && sync))
        return -EIO;
    return now == 'n' || (now == 's' && halved) ? -ENOSPC : 0;
}

static int done(int r)
{
    return r < 0 ? -errno : 0;
}

static int fs_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    return done(fi ? fstat((int)fi->fh, st)
                   : fstatat(backing, inside(path), st, AT_SYMLINK_NOFOLLOW));
}

static int fs_readdir(const char *path, void *to, fuse_fill_dir_t fill, off_t from,
                      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    (void)from, (void)fi, (void)flags;
    int fd = openat(backing, inside(path), O_RDONLY | O_DIRECTORY);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL)
        return -errno;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        fill(to, e->d_name, NULL, 0, 0);
    closedir(d);
    return 0;
}

static int open_there(const char *path, int flags, mode_t mode, struct fuse_file_info *fi)
{
    if (cached) { /* the kernel reads pages that it fills in part, and appends by itself */
        if ((flags & O_ACCMODE) == O_WRONLY)
            flags = (flags & ~O_ACCMODE) | O_RDWR;
        flags &= ~O_APPEND;
    }
    int fd = openat(backing, inside(path), flags, mode);
    if (fd < 0)
        return -errno;
    fi->fh = (uint64_t)fd;
    return 0;
}

static int fs_open(const char *path, struct fuse_file_info *fi)
{
    return open_there(path, fi->flags, 0, fi);
}

static int fs_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    int r = weather(false);
    if (r < 0 || (r = open_there(path, fi->flags | O_CREAT, mode, fi)) < 0)
        return r;
    const struct fuse_context *by = fuse_get_context();
    return done(fchown((int)fi->fh, by->uid, by->gid));
}

static int fs_release(const char *path, struct fuse_file_info *fi)
{
    (void)path;
    return done(close((int)fi->fh));
}

static int fs_read(const char *path, char *to, size_t n, off_t at, struct fuse_file_info *fi)
{
    (void)path;
    ssize_t got = pread((int)fi->fh, to, n, at);
    return got < 0 ? -errno : (int)got;
}

static int fs_write(const char *path, const char *from, size_t n, off_t at,
                    struct fuse_file_info *fi)
{
    (void)path;
    int r = weather(false);
    if (r < 0)
        return r;
    if (*control == 's' && n > 1) {
        n /= 2;
        halved = true;
    }
    ssize_t put = pwrite((int)fi->fh, from, n, at);
    return put < 0 ? -errno : (int)put;
}

static int fs_fsync(const char *path, int data, struct fuse_file_info *fi)
{
    (void)path, (void)data;
    int r = weather(true);
    return r < 0 ? r : done(fsync((int)fi->fh));
}

static int fs_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
    int r = weather(false);
    if (r < 0)
        return r;
    if (fi)
        return done(ftruncate((int)fi->fh, size));
    int fd = openat(backing, inside(path), O_WRONLY);
    r = fd < 0 ? -errno : done(ftruncate(fd, size));
    if (fd >= 0)
        close(fd);
    return r;
}

static int fs_rename(const char *from, const char *to, unsigned flags)
{
    int r = weather(false);
    return r < 0 ? r : done(renameat2(backing, inside(from), backing, inside(to), flags));
}

static int fs_link(const char *from, const char *to)
{
    int r = weather(false);
    return r < 0 ? r : done(linkat(backing, inside(from), backing, inside(to), 0));
}

static int fs_unlink(const char *path)
{
    return done(unlinkat(backing, inside(path), 0));
}

static int fs_mkdir(const char *path, mode_t mode)
{
    const struct fuse_context *by = fuse_get_context();
    if (mkdirat(backing, inside(path), mode) < 0)
        return -errno;
    return done(fchownat(backing, inside(path), by->uid, by->gid, 0));
}

static int fs_rmdir(const char *path)
{
    return done(unlinkat(backing, inside(path), AT_REMOVEDIR));
}

static int fs_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    return done(fi ? fchmod((int)fi->fh, mode) : fchmodat(backing, inside(path), mode, 0));
}

static int fs_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
    return done(fi ? fchown((int)fi->fh, uid, gid)
                   : fchownat(backing, inside(path), uid, gid, AT_SYMLINK_NOFOLLOW));
}

static int fs_utimens(const char *path, const struct timespec t[2], struct fuse_file_info *fi)
{
    return done(fi ? futimens((int)fi->fh, t) : utimensat(backing, inside(path), t, 0));
}

static void *fs_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
    config->nullpath_ok = 0;
    config->hard_remove = 1;
    if (cached)
        conn->want |= conn->capable & FUSE_CAP_WRITEBACK_CACHE;
    return NULL;
}

int main(int argc, char **argv)
{
    static const struct fuse_operations ops = {.init = fs_init,
                                               .getattr = fs_getattr,
                                               .readdir = fs_readdir,
                                               .open = fs_open,
                                               .create = fs_create,
                                               .release = fs_release,
                                               .read = fs_read,
                                               .write = fs_write,
                                               .fsync = fs_fsync,
                                               .fsyncdir = fs_fsync,
                                               .truncate = fs_truncate,
                                               .rename = fs_rename,
                                               .link = fs_link,
                                               .unlink = fs_unlink,
                                               .mkdir = fs_mkdir,
                                               .rmdir = fs_rmdir,
                                               .chmod = fs_chmod,
                                               .chown = fs_chown,
                                               .utimens = fs_utimens};
    if (argc < 4)
        return 2;
    cached = argc > 4;
    backing = open(argv[1], O_RDONLY | O_DIRECTORY);
    int fd = open(argv[3], O_RDONLY);
    void *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (backing < 0 || map == MAP_FAILED) {
        perror("faulty_fs");
        return 1;
    }
    control = map;
    umask(0);
    char options[] = "allow_other,default_permissions,attr_timeout=0";
    char *args[] = {argv[0], (char[]){"-f"}, (char[]){"-o"}, options, argv[2], NULL};
    return fuse_main(5, args, &ops, NULL);
}
