/* Carries a change of the CA out by single renames and unlinks and goes on from whatever a crash
 * has left. An old key is overwritten before it is removed. */
#include "rotation.h"

#include "compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY       "key.pem"
#define CERT      "cert.pem"
#define NEXT_KEY  "next-key.pem"
#define NEXT_CERT "next-cert.pem"
#define OLD_KEY   "old-key.pem"
#define PLAN      "rotation"
#define PLAN_NEW  ".rotation.new"

/* 1 there, 0 not, -1. *st may be NULL. */
static int look(int dir, const char *name, struct stat *st, struct err *err)
{
    struct stat own;
    if (fstatat(dir, name, st ? st : &own, AT_SYMLINK_NOFOLLOW) == 0)
        return 1;
    return errno == ENOENT ? 0 : err_sys(err, "%s of the CA", name);
}

static int sync_dir(int dir, struct err *err)
{
    return fsync(dir) < 0 ? err_sys(err, "the CA's directory") : 0;
}

static int move(int dir, const char *from, const char *to, struct err *err)
{
    return renameat(dir, from, dir, to) < 0 ? err_sys(err, "cannot rename %s to %s", from, to) : 0;
}

static int drop(int dir, const char *name, struct err *err)
{
    if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
        return err_sys(err, "cannot remove %s", name);
    return 0;
}

int rotation_read(int dir, struct rotation *ret, struct err *err)
{
    char text[128];
    int fd = openat(dir, PLAN, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), end = 0;
    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(err, "%s of the CA", PLAN);
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    close(fd);
    if (n < 0)
        return err_sys(err, "%s of the CA", PLAN);
    text[n] = 0;
    if (sscanf(text, "since %15" SCNd64 "\nuntil %15" SCNd64 "\n%n", &ret->since, &ret->until,
               &end) != 2 ||
        end != n || ret->since < 0 || ret->until < ret->since)
        return err_set(err, ERR_PARSE,
                       "the file %s beside the CA's certificate is damaged; remove it to give the "
                       "rotation up",
                       PLAN);
    return 1;
}

/* Over, or begun to be put in place: then only forward, whatever the clock says. */
static int is_over(int dir, int64_t now, struct err *err)
{
    struct rotation r;
    int planned = rotation_read(dir, &r, err);
    if (planned <= 0)
        return planned;
    int key = look(dir, NEXT_KEY, NULL, err), cert = look(dir, NEXT_CERT, NULL, err);
    if (key < 0 || cert < 0)
        return -1;
    return now >= r.until || !key || !cert;
}

int rotation_due(int dir, int64_t now, struct err *err)
{
    int over = is_over(dir, now, err), old = look(dir, OLD_KEY, NULL, err);
    return over < 0 || old < 0 ? -1 : over || old;
}

static int overwrite(int fd, off_t n)
{
    static const char zeros[4096];
    for (off_t at = 0; at < n;) {
        size_t some = n - at < (off_t)sizeof zeros ? (size_t)(n - at) : sizeof zeros;
        ssize_t w = pwrite(fd, zeros, some, at);
        if (w <= 0)
            return -1;
        at += w;
    }
    return fsync(fd);
}

/* Overwritten, then removed. A file system that never writes in place keeps the blocks until they
 * are used again: nothing here can change that. */
static int destroy_old(int dir, struct err *err)
{
    struct stat old, key;
    int there = look(dir, OLD_KEY, &old, err);
    if (there <= 0)
        return there;
    int in_use = look(dir, KEY, &key, err);
    if (in_use < 0)
        return -1;
    if (in_use && old.st_ino == key.st_ino && old.st_dev == key.st_dev)
        return drop(dir, OLD_KEY, err); /* a second name of the key that is in use */
    int fd = openat(dir, OLD_KEY, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return err_sys(err, "cannot open %s", OLD_KEY);
    int r = overwrite(fd, old.st_size) < 0 ? err_sys(err, "overwriting %s", OLD_KEY) : 0;
    close(fd);
    if (r == 0)
        r = drop(dir, OLD_KEY, err);
    return r < 0 ? -1 : sync_dir(dir, err);
}

/* The old key keeps a name until it is destroyed; its certificate is replaced in one step. */
static int put_in_place(int dir, struct err *err)
{
    int key = look(dir, NEXT_KEY, NULL, err);
    if (key < 0 || (key > 0 && destroy_old(dir, err) < 0))
        return -1;
    if (key > 0 && linkat(dir, KEY, dir, OLD_KEY, 0) < 0 && errno != ENOENT)
        return err_sys(err, "cannot link the old key");
    if (key > 0)
        key = move(dir, NEXT_KEY, KEY, err);
    int cert = key < 0 ? -1 : look(dir, NEXT_CERT, NULL, err);
    if (cert > 0)
        cert = move(dir, NEXT_CERT, CERT, err);
    if (cert < 0 || sync_dir(dir, err) < 0 || destroy_old(dir, err) < 0 || drop(dir, PLAN, err) < 0)
        return -1;
    return sync_dir(dir, err);
}

int rotation_settle(int dir, int64_t now, struct err *err)
{
    int over = is_over(dir, now, err);
    if (over < 0)
        return -1;
    return over ? put_in_place(dir, err) : destroy_old(dir, err);
}

/* A fresh file: what an attempt that was given up left has another inode. */
static int fresh(int dir, const char *name, mode_t mode, int *ret, struct err *err)
{
    if (drop(dir, name, err) < 0)
        return -1;
    *ret = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    return *ret < 0 ? err_sys(err, "cannot make %s", name) : 0;
}

int rotation_open_next(int dir, int *key_fd, int *cert_fd, struct err *err)
{
    struct stat st;
    static const char *const mine[] = {KEY, CERT};
    *key_fd = *cert_fd = -1;
    for (size_t i = 0; i < ARRAY_LEN(mine); i++) {
        int there = look(dir, mine[i], &st, err);
        if (there < 0)
            return -1;
        if (!there || !S_ISREG(st.st_mode))
            return err_set(err, ERR_DENIED,
                           "%s of the CA is not a regular file: replace it yourself", mine[i]);
    }
    if (fresh(dir, NEXT_KEY, 0600, key_fd, err) < 0)
        return -1;
    if (fresh(dir, NEXT_CERT, 0644, cert_fd, err) < 0) {
        close(*key_fd);
        *key_fd = -1;
        return -1;
    }
    return 0;
}

int rotation_commit(int dir, const struct rotation *r, struct err *err)
{
    char text[128];
    int n =
        snprintf(text, sizeof text, "since %" PRId64 "\nuntil %" PRId64 "\n", r->since, r->until);
    if (drop(dir, PLAN_NEW, err) < 0 || sync_dir(dir, err) < 0) /* the two new files first */
        return -1;
    int fd = openat(dir, PLAN_NEW, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_sys(err, "cannot make %s", PLAN_NEW);
    int bad = write(fd, text, (size_t)n) != n || fsync(fd) < 0;
    close(fd);
    if (bad)
        return err_sys(err, "writing %s", PLAN_NEW);
    return move(dir, PLAN_NEW, PLAN, err) < 0 ? -1 : sync_dir(dir, err);
}
