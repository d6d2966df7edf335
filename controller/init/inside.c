/* The file operations and the connection themselves, run in a child of durward-init. Only regular
 * files are read or written, since a device or FIFO could go on for ever. */
#define _GNU_SOURCE 1
#include "inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_version.h"

enum { CHUNK = 64 * 1024, DEPTH = 32 };

static int copy(int from, int to)
{
    static unsigned char room[CHUNK];
    for (;;) {
        ssize_t n = read(from, room, sizeof room);
        if (n == 0)
            return 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        for (ssize_t at = 0; at < n;) {
            ssize_t w = write(to, room + at, (size_t)(n - at));
            if (w < 0 && errno != EINTR)
                return errno;
            at += w > 0 ? w : 0;
        }
    }
}

/* Only regular files: a device or a FIFO would go on for ever. O_NONBLOCK lets the open itself of
 * one return. */
static int open_file(const char *path, int flags, mode_t mode, int *fd)
{
    struct stat st;
    *fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
    if (*fd < 0)
        return errno == ENXIO ? EINVAL : errno;
    if (fstat(*fd, &st) < 0)
        return errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    return S_ISREG(st.st_mode) ? 0 : EINVAL;
}

static int read_file(const char *path, int out)
{
    int fd, e = open_file(path, O_RDONLY, 0, &fd);
    return e ? e : copy(fd, out);
}

/* path is changed while at it, and whole again afterwards. */
static int make_parents(char *path)
{
    for (char *s = strchr(path + 1, '/'); s; s = strchr(s + 1, '/')) {
        *s = '\0';
        int e = mkdir(path, 0755) < 0 && errno != EEXIST ? errno : 0;
        struct stat st;
        if (e && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            e = 0; /* there, only not ours to make */
        *s = '/';
        if (e)
            return e;
    }
    return 0;
}

/* ---- only if it is a version ---- */

/* The directory that path lies in, and its own name. *at: to be closed. */
static int open_above(char *path, int *at, const char **name)
{
    char *slash = strrchr(path, '/');
    *name = slash + 1;
    if (**name == '\0' || strcmp(*name, ".") == 0 || strcmp(*name, "..") == 0)
        return EINVAL;
    *slash = '\0';
    *at = open(slash == path ? "/" : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *slash = '/';
    return *at < 0 ? errno : 0;
}

static void temporary(char name[40])
{
    uint64_t r = 0;
    if (getrandom(&r, sizeof r, 0) != sizeof r)
        r = (uint64_t)getpid(); /* O_EXCL keeps it from meeting another */
    snprintf(name, 40, ".durward-sync-%016llx", (unsigned long long)r);
}

static int write_beside(int at, const char *beside, mode_t mode, int in)
{
    int fd = openat(at, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return errno;
    int e = copy(in, fd);
    if (close(fd) < 0 && e == 0)
        e = errno;
    return e;
}

/* Written beside and put in its place. */
static int write_version(const char *path, mode_t mode, const char *version, int in)
{
    char own[INSIDE_PATH], beside[40];
    const char *name;
    struct file_version was;
    int at = -1;
    bool none = strcmp(version, INSIDE_NO_VERSION) == 0;
    if (!none && file_version_read(version, &was) < 0)
        return EINVAL;
    snprintf(own, sizeof own, "%s", path);
    int e = none ? make_parents(own) : 0;
    if (e == 0)
        e = open_above(own, &at, &name);
    if (e)
        return e;
    temporary(beside);
    e = write_beside(at, beside, mode, in);
    if (e)
        (void)unlinkat(at, beside, 0);
    return e ? e : file_replace(at, beside, name, none ? NULL : &was);
}

static int delete_version(const char *path, const char *version)
{
    char own[INSIDE_PATH], aside[40];
    const char *name;
    struct file_version was;
    int at = -1;
    if (file_version_read(version, &was) < 0)
        return EINVAL;
    snprintf(own, sizeof own, "%s", path);
    int e = open_above(own, &at, &name);
    temporary(aside);
    return e ? e : file_remove(at, name, aside, &was);
}

static int write_file(const char *path, mode_t mode, int flags, int in)
{
    char own[INSIDE_PATH];
    int fd;
    snprintf(own, sizeof own, "%s", path);
    size_t n = strlen(own);
    if (n && own[n - 1] == '/')
        return EISDIR;
    int e = make_parents(own);
    if (e)
        return e;
    e = open_file(own, O_WRONLY | O_CREAT | flags, mode, &fd);
    if (e)
        return e;
    if (ftruncate(fd, 0) < 0)
        return errno;
    e = copy(in, fd);
    return e ? e : close(fd) < 0 ? errno : 0;
}

static int make_dir(const char *path)
{
    char own[INSIDE_PATH + 1];
    struct stat st;
    snprintf(own, sizeof own, "%s/", path);
    int e = make_parents(own);
    if (e == 0 && stat(path, &st) < 0)
        e = errno;
    return e ? e : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
}

static char type_of(mode_t m)
{
    return S_ISREG(m) ? 'f' : S_ISDIR(m) ? 'd' : S_ISLNK(m) ? 'l' : 'o';
}

static void put_entry(const struct stat *st, const char *name, FILE *out)
{
    char version[FILE_VERSION_TEXT] = "-";
    struct file_version v = file_version_of(st);
    if (file_version_still(&v))
        file_version_text(&v, version);
    fprintf(out, "%c %o %lld %lld %s %s%c", type_of(st->st_mode), (unsigned)st->st_mode & 07777,
            (long long)st->st_size, (long long)st->st_mtime, version, name, '\0');
}

static int stat_one(const char *path, FILE *out)
{
    struct stat st;
    const char *slash = strrchr(path, '/');
    if (lstat(path, &st) < 0)
        return errno;
    put_entry(&st, slash[1] ? slash + 1 : ".", out);
    return fflush(out) == 0 ? 0 : errno;
}

static int list_dir(const char *path, FILE *out)
{
    DIR *d = opendir(path);
    if (d == NULL)
        return errno;
    unsigned n = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (n++ == INSIDE_ENTRIES)
            return fflush(out) == 0 ? EFBIG : errno;
        put_entry(&st, e->d_name, out);
    }
    return fflush(out) == 0 ? 0 : errno;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path) < 0 && errno != ENOENT ? errno : 0;
}

static int delete_tree(const char *path)
{
    int r = nftw(path, remove_one, DEPTH, FTW_DEPTH | FTW_PHYS);
    return r < 0 ? errno : r;
}

static int list_or_stat(enum inside_op op, const char *path, int fd)
{
    FILE *out = fdopen(fd, "w");
    if (out == NULL)
        return ENOMEM;
    return op == INSIDE_LIST ? list_dir(path, out) : stat_one(path, out);
}

int inside_do(enum inside_op op, const char *path, unsigned mode, const char *version, int fd)
{
    (void)signal(SIGIO, SIG_IGN); /* file_version.h */
    switch (op) {
    case INSIDE_READ:
        return read_file(path, fd);
    case INSIDE_WRITE:
        return *version ? write_version(path, (mode_t)mode, version, fd)
                        : write_file(path, (mode_t)mode, 0, fd);
    case INSIDE_WRITE_NEW:
        return write_file(path, (mode_t)mode, O_EXCL, fd);
    case INSIDE_LIST:
    case INSIDE_STAT:
        return list_or_stat(op, path, fd);
    case INSIDE_DELETE:
        return *version ? delete_version(path, version) : remove(path) < 0 ? errno : 0;
    case INSIDE_DELETE_TREE:
        return delete_tree(path);
    case INSIDE_MKDIR:
        return make_dir(path);
    case INSIDE_CHECK: {
        DIR *d = opendir(path);
        return d ? 0 : errno;
    }
    case INSIDE_WATCH:
    case INSIDE_END:
        break;
    }
    return EINVAL;
}
