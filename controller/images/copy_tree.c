/* Walks the tree by descriptors and copies entry by entry, with bounds on depth, hard links and
 * attributes. */
#define _GNU_SOURCE 1
#include "copy_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "volume.h"

enum { DEPTH_MAX = 512, LINKS_MAX = 65536, NAMES_MAX = 65536, VALUE_MAX = 65536 };

struct linked { /* a file with more names than one, and its copy */
    ino_t inode;
    int fd; /* O_PATH, of the copy */
};

struct copy {
    struct linked *links; /* of LINKS_MAX, made when it is needed */
    unsigned n;
    int64_t left; /* that it may still hold */
};

/* A tree that is written to meanwhile may show the same twice. */
static int take(struct copy *c, int64_t n, struct err *err)
{
    if (n < 0 || n > c->left)
        return err_set(err, ERR_LIMIT, "the copy gets larger than it may be: it is written to");
    c->left -= n;
    return 0;
}

/* What names the lower layer's inodes means nothing in another place. */
bool copy_tree_keeps(const char *name)
{
    static const char *const not_these[] = {"user.overlay.origin", "user.overlay.uuid",
                                            "user.overlay.impure", "user.overlay.nlink"};
    for (size_t i = 0; i < ARRAY_LEN(not_these); i++)
        if (strcmp(name, not_these[i]) == 0)
            return false;
    return strncmp(name, "user.", 5) == 0;
}

static int copy_attributes(int from, int to, const struct stat *st, struct err *err)
{
    static char names[NAMES_MAX], value[VALUE_MAX];
    struct timespec times[2] = {st->st_atim, st->st_mtim};
    ssize_t n = flistxattr(from, names, sizeof names);
    for (char *name = names; n > 0 && name < names + n; name += strlen(name) + 1) {
        if (!copy_tree_keeps(name))
            continue;
        ssize_t v = fgetxattr(from, name, value, sizeof value);
        if (v < 0 || fsetxattr(to, name, value, (size_t)v, 0) < 0)
            return err_sys(err, "cannot copy the attribute %.100s", name);
    }
    if (fchmod(to, st->st_mode & 01777) < 0 || futimens(to, times) < 0)
        return err_sys(err, "cannot copy a file's mode");
    return 0;
}

/* n bytes from where both descriptors stand. */
static int copy_bytes(int from, int to, off_t n)
{
    char room[65536];
    while (n > 0) {
        size_t most = n < 1 << 30 ? (size_t)n : 1 << 30;
        ssize_t got = copy_file_range(from, NULL, to, NULL, most, 0);
        if (got < 0) {
            got = read(from, room, most < sizeof room ? most : sizeof room);
            if (got > 0 && write(to, room, (size_t)got) != got)
                return -1;
        }
        if (got <= 0)
            return (int)got; /* it has become shorter */
        n -= got;
    }
    return 0;
}

/* Holes stay holes. */
static int copy_data(int from, int to, off_t size)
{
    off_t hole = 0;
    struct stat st;
    if (ioctl(to, FICLONE, from) == 0)
        return fstat(to, &st) < 0 ? -1 : st.st_size > size ? ftruncate(to, size) : 0;
    while (hole < size) {
        off_t data = lseek(from, hole, SEEK_DATA);
        if (data < 0 || data >= size)
            return data < 0 && errno != ENXIO ? -1 : ftruncate(to, size);
        hole = lseek(from, data, SEEK_HOLE);
        if (hole > size) /* it has become longer */
            hole = size;
        if (hole < 0 || lseek(from, data, SEEK_SET) < 0 || lseek(to, data, SEEK_SET) < 0 ||
            copy_bytes(from, to, hole - data) < 0)
            return -1;
    }
    return 0;
}

/* A further name of what was copied already: 1 made, 0 it is the first, -1 failed. */
static int link_again(const struct copy *c, const struct stat *st, int to, const char *name,
                      struct err *err)
{
    char path[32];
    for (unsigned i = 0; i < c->n; i++)
        if (c->links[i].inode == st->st_ino) {
            snprintf(path, sizeof path, "/proc/self/fd/%d", c->links[i].fd);
            return linkat(AT_FDCWD, path, to, name, AT_SYMLINK_FOLLOW) < 0
                       ? err_sys(err, "%.200s", name)
                       : 1;
        }
    return 0;
}

static int remember(struct copy *c, const struct stat *st, int to, const char *name,
                    struct err *err)
{
    if (c->links == NULL)
        c->links = calloc(LINKS_MAX, sizeof *c->links);
    if (c->links == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (c->n == LINKS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d files have several names", LINKS_MAX);
    int fd = openat(to, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "%.200s", name);
    c->links[c->n++] = (struct linked){st->st_ino, fd};
    return 0;
}

static int copy_file(struct copy *c, int from, const struct stat *st, int to, const char *name,
                     struct err *err)
{
    int r = st->st_nlink > 1 ? link_again(c, st, to, name, err) : 0;
    if (r != 0)
        return r < 0 ? -1 : 0;
    int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (in < 0 && (errno == ENOENT || errno == ELOOP))
        return 0; /* gone meanwhile */
    if (in >= 0 && take(c, volume_length(st->st_size), err) < 0) {
        close(in);
        return -1;
    }
    int out =
        in < 0 ? -1 : openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0 || copy_data(in, out, st->st_size) < 0)
        r = err_sys(err, "%.200s", name);
    else
        r = copy_attributes(in, out, st, err);
    if (r == 0 && st->st_nlink > 1)
        r = remember(c, st, to, name, err);
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return r;
}

static int copy_link(int from, int to, const char *name, struct err *err)
{
    char text[PATH_MAX];
    ssize_t n = readlinkat(from, name, text, sizeof text - 1);
    if (n < 0)
        return errno == ENOENT ? 0 : err_sys(err, "%.200s", name);
    text[n] = '\0';
    return symlinkat(text, to, name) < 0 ? err_sys(err, "%.200s", name) : 0;
}

static int copy_directory(struct copy *c, int from, int to, unsigned depth, struct err *err);

static int copy_one(struct copy *c, int from, int to, const char *name, unsigned depth,
                    struct err *err)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    struct stat st;
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_sys(err, "%.200s", name);
    if (take(c, S_ISLNK(st.st_mode) ? 2 * VOLUME_BLOCK : VOLUME_BLOCK, err) < 0)
        return -1;
    switch (st.st_mode & S_IFMT) {
    case S_IFREG:
        return copy_file(c, from, &st, to, name, err);
    case S_IFLNK:
        return copy_link(from, to, name, err);
    case S_IFIFO:
        return mkfifoat(to, name, st.st_mode & 0777) < 0 ? err_sys(err, "%.200s", name) : 0;
    case S_IFCHR: /* a whiteout, which anybody may make, or nothing for us */
        if (st.st_rdev != makedev(0, 0))
            return 0;
        return mknodat(to, name, S_IFCHR, makedev(0, 0)) < 0 ? err_sys(err, "%.200s", name) : 0;
    case S_IFDIR:
        break;
    default:
        return 0;
    }
    if (mkdirat(to, name, 0700) < 0)
        return err_sys(err, "%.200s", name);
    int in = openat(from, name, flags), out = openat(to, name, flags);
    int r = in < 0 || out < 0 ? err_sys(err, "%.200s", name)
                              : copy_directory(c, in, out, depth + 1, err);
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return r;
}

static int copy_directory(struct copy *c, int from, int to, unsigned depth, struct err *err)
{
    struct stat st;
    if (depth > DEPTH_MAX)
        return err_set(err, ERR_LIMIT, "directories lie more than %d deep", DEPTH_MAX);
    int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int r = 0;
    if (d == NULL || fstat(fd, &st) < 0)
        r = err_sys(err, "cannot read a directory");
    else
        r = take(c, volume_length(st.st_size), err);
    for (struct dirent *e; r == 0 && (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            r = copy_one(c, from, to, e->d_name, depth, err);
    if (r == 0)
        r = copy_attributes(from, to, &st, err);
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
    return r;
}

int copy_tree(int from, int to, int64_t most, struct err *err)
{
    struct copy c = {.left = most};
    int r = copy_directory(&c, from, to, 0, err);
    for (unsigned i = 0; i < c.n; i++)
        close(c.links[i].fd);
    free(c.links);
    return r;
}
