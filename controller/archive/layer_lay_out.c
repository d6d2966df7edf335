/* Reads the archive of a snapshot (layer_archive.h) and makes its files below two directories. It
 * may be a stranger's: what does not belong in one is an error, bytes and entries are bounded. */
#define _GNU_SOURCE 1
#include "layer_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "copy_tree.h"
#include "tree.h"

enum { READ_BLOCK = 65536 };

struct laying {
    struct archive *a;
    const int *parts;
    uint64_t bytes, entries; /* that may still come */
};

static int archive_err(const struct laying *l, struct err *err)
{
    const char *why = archive_error_string(l->a);
    return err_set(err, ERR_PARSE, "the archive cannot be read: %.200s", why ? why : "malformed");
}

/* ---- what a member becomes ---- */

/* overlayfs's marks that lead nowhere else, and the user's own. */
static bool may_be_set(const char *name)
{
    static const char marks[] = "user.overlay.";
    static const char *const harmless[] = {"user.overlay.opaque", "user.overlay.whiteout"};
    if (strncmp(name, "user.", 5) != 0)
        return false;
    if (strncmp(name, marks, sizeof marks - 1) != 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
        if (strcmp(name, harmless[i]) == 0)
            return true;
    return strncmp(name, "user.overlay.overlay.", 21) == 0; /* one of a sandbox's own, escaped */
}

static int put_attributes(struct archive_entry *e, int fd, struct err *err)
{
    const char *path = archive_entry_pathname(e), *name;
    const void *value;
    size_t n;
    archive_entry_xattr_reset(e);
    while (archive_entry_xattr_next(e, &name, &value, &n) == ARCHIVE_OK) {
        if (name == NULL || !may_be_set(name))
            return err_set(err, ERR_PARSE, "%.200s: the attribute %.100s is not for a snapshot",
                           path, name ? name : "");
        if (fsetxattr(fd, name, value, n, 0) < 0)
            return err_sys(err, "%.200s: the attribute %.100s", path, name);
    }
    struct timespec t = {archive_entry_mtime(e), archive_entry_mtime_nsec(e)};
    struct timespec times[2] = {t, t};
    if (fchmod(fd, archive_entry_perm(e) & 01777) < 0 || futimens(fd, times) < 0)
        return err_sys(err, "%.200s", path);
    return 0;
}

static int write_all(int fd, const char *p, size_t n, off_t at)
{
    while (n > 0) {
        ssize_t w = pwrite(fd, p, n, at);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return -1;
        p += w;
        n -= (size_t)w;
        at += w;
    }
    return 0;
}

static int put_data(const struct laying *l, int fd, uint64_t size, const char *path,
                    struct err *err)
{
    const void *p;
    size_t n;
    la_int64_t at;
    for (;;) {
        int r = archive_read_data_block(l->a, &p, &n, &at);
        if (r == ARCHIVE_EOF)
            return ftruncate(fd, (off_t)size) < 0 ? err_sys(err, "%.200s", path) : 0;
        if (r != ARCHIVE_OK)
            return archive_err(l, err);
        if (at < 0 || (uint64_t)at > size || n > size - (uint64_t)at)
            return err_set(err, ERR_PARSE, "%.200s is longer than it says", path);
        if (write_all(fd, p, n, (off_t)at) < 0)
            return err_sys(err, "%.200s", path);
    }
}

static int put_file(struct laying *l, struct archive_entry *e, int at, const char *name,
                    struct err *err)
{
    const char *path = archive_entry_pathname(e);
    la_int64_t size = archive_entry_size(e);
    if (size < 0 || (uint64_t)size > l->bytes)
        return err_set(err, ERR_LIMIT, "%.200s: there is no room for so many bytes", path);
    l->bytes -= (uint64_t)size;
    int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, "%.200s", path);
    int r = put_data(l, fd, (uint64_t)size, path, err);
    if (r == 0)
        r = put_attributes(e, fd, err);
    close(fd);
    return r;
}

static int put_directory(struct archive_entry *e, int at, const char *name, struct err *err)
{
    const char *path = archive_entry_pathname(e);
    if (name[0] && mkdirat(at, name, 0700) < 0 && errno != EEXIST)
        return err_sys(err, "%.200s", path);
    int fd = openat(at, name[0] ? name : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = fd < 0 ? err_sys(err, "%.200s", path) : put_attributes(e, fd, err);
    if (fd >= 0)
        close(fd);
    return r;
}

/* The part that a path begins with, and where it goes on; -1: none. */
static int part_of(const struct laying *l, const char **path)
{
    static const char *const names[] = {"root", "usr"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t n = strlen(names[i]);
        if (strncmp(*path, names[i], n) != 0 || ((*path)[n] != '/' && (*path)[n] != '\0'))
            continue;
        *path += n;
        return l->parts[i];
    }
    return -1;
}

static int put_link(const struct laying *l, struct archive_entry *e, int part, int at,
                    const char *name, struct err *err)
{
    char target[NAME_MAX + 1];
    struct stat st;
    const char *path = archive_entry_pathname(e), *to = archive_entry_hardlink(e);
    int from = part_of(l, &to) == part ? tree_parent(part, to, false, target, err)
                                       : err_set(err, ERR_PARSE, "it leads to another part");
    if (from < 0)
        return err_wrap(err, "%.200s is a hard link", path);
    int r = 0;
    if (fstatat(from, target, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        r = err_set(err, ERR_PARSE, "%.200s is a hard link to no file of the archive", path);
    else if (linkat(from, target, at, name, 0) < 0)
        r = err_sys(err, "%.200s", path);
    close(from);
    return r;
}

static int put_special(struct archive_entry *e, int at, const char *name, struct err *err)
{
    const char *path = archive_entry_pathname(e), *to = archive_entry_symlink(e);
    int r = -1;
    switch (archive_entry_filetype(e)) {
    case AE_IFLNK:
        if (to == NULL || to[0] == '\0' || strlen(to) >= PATH_MAX)
            return err_set(err, ERR_PARSE, "%.200s: a link to nowhere", path);
        r = symlinkat(to, at, name);
        break;
    case AE_IFIFO:
        r = mkfifoat(at, name, archive_entry_perm(e) & 0777);
        break;
    case AE_IFCHR:
        if (archive_entry_rdevmajor(e) || archive_entry_rdevminor(e))
            return err_set(err, ERR_PARSE, "%.200s is a device", path);
        r = mknodat(at, name, S_IFCHR, makedev(0, 0));
        break;
    default:
        return err_set(err, ERR_PARSE, "%.200s is of no kind that a snapshot has", path);
    }
    return r < 0 ? err_sys(err, "%.200s", path) : 0;
}

static int put_member(struct laying *l, struct archive_entry *e, struct err *err)
{
    char name[NAME_MAX + 1];
    const char *path = archive_entry_pathname(e), *rest = path;
    int part = path ? part_of(l, &rest) : -1;
    if (part < 0)
        return err_set(err, ERR_PARSE, "%.200s is not of a snapshot", path ? path : "a name");
    if (l->entries-- == 0)
        return err_set(err, ERR_LIMIT, "more than %d files", LAYER_ENTRIES_MAX);
    int at = tree_parent(part, rest, true, name, err), r;
    if (at < 0)
        return -1;
    bool linked = archive_entry_hardlink(e) != NULL;
    if (archive_entry_filetype(e) == AE_IFDIR && !linked)
        r = put_directory(e, at, name, err);
    else if (name[0] == '\0')
        r = err_set(err, ERR_PARSE, "%.200s is not a directory", path);
    else if (linked)
        r = put_link(l, e, part, at, name, err);
    else if (archive_entry_filetype(e) == AE_IFREG)
        r = put_file(l, e, at, name, err);
    else
        r = put_special(e, at, name, err);
    close(at);
    return r;
}

static int put_all(struct laying *l, struct err *err)
{
    struct archive_entry *e;
    bool ended = false;
    for (;;) {
        int got = archive_read_next_header(l->a, &e);
        if (got == ARCHIVE_EOF)
            return ended ? 0 : err_set(err, ERR_PARSE, "the archive is cut");
        if (got != ARCHIVE_OK)
            return archive_err(l, err);
        const char *path = archive_entry_pathname(e);
        if (ended)
            return err_set(err, ERR_PARSE, "something follows the archive's end");
        if (path && strcmp(path, "durward-end") == 0)
            ended = true;
        else if (put_member(l, e, err) < 0)
            return -1;
    }
}

int layer_lay_out(int fd, const int parts[2], uint64_t bytes, struct err *err)
{
    struct laying l = {archive_read_new(), parts, bytes, LAYER_ENTRIES_MAX};
    if (l.a == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    int r = archive_read_support_format_tar(l.a) == ARCHIVE_OK &&
                    archive_read_open_fd(l.a, fd, READ_BLOCK) == ARCHIVE_OK
                ? put_all(&l, err)
                : archive_err(&l, err);
    archive_read_free(l.a);
    return r;
}
