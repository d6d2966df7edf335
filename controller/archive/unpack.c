/* Takes a tar's members one by one. A layer is read twice: first its whiteouts remove what they
 * hide, then its files are made. */
#define _GNU_SOURCE 1
#include "unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tree.h"

#define WHITEOUT ".wh."
#define OPAQUE   ".wh..wh..opq"

enum { BLOCK = 128 * 1024 };

enum pass { PASS_ALL, PASS_WHITEOUTS, PASS_FILES };

static int archive_err(struct archive *a, struct err *err)
{
    const char *why = archive_error_string(a);
    return err_set(err, ERR_PARSE, "the archive cannot be read: %.200s", why ? why : "malformed");
}

static struct archive *open_archive(int fd, struct err *err)
{
    struct archive *a = archive_read_new();
    if (a == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    if (archive_read_support_format_tar(a) == ARCHIVE_OK &&
        archive_read_support_filter_gzip(a) == ARCHIVE_OK &&
        archive_read_support_filter_bzip2(a) == ARCHIVE_OK &&
        archive_read_support_filter_xz(a) == ARCHIVE_OK &&
        archive_read_support_filter_zstd(a) == ARCHIVE_OK &&
        archive_read_open_fd(a, fd, BLOCK) == ARCHIVE_OK)
        return a;
    archive_err(a, err);
    archive_read_free(a);
    return NULL;
}

/* ---- budget ---- */

static int budget_client_entry(struct unpack *u, struct err *err)
{
    if (u->entries_left == 0)
        return err_set(err, ERR_LIMIT, "more than %llu files", (unsigned long long)u->done.entries);
    u->entries_left--;
    u->done.entries++;
    if (u->progress)
        u->progress(u->arg, &u->done);
    return 0;
}

static int budget_client_bytes(struct unpack *u, uint64_t n, struct err *err)
{
    if (n > u->bytes_left)
        return err_set(err, ERR_LIMIT, "larger than %llu MiB when unpacked; --max-size allows more",
                       (unsigned long long)((u->done.bytes + u->bytes_left) >> 20));
    u->bytes_left -= n;
    u->done.bytes += n;
    if (u->progress)
        u->progress(u->arg, &u->done);
    return 0;
}

/* ---- kinds of members ---- */

static int write_all(int fd, const char *p, size_t n, off_t at, const char *path, struct err *err)
{
    while (n > 0) {
        ssize_t w = pwrite(fd, p, n, at);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return err_sys(err, "%.200s", path);
        p += w;
        n -= (size_t)w;
        at += w;
    }
    return 0;
}

static int copy_data(struct unpack *u, struct archive *a, int fd, uint64_t size, const char *path,
                     struct err *err)
{
    const void *p;
    size_t n;
    la_int64_t at;
    for (;;) {
        int r = archive_read_data_block(a, &p, &n, &at);
        if (r == ARCHIVE_EOF)
            return 0;
        if (r != ARCHIVE_OK)
            return archive_err(a, err);
        /* the map of a sparse file may lead far behind the size it claims */
        if (at < 0 || (uint64_t)at > size || n > size - (uint64_t)at)
            return err_set(err, ERR_PARSE, "%.200s is longer than it says", path);
        if (budget_client_bytes(u, n, err) < 0 || write_all(fd, p, n, (off_t)at, path, err) < 0)
            return -1;
    }
}

static mode_t harmless_mode(struct unpack *u, mode_t mode)
{
    if (mode & (S_ISUID | S_ISGID))
        u->done.set_id++;
    return mode & 01777;
}

static int put_file(struct unpack *u, struct archive *a, struct archive_entry *e, int at,
                    const char *name, struct err *err)
{
    const char *path = archive_entry_pathname(e);
    la_int64_t size = archive_entry_size(e);
    struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = archive_entry_mtime(e)}};
    /* what a sparse file claims to be counts, not only what of it is written */
    if (size < 0 || (uint64_t)size > u->bytes_left)
        return budget_client_bytes(u, UINT64_MAX, err);
    if (tree_remove(at, name, err) < 0)
        return -1;
    int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, "%.200s", path);
    int r = copy_data(u, a, fd, (uint64_t)size, path, err);
    struct stat st;
    if (r == 0 &&
        (fstat(fd, &st) < 0 || (st.st_size < size && ftruncate(fd, size) < 0) ||
         fchmod(fd, harmless_mode(u, archive_entry_perm(e))) < 0 || futimens(fd, times) < 0))
        r = err_sys(err, "%.200s", path);
    close(fd);
    return r;
}

static int put_directory(struct archive_entry *e, int at, const char *name, struct err *err)
{
    struct stat st;
    const char *path = archive_entry_pathname(e);
    mode_t mode = archive_entry_perm(e) & 01777;
    if (name[0] == '\0') /* the root itself stays ours */
        return 0;
    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) &&
        tree_remove(at, name, err) < 0)
        return -1;
    if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
        return err_sys(err, "%.200s", path);
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = fd < 0 || fchmod(fd, mode) < 0 ? err_sys(err, "%.200s", path) : 0;
    if (fd >= 0)
        close(fd);
    return r;
}

static int put_symlink(struct archive_entry *e, int at, const char *name, struct err *err)
{
    const char *to = archive_entry_symlink(e);
    if (to == NULL || to[0] == '\0' || strlen(to) >= PATH_MAX)
        return err_set(err, ERR_PARSE, "%.200s: a link to nowhere", archive_entry_pathname(e));
    if (tree_remove(at, name, err) < 0)
        return -1;
    return symlinkat(to, at, name) < 0 ? err_sys(err, "%.200s", archive_entry_pathname(e)) : 0;
}

static int put_link(struct unpack *u, struct archive_entry *e, int at, const char *name,
                    struct err *err)
{
    char target[NAME_MAX + 1];
    struct stat st, old;
    const char *path = archive_entry_pathname(e);
    int from = tree_parent(u->root, archive_entry_hardlink(e), false, target, err);
    if (from < 0)
        return err_wrap(err, "%.200s is a hard link", path);
    int r = 0;
    if (fstatat(from, target, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        r = err_set(err, ERR_PARSE, "%.200s is a hard link to what is not a file of the archive",
                    path);
    else if (fstatat(at, name, &old, AT_SYMLINK_NOFOLLOW) == 0 && old.st_ino == st.st_ino &&
             old.st_dev == st.st_dev)
        r = 0; /* itself, or there already */
    else if (tree_remove(at, name, err) < 0 || linkat(from, target, at, name, 0) < 0)
        r = err_sys(err, "%.200s", path);
    close(from);
    return r;
}

static int put_member(struct unpack *u, struct archive *a, struct archive_entry *e, int at,
                      const char *name, struct err *err)
{
    if (archive_entry_filetype(e) == AE_IFDIR && archive_entry_hardlink(e) == NULL)
        return put_directory(e, at, name, err);
    if (name[0] == '\0')
        return err_set(err, ERR_PARSE, "the archive's root is not a directory");
    if (archive_entry_hardlink(e))
        return put_link(u, e, at, name, err);
    switch (archive_entry_filetype(e)) {
    case AE_IFREG:
        return put_file(u, a, e, at, name, err);
    case AE_IFLNK:
        return put_symlink(e, at, name, err);
    default:
        u->done.special++;
        return 0;
    }
}

/* ---- passes ---- */

static int white_out(struct unpack *u, const char *path, struct err *err)
{
    char name[NAME_MAX + 1];
    int at = tree_parent(u->root, path, false, name, NULL);
    if (at < 0)
        return 0; /* what it hides is not there, or not where a link leads */
    int r;
    const char *hidden = name + sizeof WHITEOUT - 1;
    if (strcmp(name, OPAQUE) == 0)
        r = tree_empty(at, err);
    else if (hidden[0] == '\0' || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0)
        r = err_set(err, ERR_PARSE, "%.200s hides nothing that has a name", path);
    else
        r = tree_remove(at, hidden, err);
    close(at);
    return r;
}

static bool is_whiteout(const char *path)
{
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    return strncmp(path + n, WHITEOUT, sizeof WHITEOUT - 1) == 0;
}

static int take(struct unpack *u, struct archive *a, struct archive_entry *e, enum pass pass,
                struct err *err)
{
    char name[NAME_MAX + 1];
    const char *path = archive_entry_pathname(e);
    if (path == NULL || path[0] == '\0')
        return err_set(err, ERR_PARSE, "a member has no name, or one that is not UTF-8");
    bool white = pass != PASS_ALL && is_whiteout(path);
    if (pass == PASS_WHITEOUTS)
        return white ? white_out(u, path, err) : 0;
    if (white)
        return 0;
    if (budget_client_entry(u, err) < 0)
        return -1;
    int at = tree_parent(u->root, path, true, name, err);
    if (at < 0)
        return -1;
    int r = put_member(u, a, e, at, name, err);
    close(at);
    return r;
}

static int run(struct unpack *u, int fd, enum pass pass, struct err *err)
{
    struct archive_entry *e;
    struct archive *a = open_archive(fd, err);
    int r = a ? 0 : -1;
    while (r == 0) {
        int got = archive_read_next_header(a, &e);
        if (got == ARCHIVE_EOF)
            break;
        if (got != ARCHIVE_OK && got != ARCHIVE_WARN)
            r = archive_err(a, err);
        else
            r = take(u, a, e, pass, err);
    }
    if (a)
        archive_read_free(a);
    return r;
}

int unpack_stream(struct unpack *u, int fd, struct err *err)
{
    return run(u, fd, PASS_ALL, err);
}

int unpack_layer(struct unpack *u, int fd, struct err *err)
{
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_sys(err, "cannot rewind a layer");
    if (run(u, fd, PASS_WHITEOUTS, err) < 0)
        return -1;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_sys(err, "cannot rewind a layer");
    return run(u, fd, PASS_FILES, err);
}
