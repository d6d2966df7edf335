/* Waits for inotify and reads on in every directory of the log, at least once a second, for file
 * systems that report no changes. */
#include "audit_follow.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <stdio.h>
#include <unistd.h>

/* The time-out only matters where inotify says nothing (a network file system, watches used up). */
enum { LOOK_MS = 1000 };

static const uint32_t changes = IN_MODIFY | IN_CREATE | IN_MOVED_TO;

static void watch(int in, struct log_tree *t, struct log_tree_dir *d)
{
    char path[64 + LOG_NAME_MAX];
    if (d->watch >= 0)
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", t->fd, d->name);
    d->watch = inotify_add_watch(in, path, changes);
}

/* What happened is not asked: every directory is looked at. */
static int drain(int in)
{
    char events[4096];
    ssize_t n;
    while ((n = read(in, events, sizeof events)) > 0)
        ;
    return n < 0 && errno != EAGAIN && errno != EINTR ? -1 : 0;
}

static int look(int in, struct log_tree *t, log_tree_fn fn, void *arg, struct err *err)
{
    if (log_tree_refresh(t, err) < 0)
        return -1;
    for (size_t i = 0; i < t->n; i++)
        watch(in, t, t->dir[i]);
    for (size_t i = 0; i < t->n; i++)
        if (log_tree_read(t, t->dir[i], 0, fn, arg, err) < 0)
            return -1;
    return 0;
}

int audit_follow(struct log_tree *t, log_tree_fn fn, void *arg, int (*after)(void), struct err *err)
{
    int in = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), r;
    if (in < 0)
        return err_sys(err, "inotify");
    struct pollfd p = {.fd = in, .events = POLLIN};
    while ((r = look(in, t, fn, arg, err)) == 0 && after() == 0) {
        if (poll(&p, 1, LOOK_MS) < 0 && errno != EINTR) {
            r = err_sys(err, "poll");
            break;
        }
        if (drain(in) < 0) {
            r = err_sys(err, "inotify");
            break;
        }
    }
    close(in);
    return r;
}
