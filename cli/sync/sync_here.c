/* Opens each component without following links, writes beside and exchanges (lib/file_version.h),
 * and asks rootfs/mask.h which names hold credentials, as binds and copies do. */
#define _GNU_SOURCE 1
#include "sync_here.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "mask.h"
#include "sync_name.h"

enum { FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, TEMPORARY = 40 };
enum { CHUNK = 256 * 1024 };

/* The open folder that path lies in, and its own name in it; -1 with errno. */
static int open_above(const struct sync_here *h, const char *path, bool make, const char **name)
{
    char part[NAME_MAX + 1];
    int at = openat(h->root, ".", FOLDER);
    for (const char *end; at >= 0 && (end = strchr(path, '/')) != NULL; path = end + 1) {
        size_t n = (size_t)(end - path);
        if (n == 0 || n > NAME_MAX) {
            close(at);
            errno = EINVAL;
            return -1;
        }
        memcpy(part, path, n);
        part[n] = '\0';
        int next = openat(at, part, FOLDER);
        if (next < 0 && errno == ENOENT && make &&
            (mkdirat(at, part, 0777) == 0 || errno == EEXIST))
            next = openat(at, part, FOLDER);
        int e = errno;
        close(at);
        errno = e;
        at = next;
    }
    *name = path;
    return at;
}

static enum sync_end fail(const char *path, struct err *err)
{
    err_sys(err, "%.300s", path);
    return SYNC_BLOCKED;
}

/* ---- looking ---- */

static void describe(const struct stat *st, struct sync_side *ret)
{
    struct file_version v = file_version_of(st);
    ret->kind = S_ISREG(st->st_mode)   ? SYNC_KIND_FILE
                : S_ISDIR(st->st_mode) ? SYNC_KIND_FOLDER
                                       : SYNC_KIND_OTHER;
    ret->exec = st->st_mode & 0100;
    ret->size = (uint64_t)st->st_size;
    ret->still = file_version_still(&v);
    file_version_text(&v, ret->version);
}

enum sync_end sync_here_look(const struct sync_here *h, const char *path, struct sync_side *ret,
                             struct err *err)
{
    struct stat st;
    const char *name;
    *ret = (struct sync_side){.kind = SYNC_KIND_NONE};
    int at = open_above(h, path, false, &name);
    int e = at >= 0 && fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
    if (at >= 0)
        close(at);
    if (e == 0)
        describe(&st, ret);
    errno = e;
    /* below a file, or a link: it is not there */
    return e == 0 || e == ENOENT || e == ENOTDIR || e == ELOOP ? SYNC_DONE : fail(path, err);
}

static int hash(struct sync_side *s)
{
    return EVP_Digest(buf_data(&s->data), buf_len(&s->data), s->hash, NULL, EVP_sha256(), NULL) == 1
               ? 0
               : -1;
}

static int read_whole(int fd, struct sync_side *s)
{
    for (;;) {
        unsigned char *to = buf_reserve(&s->data, CHUNK);
        ssize_t n = to ? read(fd, to, CHUNK) : -1;
        if (n == 0)
            return hash(s);
        if (n < 0 && (to == NULL || errno != EINTR)) {
            errno = to ? errno : EFBIG;
            return -1;
        }
        if (n > 0)
            buf_commit(&s->data, (size_t)n);
    }
}

enum sync_end sync_here_load(const struct sync_here *h, const char *path, size_t max,
                             struct sync_side *s, struct err *err)
{
    struct stat before, after;
    const char *name;
    int at = open_above(h, path, false, &name);
    int fd =
        at < 0 ? -1 : openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int e = errno;
    if (at >= 0)
        close(at);
    errno = e;
    if (fd < 0)
        return e == ENOENT || e == ENOTDIR || e == ELOOP ? SYNC_MOVING : fail(path, err);
    buf_init(&s->data, max + CHUNK);
    s->loaded = true;
    int r = fstat(fd, &before) < 0 || !S_ISREG(before.st_mode) ? 1 : read_whole(fd, s);
    e = errno;
    bool same = r == 0 && fstat(fd, &after) == 0;
    if (same) {
        struct file_version x = file_version_of(&before), y = file_version_of(&after);
        char now[FILE_VERSION_TEXT];
        file_version_text(&y, now);
        same = file_version_same(&x, &y) && strcmp(now, s->version) == 0;
    }
    close(fd);
    errno = e;
    return r < 0 ? fail(path, err) : same ? SYNC_DONE : SYNC_MOVING;
}

/* ---- writing ---- */

static void temporary(char name[TEMPORARY], const char *what)
{
    uint64_t r = 0;
    if (getrandom(&r, sizeof r, 0) != sizeof r)
        r = (uint64_t)getpid(); /* O_EXCL keeps it from meeting another */
    snprintf(name, TEMPORARY, ".durward-%s-%016llx", what, (unsigned long long)r);
}

/* Two names, so that one that is left says what it is: a part of a new file, which nobody misses,
 * or a whole one, perhaps the former. */
static int write_beside(int at, const char *part, const char *whole, struct slice data, mode_t mode)
{
    int fd = openat(at, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return errno;
    int e = 0;
    for (size_t done = 0; e == 0 && done < data.n;) {
        ssize_t n = write(fd, data.p + done, data.n - done);
        e = n < 0 && errno != EINTR ? errno : 0;
        done += n > 0 ? (size_t)n : 0;
    }
    if (e == 0 && fdatasync(fd) < 0)
        e = errno;
    if (close(fd) < 0 && e == 0)
        e = errno;
    if (e == 0 && renameat2(at, part, at, whole, RENAME_NOREPLACE) < 0 &&
        (errno != EINVAL || renameat(at, part, at, whole) < 0))
        e = errno;
    if (e)
        (void)unlinkat(at, part, 0);
    return e;
}

/* A file that was there keeps who may read it; whether it can be run is the new one's. */
static mode_t mode_of(int at, const char *name, const struct sync_side *there, bool exec)
{
    struct stat st;
    if (there->kind != SYNC_KIND_FILE || fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return exec ? 0777 : 0666;
    mode_t mode = st.st_mode & 0666;
    return exec ? mode | (mode & 0444) >> 2 : mode;
}

static enum sync_end ended(int e, const char *path, struct err *err)
{
    errno = e;
    return e == 0 ? SYNC_DONE : e == ESTALE || e == ETXTBSY ? SYNC_MOVING : fail(path, err);
}

enum sync_end sync_here_write(const struct sync_here *h, const char *path,
                              const struct sync_side *there, struct slice data, bool exec,
                              struct sync_side *ret, struct err *err)
{
    char part[TEMPORARY], whole[TEMPORARY];
    struct file_version was;
    struct stat st;
    const char *name;
    bool file = there->kind == SYNC_KIND_FILE;
    if (file && file_version_read(there->version, &was) < 0)
        return SYNC_MOVING;
    int at = open_above(h, path, true, &name);
    if (at < 0)
        return fail(path, err);
    temporary(part, "part");
    temporary(whole, "sync");
    mode_t mode = mode_of(at, name, there, exec);
    int e = write_beside(at, part, whole, data, file ? 0600 : mode);
    if (e == 0 && file && fchmodat(at, whole, mode, 0) < 0)
        e = errno;
    if (e == 0)
        e = file_replace(at, whole, name, file ? &was : NULL);
    if (e == 0 && fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        describe(&st, ret);
    close(at);
    return ended(e, path, err);
}

enum sync_end sync_here_remove(const struct sync_here *h, const char *path,
                               const struct sync_side *there, struct err *err)
{
    char aside[TEMPORARY];
    struct file_version was;
    const char *name;
    if (file_version_read(there->version, &was) < 0)
        return SYNC_MOVING;
    int at = open_above(h, path, false, &name);
    if (at < 0)
        return fail(path, err);
    temporary(aside, "sync");
    int e = file_remove(at, name, aside, &was);
    close(at);
    return ended(e, path, err);
}

void sync_here_prune(const struct sync_here *h, const char *path,
                     bool (*gone)(void *arg, const char *folder), void *arg)
{
    char folder[SYNC_PATH];
    const char *name;
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash; (slash = strrchr(folder, '/')) != NULL;) {
        *slash = '\0';
        if (!gone(arg, folder))
            return;
        int at = open_above(h, folder, false, &name);
        int r = at < 0 ? -1 : unlinkat(at, name, AT_REMOVEDIR);
        if (at >= 0)
            close(at);
        if (r < 0)
            return; /* something is in it, or it is no folder */
    }
}

/* ---- walking ---- */

static void walk(const struct sync_walk *w, int fd, const char *path, unsigned depth);

static void walk_entry(const struct sync_walk *w, int at, const char *name, const char *path,
                       unsigned depth)
{
    struct sync_side s = {.kind = SYNC_KIND_NONE};
    struct stat st;
    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return; /* it has gone */
    describe(&st, &s);
    if (!w->enter(w->arg, path, s.kind == SYNC_KIND_FOLDER))
        return;
    if (s.kind != SYNC_KIND_FOLDER) {
        w->entry(w->arg, path, &s);
        return;
    }
    int fd = openat(at, name, FOLDER);
    if (fd >= 0)
        walk(w, fd, path, depth + 1);
    else
        w->unknown(w->arg, path, strerror(errno));
}

/* Takes fd over. */
static void walk(const struct sync_walk *w, int fd, const char *path, unsigned depth)
{
    char below[SYNC_PATH];
    DIR *d = depth > SYNC_DEPTH ? NULL : fdopendir(fd);
    if (d == NULL) {
        w->unknown(w->arg, path, depth > SYNC_DEPTH ? "it lies too deep" : strerror(errno));
        close(fd);
        return;
    }
    errno = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL; errno = 0) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (snprintf(below, sizeof below, "%s%s%s", path, *path ? "/" : "", e->d_name) <
            (int)sizeof below)
            walk_entry(w, dirfd(d), e->d_name, below, depth);
    }
    if (errno)
        w->unknown(w->arg, path, strerror(errno));
    closedir(d);
}

void sync_here_walk(const struct sync_here *h, const char *path, const struct sync_walk *w)
{
    const char *name = path;
    int at = open_above(h, path, false, &name);
    int fd = at < 0 ? -1 : openat(at, *name ? name : ".", FOLDER);
    int e = errno;
    if (at >= 0)
        close(at);
    if (fd >= 0)
        walk(w, fd, path, 0);
    else if (*path == '\0' || (e != ENOENT && e != ENOTDIR && e != ELOOP))
        w->unknown(w->arg, path, strerror(e));
}

/* ---- credentials ---- */

static int whole_path(const struct sync_here *h, const char *path, char to[2 * SYNC_PATH])
{
    return snprintf(to, 2 * SYNC_PATH, "%s/%s", h->path, path) < 2 * SYNC_PATH ? 0 : -1;
}

bool sync_here_secret_folder(const struct sync_here *h, const char *path)
{
    char whole[2 * SYNC_PATH];
    return whole_path(h, path, whole) < 0 || mask_match(whole, true) == MASK_YES;
}

/* A link with a credential's name that leads to this file beside it gives it away. */
static bool given_away(const struct sync_here *h, const char *path)
{
    char to[NAME_MAX + 1];
    const char *name, *known, *end = strrchr(path, '/');
    char whole[2 * SYNC_PATH];
    bool found = false;
    if (whole_path(h, path, whole) < 0)
        return true;
    *strrchr(whole, '/') = '\0';
    const char *parent = strrchr(whole, '/');
    parent = parent ? parent + 1 : whole;
    (void)end;
    int at = open_above(h, path, false, &name);
    for (size_t i = 0; at >= 0 && !found && (known = mask_link_name(i, parent, strlen(parent)));
         i++) {
        ssize_t n = readlinkat(at, known, to, sizeof to - 1);
        if (n <= 0)
            continue;
        to[n] = '\0';
        found = strcmp(to, name) == 0;
    }
    if (at >= 0)
        close(at);
    return found;
}

int sync_here_secret(const struct sync_here *h, const char *path)
{
    char whole[2 * SYNC_PATH];
    if (whole_path(h, path, whole) < 0)
        return 1;
    for (char *s = strchr(whole + strlen(h->path) + 1, '/'); s; s = strchr(s + 1, '/')) {
        *s = '\0';
        bool secret = mask_match(whole, true) == MASK_YES;
        *s = '/';
        if (secret)
            return 1;
    }
    enum mask_verdict v = mask_match(whole, false);
    if (v == MASK_YES || given_away(h, path))
        return 1;
    return v == MASK_IF_KEY ? 2 : 0;
}
