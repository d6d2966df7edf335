/* Watches directories with inotify and compares the stat of each file there after an event, so that
 * only a change of that file is told. */
#include "store_watch.h"

#include <event2/event.h>
#include <limits.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

/* Not IN_MODIFY: what is still being written is not worth a look. A link that changes its target
 * (Kubernetes' ..data) is moved into place. */
enum {
    EVENTS = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ATTRIB |
             IN_DELETE_SELF | IN_MOVE_SELF
};

struct watched {
    char *secret, *path;
    int at[2]; /* watches: of the path's directory, of the real file's; -1: none */
    bool there;
    struct stat last;
    LIST_ENTRY(watched) link;
};

struct store_watch {
    int fd;
    struct event *readable;
    store_watch_fn fn;
    void *arg;
    LIST_HEAD(, watched) list;
};

/* What tells one content from another, the file being followed to its end. */
static bool same(const struct watched *f, bool there, const struct stat *now)
{
    const struct stat *was = &f->last;
    if (!there || !f->there)
        return there == f->there;
    return was->st_dev == now->st_dev && was->st_ino == now->st_ino &&
           was->st_size == now->st_size && was->st_mtim.tv_sec == now->st_mtim.tv_sec &&
           was->st_mtim.tv_nsec == now->st_mtim.tv_nsec &&
           was->st_ctim.tv_sec == now->st_ctim.tv_sec &&
           was->st_ctim.tv_nsec == now->st_ctim.tv_nsec;
}

static int watch_folder_of(const struct store_watch *w, const char *path)
{
    char folder[PATH_MAX];
    const char *slash = path ? strrchr(path, '/') : NULL;
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (slash == NULL || n >= sizeof folder)
        return -1;
    memcpy(folder, path, n);
    folder[n] = 0;
    return inotify_add_watch(w->fd, n ? folder : "/", EVENTS | IN_ONLYDIR);
}

/* The kernel gives one watch for a directory, however many files of it are watched. */
static void unwatch(struct store_watch *w, int at)
{
    struct watched *f;
    LIST_FOREACH(f, &w->list, link)
    if (f->at[0] == at || f->at[1] == at)
        return;
    if (at >= 0)
        inotify_rm_watch(w->fd, at);
}

/* Watch first and look then: what comes in between is looked at twice. */
static void look(struct store_watch *w, struct watched *f)
{
    char *real = realpath(f->path, NULL);
    int before[2] = {f->at[0], f->at[1]};
    f->at[0] = watch_folder_of(w, f->path);
    f->at[1] = real && strcmp(real, f->path) != 0 ? watch_folder_of(w, real) : -1;
    free(real);
    unwatch(w, before[0]);
    unwatch(w, before[1]);
    f->there = stat(f->path, &f->last) == 0;
}

static void check(struct store_watch *w, struct watched *f)
{
    struct stat now;
    if (same(f, stat(f->path, &now) == 0, &now))
        return;
    look(w, f);
    w->fn(w->arg, f->secret);
}

/* All files of the directories that something happened in; of all when events were lost. */
static void on_readable(evutil_socket_t fd, short what UNUSED, void *arg)
{
    struct store_watch *w = arg;
    alignas(struct inotify_event) char text[4096];
    ssize_t n;
    struct watched *f;
    while ((n = read(fd, text, sizeof text)) > 0) {
        const struct inotify_event *e;
        for (const char *p = text; p < text + n; p += sizeof *e + e->len) {
            e = (const struct inotify_event *)(const void *)p;
            LIST_FOREACH(f, &w->list, link)
            {
                bool here = e->wd >= 0 && (e->wd == f->at[0] || e->wd == f->at[1]);
                if (here && (e->mask & IN_IGNORED)) /* that directory is gone */
                    f->at[e->wd == f->at[0] ? 0 : 1] = -1;
                if (here || (e->mask & IN_Q_OVERFLOW))
                    check(w, f);
            }
        }
    }
}

struct store_watch *store_watch_new(struct event_base *base, store_watch_fn fn, void *arg)
{
    struct store_watch *w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    LIST_INIT(&w->list);
    w->fn = fn;
    w->arg = arg;
    w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (w->fd >= 0)
        w->readable = event_new(base, w->fd, EV_READ | EV_PERSIST, on_readable, w);
    if (w->readable == NULL || event_add(w->readable, NULL) < 0) {
        store_watch_free(w);
        return NULL;
    }
    return w;
}

static void forget(struct watched *f)
{
    LIST_REMOVE(f, link);
    free(f->secret);
    free(f->path);
    free(f);
}

void store_watch_free(struct store_watch *w)
{
    if (w == NULL)
        return;
    while (!LIST_EMPTY(&w->list))
        forget(LIST_FIRST(&w->list));
    if (w->readable)
        event_free(w->readable);
    if (w->fd >= 0)
        close(w->fd);
    free(w);
}

static struct watched *watched_of(struct store_watch *w, const char *secret)
{
    struct watched *f;
    LIST_FOREACH(f, &w->list, link)
    if (strcmp(f->secret, secret) == 0)
        return f;
    f = calloc(1, sizeof *f);
    if (f == NULL || (f->secret = strdup(secret)) == NULL) {
        free(f);
        return NULL;
    }
    f->at[0] = f->at[1] = -1;
    LIST_INSERT_HEAD(&w->list, f, link);
    return f;
}

void store_watch_add(struct store_watch *w, const char *secret, const char *path)
{
    struct watched *f = watched_of(w, secret);
    char *copy = f ? strdup(path) : NULL;
    if (copy == NULL)
        return;
    free(f->path);
    f->path = copy;
    look(w, f);
}
