/* Exchanges two names and looks at what was there: a change between a look and the exchange is
 * noticed, and undone. A lease on the file shows who has it open for writing. */
#define _GNU_SOURCE 1
#include "file_version.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t ns_of(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

struct file_version file_version_of(const struct stat *st)
{
    return (struct file_version){st->st_ino, (uint64_t)st->st_size, ns_of(&st->st_mtim),
                                 ns_of(&st->st_ctim)};
}

/* A new name counts as a change of the inode, not of the bytes. */
static bool same_bytes(const struct file_version *a, const struct file_version *b)
{
    return a->ino == b->ino && a->size == b->size && a->modified == b->modified;
}

bool file_version_same(const struct file_version *a, const struct file_version *b)
{
    return same_bytes(a, b) && a->changed == b->changed;
}

/* A time that lies ahead is one of before the clock was set. */
bool file_version_still(const struct file_version *v)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t ago = ns_of(&now) - v->changed;
    return ago < -1000000000 || ago > FILE_VERSION_STILL_MS * INT64_C(1000000);
}

void file_version_text(const struct file_version *v, char to[FILE_VERSION_TEXT])
{
    snprintf(to, FILE_VERSION_TEXT, "%" PRIx64 ".%" PRIx64 ".%" PRIx64 ".%" PRIx64, v->ino, v->size,
             (uint64_t)v->modified, (uint64_t)v->changed);
}

static int read_hex(const char **at, uint64_t *ret)
{
    size_t n = strspn(*at, "0123456789abcdef");
    if (n == 0 || n > 16)
        return -1;
    for (*ret = 0; n > 0; n--, ++*at)
        *ret = *ret << 4 | (uint64_t)(**at <= '9' ? **at - '0' : **at - 'a' + 10);
    return 0;
}

int file_version_read(const char *text, struct file_version *ret)
{
    uint64_t v[4];
    for (int i = 0; i < 4; i++)
        if (read_hex(&text, &v[i]) < 0 || *text != (i < 3 ? '.' : '\0'))
            return -1;
        else
            text++;
    *ret = (struct file_version){v[0], v[1], (int64_t)v[2], (int64_t)v[3]};
    return 0;
}

/* ---- changing it ---- */

struct hold {
    int fd;
    bool leased;
};

/* Opens it, and takes a lease where there is such a thing: a file system without is no error. */
static int hold_file(int dir, const char *name, const struct file_version *was, struct hold *h)
{
    struct stat st;
    *h = (struct hold){openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), false};
    if (h->fd < 0)
        return errno == ENOENT || errno == ELOOP || errno == ENXIO ? ESTALE : errno;
    h->leased = fcntl(h->fd, F_SETLEASE, F_RDLCK) == 0;
    if (!h->leased && errno == EAGAIN)
        return ETXTBSY;
    if (fstat(h->fd, &st) < 0)
        return errno;
    struct file_version now = file_version_of(&st);
    return S_ISREG(st.st_mode) && file_version_same(&now, was) ? 0 : ESTALE;
}

/* What lies there is what was held, untouched, and nobody waits to write to it. */
static int look_again(int dir, const char *name, const struct file_version *was,
                      const struct hold *h)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno;
    struct file_version now = file_version_of(&st);
    if (!S_ISREG(st.st_mode) || !same_bytes(&now, was))
        return ESTALE;
    return h->leased && fcntl(h->fd, F_GETLEASE) != F_RDLCK ? ETXTBSY : 0;
}

static void let_go(struct hold *h)
{
    if (h->fd >= 0)
        close(h->fd);
}

/* To a name that is free; EEXIST where it is not. */
static int rename_new(int dir, const char *from, const char *to)
{
    if (renameat2(dir, from, dir, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL)
        return errno;
    /* a file system that knows no such renaming */
    return linkat(dir, from, dir, to, 0) < 0 || unlinkat(dir, from, 0) < 0 ? errno : 0;
}

/* 0 or an errno; *back is set when both have their former names again. */
static int exchange(int dir, const char *beside, const char *name, const struct file_version *was,
                    const struct hold *h, bool *back)
{
    *back = true;
    if (renameat2(dir, beside, dir, name, RENAME_EXCHANGE) < 0) {
        if (errno != EINVAL)
            return errno == ENOENT ? ESTALE : errno;
        int e = look_again(dir, name, was, h);
        return e ? e : renameat(dir, beside, dir, name) < 0 ? errno : 0;
    }
    int e = look_again(dir, beside, was, h);
    if (e)
        *back = renameat2(dir, beside, dir, name, RENAME_EXCHANGE) == 0;
    return e;
}

int file_replace(int dir, const char *beside, const char *name, const struct file_version *was)
{
    struct hold h;
    bool back = true;
    int e;
    if (was == NULL) {
        e = rename_new(dir, beside, name);
        e = e == EEXIST ? ESTALE : e;
    } else {
        e = hold_file(dir, name, was, &h);
        if (e == 0)
            e = exchange(dir, beside, name, was, &h, &back);
    }
    if (back)
        (void)unlinkat(dir, beside,
                       0); /* ours, or what was replaced; gone where it took its place */
    if (was)
        let_go(&h);
    return e;
}

int file_remove(int dir, const char *name, const char *aside, const struct file_version *was)
{
    struct hold h;
    int e = hold_file(dir, name, was, &h);
    if (e == 0)
        e = rename_new(dir, name, aside);
    if (e == 0) {
        e = look_again(dir, aside, was, &h);
        if (e)
            (void)rename_new(dir, aside, name); /* else both are there */
        else if (unlinkat(dir, aside, 0) < 0)
            e = errno;
    }
    let_go(&h);
    return e;
}
