/* Writes a layer as the archive of a snapshot (layer_archive.h), behind its first member, which the
 * builder wrote. */
#define _GNU_SOURCE 1
#include "layer_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "copy_tree.h"

enum {
    LINKS_MAX = 65536,
    NAMES_MAX = 65536,
    VALUE_MAX = 65536,
    PATH_LENGTH = 16384,
    EXTENTS_MAX = 4096, /* what lies behind so many is all data */
    BLOCK = 65536
};
static const off_t FILE_MAX = (off_t)1 << 40;

struct linked { /* a file with more names than one */
    ino_t inode;
    char *path; /* its first */
};

struct packing {
    struct archive *a;
    struct linked *links; /* of LINKS_MAX, made when it is needed */
    unsigned n;
    size_t length; /* of path */
    char path[PATH_LENGTH];
};

static int archive_err(const struct packing *p, struct err *err)
{
    const char *why = archive_error_string(p->a);
    return err_set(err, ERR_SYS, "the archive cannot be written: %.200s", why ? why : "no reason");
}

/* ---- members ---- */

static struct archive_entry *entry(const char *path, const struct stat *st, unsigned type)
{
    struct archive_entry *e = archive_entry_new();
    if (e == NULL)
        return NULL;
    archive_entry_set_pathname(e, path);
    archive_entry_set_filetype(e, type);
    archive_entry_set_perm(e, st->st_mode & 01777);
    archive_entry_set_mtime(e, st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
    return e;
}

/* Takes e. */
static int put(struct packing *p, struct archive_entry *e, struct err *err)
{
    if (e == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    int r = archive_write_header(p->a, e);
    archive_entry_free(e);
    return r == ARCHIVE_OK ? 0 : archive_err(p, err);
}

static int put_attributes(struct archive_entry *e, int fd, struct err *err)
{
    static char names[NAMES_MAX], value[VALUE_MAX];
    ssize_t n = flistxattr(fd, names, sizeof names);
    for (char *name = names; n > 0 && name < names + n; name += strlen(name) + 1) {
        if (!copy_tree_keeps(name))
            continue;
        ssize_t v = fgetxattr(fd, name, value, sizeof value);
        if (v < 0)
            return err_sys(err, "cannot read the attribute %.100s", name);
        archive_entry_xattr_add_entry(e, name, value, (size_t)v);
    }
    return 0;
}

/* Where it has data, if it has holes. */
static void put_extents(struct archive_entry *e, int fd, off_t size)
{
    off_t hole = lseek(fd, 0, SEEK_HOLE), at = 0;
    if (hole < 0 || hole >= size)
        return;
    for (unsigned n = 0; at < size; n++) {
        off_t data = lseek(fd, at, SEEK_DATA);
        if (data < 0)
            break;
        hole = n < EXTENTS_MAX ? lseek(fd, data, SEEK_HOLE) : size;
        if (hole < 0 || hole > size)
            hole = size;
        archive_entry_sparse_add_entry(e, data, hole - data);
        at = hole;
    }
    if (at == 0) /* nothing but a hole */
        archive_entry_sparse_add_entry(e, size, 0);
}

/* What has changed since it was found, in a tree that is written to: then it is left out. */
static bool is_gone(int error)
{
    return error == ENOENT || error == ELOOP || error == ENOTDIR || error == ENXIO;
}

/* What has become shorter is filled up with zeros, as its length is said already. */
static int put_data(const struct packing *p, int fd, off_t size, struct err *err)
{
    static const char zeros[BLOCK];
    char room[BLOCK];
    for (off_t at = 0; at < size;) {
        off_t data = lseek(fd, at, SEEK_DATA);
        if (data < 0)
            data = errno == ENXIO ? size : at;
        size_t n = data > at ? (size_t)(data - at) : (size_t)(size - at);
        ssize_t got = n < BLOCK ? (ssize_t)n : BLOCK;
        ssize_t most = got;
        if (data <= at && (got = pread(fd, room, (size_t)got, at)) < 0)
            return err_sys(err, "%.200s", p->path);
        bool none = data > at || got == 0;
        got = none ? most : got;
        if (archive_write_data(p->a, none ? zeros : room, (size_t)got) != got)
            return archive_err(p, err);
        at += got;
    }
    return 0;
}

/* A further name of what is in the archive already: 1 put, 0 it is the first, -1 failed. */
static int put_again(struct packing *p, const struct stat *st, struct err *err)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->links[i].inode == st->st_ino) {
            struct archive_entry *e = entry(p->path, st, AE_IFREG);
            if (e)
                archive_entry_set_hardlink(e, p->links[i].path);
            return put(p, e, err) < 0 ? -1 : 1;
        }
    return 0;
}

static void remember(struct packing *p, const struct stat *st)
{
    if (p->links == NULL)
        p->links = calloc(LINKS_MAX, sizeof *p->links);
    char *path = p->links && p->n < LINKS_MAX ? strdup(p->path) : NULL;
    if (path) /* else it becomes a file of its own */
        p->links[p->n++] = (struct linked){st->st_ino, path};
}

static int put_open_file(struct packing *p, int fd, const struct stat *st, struct err *err)
{
    if (st->st_size > FILE_MAX)
        return err_set(err, ERR_LIMIT, "%.200s is larger than 1 TiB", p->path);
    struct archive_entry *e = entry(p->path, st, AE_IFREG);
    if (e == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    archive_entry_set_size(e, st->st_size);
    put_extents(e, fd, st->st_size);
    if (put_attributes(e, fd, err) < 0) {
        archive_entry_free(e);
        return -1;
    }
    return put(p, e, err) < 0 ? -1 : put_data(p, fd, st->st_size, err);
}

static int put_file(struct packing *p, int at, const char *name, const struct stat *st,
                    struct err *err)
{
    struct stat is;
    int r = st->st_nlink > 1 ? put_again(p, st, err) : 0;
    if (r != 0)
        return r < 0 ? -1 : 0;
    int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return is_gone(errno) ? 0 : err_sys(err, "%.200s", p->path);
    if (fstat(fd, &is) < 0)
        r = err_sys(err, "%.200s", p->path);
    else if (S_ISREG(is.st_mode))
        r = put_open_file(p, fd, &is, err);
    if (r == 0 && S_ISREG(is.st_mode) && is.st_nlink > 1 && is.st_ino == st->st_ino)
        remember(p, &is);
    close(fd);
    return r;
}

static int put_link(struct packing *p, int at, const char *name, const struct stat *st,
                    struct err *err)
{
    char text[PATH_MAX];
    ssize_t n = readlinkat(at, name, text, sizeof text - 1);
    if (n < 0)
        return is_gone(errno) || errno == EINVAL ? 0 : err_sys(err, "%.200s", p->path);
    text[n] = '\0';
    struct archive_entry *e = entry(p->path, st, AE_IFLNK);
    if (e)
        archive_entry_set_symlink(e, text);
    return put(p, e, err);
}

static int put_whiteout(struct packing *p, const struct stat *st, struct err *err)
{
    if (st->st_rdev != makedev(0, 0))
        return 0;
    struct archive_entry *e = entry(p->path, st, AE_IFCHR);
    if (e)
        archive_entry_set_rdev(e, makedev(0, 0));
    return put(p, e, err);
}

/* ---- the tree ---- */

static int put_directory(struct packing *p, int fd, unsigned depth, struct err *err);

static int put_one(struct packing *p, int at, const char *name, unsigned depth, struct err *err)
{
    struct stat st;
    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return is_gone(errno) ? 0 : err_sys(err, "%.200s", p->path);
    switch (st.st_mode & S_IFMT) {
    case S_IFREG:
        return put_file(p, at, name, &st, err);
    case S_IFLNK:
        return put_link(p, at, name, &st, err);
    case S_IFIFO:
        return put(p, entry(p->path, &st, AE_IFIFO), err);
    case S_IFCHR:
        return put_whiteout(p, &st, err);
    case S_IFDIR:
        break;
    default:
        return 0;
    }
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return is_gone(errno) ? 0 : err_sys(err, "%.200s", p->path);
    int r = put_directory(p, fd, depth + 1, err);
    close(fd);
    return r;
}

/* Its name behind p->path, one more or none. */
static int step(struct packing *p, int at, const char *name, unsigned depth, struct err *err)
{
    size_t before = p->length, n = strlen(name);
    if (before + n + 2 > sizeof p->path)
        return err_set(err, ERR_LIMIT, "a path is longer than %d bytes", PATH_LENGTH);
    p->path[before] = '/';
    memcpy(p->path + before + 1, name, n + 1);
    p->length += n + 1;
    int r = put_one(p, at, name, depth, err);
    p->length = before;
    p->path[before] = '\0';
    return r;
}

static int put_directory(struct packing *p, int fd, unsigned depth, struct err *err)
{
    enum { DEPTH_MAX = 250 };
    struct stat st;
    if (depth > DEPTH_MAX)
        return err_set(err, ERR_LIMIT, "directories lie more than %d deep", DEPTH_MAX);
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = own < 0 ? NULL : fdopendir(own);
    int r = d == NULL || fstat(fd, &st) < 0 ? err_sys(err, "%.200s", p->path) : 0;
    for (struct dirent *e; r == 0 && (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            r = step(p, fd, e->d_name, depth, err);
    if (d)
        closedir(d);
    else if (own >= 0)
        close(own);
    struct archive_entry *e = r == 0 ? entry(p->path, &st, AE_IFDIR) : NULL;
    if (e && put_attributes(e, fd, err) < 0) {
        archive_entry_free(e);
        return -1;
    }
    return r == 0 ? put(p, e, err) : -1;
}

static int put_part(struct packing *p, const char *name, int fd, struct err *err)
{
    p->length = strlen(name);
    memcpy(p->path, name, p->length + 1);
    int r = put_directory(p, fd, 0, err);
    for (unsigned i = 0; i < p->n; i++)
        free(p->links[i].path);
    p->n = 0;
    return r;
}

static int put_end(struct packing *p, struct err *err)
{
    struct stat st = {.st_mode = 0644};
    return put(p, entry("durward-end", &st, AE_IFREG), err);
}

int layer_pack(int fd, const int parts[2], struct err *err)
{
    struct packing *p = calloc(1, sizeof *p);
    if (p == NULL || (p->a = archive_write_new()) == NULL) {
        free(p);
        return err_set(err, ERR_INTERNAL, "out of memory");
    }
    int r = 0;
    if (archive_write_set_format_pax_restricted(p->a) != ARCHIVE_OK ||
        archive_write_set_options(p->a, "hdrcharset=BINARY") != ARCHIVE_OK ||
        archive_write_set_bytes_per_block(p->a, BLOCK) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(p->a, 1) != ARCHIVE_OK ||
        archive_write_open_fd(p->a, fd) != ARCHIVE_OK)
        r = archive_err(p, err);
    if (r == 0 && (put_part(p, "root", parts[0], err) < 0 ||
                   put_part(p, "usr", parts[1], err) < 0 || put_end(p, err) < 0))
        r = -1;
    if (r == 0 && archive_write_close(p->a) != ARCHIVE_OK)
        r = archive_err(p, err);
    archive_write_free(p->a);
    free(p->links);
    free(p);
    return r;
}
