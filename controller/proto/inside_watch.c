/* Tells what happens below a directory, by inotify, in a child of durward-init. Directories are
 * opened name by name and links never followed. What can be known is bounded: directories by
 * INSIDE_WATCHED, events by the kernel's queue, which fills while nobody takes what is told. */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"

enum {
    MASK = IN_CREATE | IN_DELETE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM |
           IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK,
    BATCH = 64 * 1024,
    TOLD = 64 * 1024,
    TELL_MAX = INSIDE_PATH + 8,
    LOOK_MS = 1000, /* how often it is looked whether the root is still there */
    PENDING = -1,   /* of a folder: it is not watched yet */
};

struct folder {
    int wd;
    bool announce; /* what is found in it is told of as created */
    char *path;    /* below the root; "" of the root itself */
};

struct watch {
    const char *path;
    int root, in, out;
    char *const *skip;
    unsigned n_skip, n;
    struct folder folders[INSIDE_WATCHED];
    bool full; /* there are more directories, which was told */
    char told[TOLD];
    size_t n_told, last; /* last: where the last entry begins */
};

/* ---- what is told ---- */

static int flush(struct watch *w)
{
    for (size_t at = 0; at < w->n_told;) {
        ssize_t n = write(w->out, w->told + at, w->n_told - at);
        if (n < 0 && errno != EINTR)
            return -1;
        at += n > 0 ? (size_t)n : 0;
    }
    w->n_told = w->last = 0;
    return 0;
}

/* The same thing again, with nothing between, is told once. */
static int tell(struct watch *w, enum inside_event kind, bool dir, const char *path)
{
    char entry[TELL_MAX];
    int n = snprintf(entry, sizeof entry, "%c %d %s", kind, dir, path);
    size_t size = (size_t)n + 1;
    if (w->n_told - w->last == size && memcmp(w->told + w->last, entry, size) == 0)
        return 0;
    if (w->n_told + size > sizeof w->told && flush(w) < 0)
        return -1;
    memcpy(w->told + w->n_told, entry, size);
    w->last = w->n_told;
    w->n_told += size;
    return 0;
}

/* ---- directories ---- */

static bool skipped(const struct watch *w, const char *name)
{
    for (unsigned i = 0; i < w->n_skip; i++)
        if (strcmp(w->skip[i], name) == 0)
            return true;
    return false;
}

/* false: it is longer than a path may be. */
static bool join(char to[INSIDE_PATH], const char *dir, const char *name)
{
    return snprintf(to, INSIDE_PATH, "%s%s%s", dir, *dir ? "/" : "", name) < INSIDE_PATH;
}

/* No component may be a link. */
static int open_below(int root, const char *path)
{
    char name[NAME_MAX + 1];
    int at = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* read from its beginning */
    while (at >= 0 && *path) {
        size_t n = strcspn(path, "/");
        if (n == 0 || n >= sizeof name) {
            close(at);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, path, n);
        name[n] = '\0';
        int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        close(at);
        at = next;
        path += n + (path[n] == '/');
    }
    return at;
}

static int add(struct watch *w, const char *path, bool announce)
{
    char *own = w->n < INSIDE_WATCHED ? strdup(path) : NULL;
    if (own) {
        w->folders[w->n++] = (struct folder){PENDING, announce, own};
        return 0;
    }
    if (w->full)
        return 0;
    w->full = true;
    return tell(w, INSIDE_MISSED_FOLDERS, false, "");
}

static void forget(struct watch *w, unsigned i)
{
    free(w->folders[i].path);
    w->folders[i] = w->folders[--w->n];
}

/* The directory and all below it. */
static void forget_tree(struct watch *w, const char *path)
{
    size_t n = strlen(path);
    for (unsigned i = 0; i < w->n;)
        if (strncmp(w->folders[i].path, path, n) == 0 &&
            (w->folders[i].path[n] == '/' || w->folders[i].path[n] == '\0')) {
            if (w->folders[i].wd != PENDING)
                (void)inotify_rm_watch(w->in, w->folders[i].wd); /* it may be gone already */
            forget(w, i);
        } else {
            i++;
        }
}

static bool is_dir(int at, const struct dirent *e)
{
    struct stat st;
    if (e->d_type != DT_UNKNOWN)
        return e->d_type == DT_DIR;
    return fstatat(at, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* What lies in it; its directories are to be watched too. Takes over fd. */
static int scan(struct watch *w, int fd, const char *dir, bool announce)
{
    char path[INSIDE_PATH];
    int bad = 0;
    DIR *d = fdopendir(fd);
    if (d == NULL) {
        close(fd);
        return 0;
    }
    for (struct dirent *e; bad == 0 && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || skipped(w, e->d_name) ||
            !join(path, dir, e->d_name))
            continue;
        bool folder = is_dir(fd, e);
        if (announce)
            bad = tell(w, INSIDE_CREATED, folder, path);
        if (folder && bad == 0)
            bad = add(w, path, announce);
    }
    closedir(d);
    return bad;
}

/* One that is pending: watched first, then looked into, so that nothing falls between. 1: it cannot
 * be watched, and is forgotten. */
static int settle_one(struct watch *w, unsigned i)
{
    char path[INSIDE_PATH];
    bool announce = w->folders[i].announce;
    snprintf(path, sizeof path, "%s", w->folders[i].path);
    int fd = open_below(w->root, path);
    int wd = fd >= 0 && fchdir(fd) == 0 ? inotify_add_watch(w->in, ".", MASK) : -1;
    if (wd < 0) {
        bool full = fd >= 0 && errno == ENOSPC && !w->full;
        if (fd >= 0)
            close(fd);
        forget(w, i);
        w->full = w->full || full;
        return full && tell(w, INSIDE_MISSED_FOLDERS, false, "") < 0 ? -1 : 1;
    }
    for (unsigned k = 0; k < w->n; k++) /* moved meanwhile: known by its newer name */
        if (k != i && w->folders[k].wd == wd)
            w->folders[k].wd = PENDING;
    w->folders[i].wd = wd;
    return scan(w, fd, path, announce);
}

static int settle(struct watch *w)
{
    for (unsigned i = 0; i < w->n;) {
        int r = w->folders[i].wd == PENDING ? settle_one(w, i) : 0;
        if (r < 0)
            return -1;
        i += r == 0;
    }
    return 0;
}

/* From nothing. */
static int watch_all(struct watch *w)
{
    while (w->n)
        forget(w, w->n - 1);
    w->full = false;
    if (w->in >= 0)
        close(w->in);
    w->in = inotify_init1(IN_CLOEXEC);
    if (w->in < 0 || add(w, "", false) < 0)
        return -1;
    return settle(w);
}

/* ---- events ---- */

static struct folder *folder_of(struct watch *w, int wd)
{
    for (unsigned i = 0; i < w->n; i++)
        if (w->folders[i].wd == wd)
            return &w->folders[i];
    return NULL;
}

static int on_named(struct watch *w, const struct folder *f, const struct inotify_event *e)
{
    char path[INSIDE_PATH];
    bool dir = e->mask & IN_ISDIR;
    if (skipped(w, e->name))
        return 0;
    if (!join(path, f->path, e->name))
        return tell(w, INSIDE_MISSED_EVENTS, false, "");
    if (e->mask & (IN_CREATE | IN_MOVED_TO))
        return tell(w, INSIDE_CREATED, dir, path) < 0 || (dir && add(w, path, true) < 0) ? -1 : 0;
    if (e->mask & (IN_DELETE | IN_MOVED_FROM)) {
        if (dir)
            forget_tree(w, path);
        return tell(w, INSIDE_DELETED, dir, path);
    }
    return tell(w, e->mask & IN_ATTRIB ? INSIDE_ATTRIBUTES : INSIDE_MODIFIED, dir, path);
}

/* 1: the root is gone; 2: events were lost. */
static int on_event(struct watch *w, const struct inotify_event *e)
{
    if (e->mask & IN_Q_OVERFLOW)
        return 2;
    struct folder *f = folder_of(w, e->wd);
    if (f == NULL)
        return 0;
    bool root = *f->path == '\0';
    if (e->mask & (IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF | IN_MOVE_SELF)) {
        if (!root && e->mask & IN_IGNORED)
            forget(w, (unsigned)(f - w->folders));
        return root;
    }
    return e->len ? on_named(w, f, e) : 0;
}

/* As on_event. */
static int take(struct watch *w)
{
    static _Alignas(struct inotify_event) char room[BATCH];
    ssize_t n = read(w->in, room, sizeof room);
    if (n < 0)
        return errno == EINTR ? 0 : -1;
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *e = (const struct inotify_event *)(const void *)(room + at);
        int r = on_event(w, e);
        if (r != 0)
            return r;
        at += (ssize_t)(sizeof *e + e->len);
    }
    return settle(w);
}

/* The kernel says nothing of a directory that somebody has open, as we have the root. */
static bool root_is_gone(const struct watch *w)
{
    struct stat a, b;
    return fstat(w->root, &a) < 0 || stat(w->path, &b) < 0 || a.st_dev != b.st_dev ||
           a.st_ino != b.st_ino;
}

/* 1: the root is gone; -1 with errno: nobody listens, or it cannot be watched. */
static int follow(struct watch *w)
{
    for (;;) {
        struct pollfd p[2] = {{.fd = w->in, .events = POLLIN}, {.fd = w->out}};
        int n = poll(p, 2, LOOK_MS);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n == 0 && root_is_gone(w))
            return 1;
        if (p[1].revents) {
            errno = EPIPE;
            return -1;
        }
        int r = p[0].revents ? take(w) : 0;
        if (r == 2 && (r = watch_all(w)) == 0) /* told when nothing is missed any more */
            r = tell(w, INSIDE_MISSED_EVENTS, false, "");
        if (r != 0)
            return r;
        if (flush(w) < 0)
            return -1;
    }
}

int inside_watch(const char *path, char *const *skip, unsigned n_skip, int fd)
{
    struct watch *w = calloc(1, sizeof *w);
    if (w == NULL)
        return ENOMEM;
    w->in = -1;
    w->path = path;
    w->out = fd;
    w->skip = skip;
    w->n_skip = n_skip;
    w->root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->root < 0)
        return errno;
    if (watch_all(w) < 0)
        return errno ? errno : EIO;
    if (w->n == 0) /* it can be opened, and not be watched */
        return w->full ? ENOSPC : EACCES;
    w->n_told = w->last = 0; /* its first word is that it is ready */
    if (tell(w, INSIDE_READY, false, "") < 0 ||
        (w->full && tell(w, INSIDE_MISSED_FOLDERS, false, "") < 0) || flush(w) < 0)
        return EPIPE;
    int r = follow(w);
    int e = r > 0 ? ENOENT : errno ? errno : EIO;
    (void)flush(w); /* what was told before is still of use */
    return e;
}
