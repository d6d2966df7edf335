/* Keeps the copies in a table under one lock, which a write to such a file takes too, and compares
 * a file with its copy before the copy is trusted. */
#define _GNU_SOURCE 1
#include "view_own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void own_init(struct owns *o)
{
    memset(o, 0, sizeof *o);
    pthread_mutex_init(&o->lock, NULL);
}

/* A number that is given to another file later comes with another time of birth. */
static bool identify(int fd, struct own *ret)
{
    struct statx x;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &x) < 0 ||
        (x.stx_mask & STATX_BTIME) == 0)
        return false;
    *ret = (struct own){.dev = (uint64_t)x.stx_dev_major << 32 | x.stx_dev_minor,
                        .ino = x.stx_ino,
                        .born_s = x.stx_btime.tv_sec,
                        .born_ns = x.stx_btime.tv_nsec};
    return true;
}

static struct own *find(struct owns *o, int fd)
{
    struct own id;
    if (o->n == 0 || !identify(fd, &id))
        return NULL;
    for (size_t i = 0; i < o->n; i++) {
        struct own *w = &o->at[i];
        if (w->state != OWN_NOT && w->ino == id.ino && w->dev == id.dev && w->born_s == id.born_s &&
            w->born_ns == id.born_ns)
            return w;
    }
    return NULL;
}

/* From here on its name and its content say what it is; or, spoiled, nothing does. */
static void forget(struct own *w, enum own_state state)
{
    free(w->bytes);
    w->bytes = NULL;
    w->n = 0;
    w->state = state;
}

/* Room for n bytes in all; what is new is zero, as in a file. */
static bool grow(struct own *w, size_t n)
{
    if (n <= w->n)
        return true;
    unsigned char *p = n > OWN_BYTES_MAX ? NULL : realloc(w->bytes, n);
    if (p == NULL)
        return false;
    memset(p + w->n, 0, n - w->n);
    w->bytes = p;
    w->n = n;
    return true;
}

static void follow(struct own *w, const void *from, size_t n, off_t at)
{
    if (w == NULL || w->state != OWN_HELD || n == 0)
        return;
    if (at < 0 || at > OWN_BYTES_MAX || n > OWN_BYTES_MAX - (size_t)at ||
        !grow(w, (size_t)at + n)) {
        forget(w, OWN_NOT);
        return;
    }
    memcpy(w->bytes + at, from, n);
}

static struct own *slot(struct owns *o)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->at[i].state == OWN_NOT)
            return &o->at[i];
    return o->n < OWN_FILES_MAX ? &o->at[o->n++] : NULL;
}

/* The whole content, which must be short. */
static bool take(struct own *w, int from)
{
    struct stat st;
    if (fstat(from, &st) < 0 || st.st_size > OWN_BYTES_MAX || !grow(w, (size_t)st.st_size))
        return false;
    return w->n == 0 || pread(from, w->bytes, w->n, 0) == (ssize_t)w->n;
}

int own_add(struct owns *o, int fd, int from, enum own_state state)
{
    struct own id;
    if (!identify(fd, &id))
        return -1;
    pthread_mutex_lock(&o->lock);
    struct own *w = find(o, fd);
    bool had = w != NULL;
    if (!had && (w = slot(o)) != NULL)
        *w = id;
    if (w && (!had || state == OWN_SPOILED)) {
        w->state = state;
        if (state == OWN_SPOILED || (from >= 0 && !take(w, from)))
            forget(w, state == OWN_SPOILED ? OWN_SPOILED : OWN_NOT);
    }
    pthread_mutex_unlock(&o->lock);
    return w ? 0 : -1;
}

enum own_state own_state(struct owns *o, int fd)
{
    pthread_mutex_lock(&o->lock);
    struct own *w = find(o, fd);
    enum own_state s = w ? w->state : OWN_NOT;
    pthread_mutex_unlock(&o->lock);
    return s;
}

static bool same(const struct own *w, int fd)
{
    static unsigned char now[OWN_BYTES_MAX + 1]; /* under the lock */
    ssize_t n = pread(fd, now, sizeof now, 0);
    return n >= 0 && (size_t)n == w->n && (n == 0 || memcmp(now, w->bytes, w->n) == 0);
}

enum own_state own_compare(struct owns *o, int fd)
{
    pthread_mutex_lock(&o->lock);
    struct own *w = find(o, fd);
    if (w && w->state == OWN_HELD && !same(w, fd))
        forget(w, OWN_NOT);
    enum own_state s = w ? w->state : OWN_NOT;
    pthread_mutex_unlock(&o->lock);
    return s;
}

ssize_t own_read(struct owns *o, int fd, void *to, size_t n, off_t at)
{
    ssize_t r = -1;
    pthread_mutex_lock(&o->lock);
    struct own *w = find(o, fd);
    if (w && w->state == OWN_HELD && at >= 0) {
        size_t from = (uint64_t)at < w->n ? (size_t)at : w->n;
        r = (ssize_t)(n < w->n - from ? n : w->n - from);
        if (r > 0)
            memcpy(to, w->bytes + from, (size_t)r);
    }
    pthread_mutex_unlock(&o->lock);
    return r;
}

/* Under the lock where a copy is kept, so that the two agree. */
ssize_t own_write(struct owns *o, int fd, const void *from, size_t n, off_t at)
{
    pthread_mutex_lock(&o->lock);
    struct own *w = find(o, fd);
    if (w == NULL) {
        pthread_mutex_unlock(&o->lock);
        return pwrite(fd, from, n, at);
    }
    ssize_t r = pwrite(fd, from, n, at);
    int why = errno;
    follow(w, from, r > 0 ? (size_t)r : 0, at);
    pthread_mutex_unlock(&o->lock);
    errno = why;
    return r;
}

int own_cut(struct owns *o, int fd, off_t n)
{
    pthread_mutex_lock(&o->lock);
    struct own *w = find(o, fd);
    int r = ftruncate(fd, n), why = errno;
    if (r == 0 && w && w->state == OWN_HELD) {
        if (n <= (off_t)w->n)
            w->n = (size_t)n;
        else if (n > OWN_BYTES_MAX || !grow(w, (size_t)n))
            forget(w, OWN_NOT);
    }
    pthread_mutex_unlock(&o->lock);
    errno = why;
    return r;
}

void own_drop(struct owns *o, int fd)
{
    pthread_mutex_lock(&o->lock);
    struct own *w = find(o, fd);
    if (w)
        forget(w, OWN_NOT);
    pthread_mutex_unlock(&o->lock);
}
