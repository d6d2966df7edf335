/* Events of the host come from a child that watches as durward-init does inside (controller/proto/
 * inside_watch.c), those of the sandbox from the API. Both are watched before anything is looked
 * at. */
#define _GNU_SOURCE 1
#include "sync_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec_session.h"
#include "inside.h"
#include "sync_name.h"

enum {
    CHUNK = 64 * 1024,
    LINES_MAX = 256 * 1024,
    RETRY_MS = 1000,
    RENEW_MS = 20,
    POLL_MS = 5000,
    ONCE_RETURNS = 10
};

struct loop {
    struct sync *e;
    pid_t child;
    int here, inside; /* what they say; -1: not watched */
    struct buf from_here, from_inside;
    bool polled; /* more directories than are watched: all is walked now and then */
    bool renew;  /* other names are ignored now: it is watched anew */
    bool waited_said;
    unsigned returns; /* of --once: how often the sandbox did not answer */
    int64_t poll_due;
};

/* ---- the host ---- */

static int ignored_names(const struct sync *e, struct strlist *l)
{
    return sync_ignore_names(&e->ignore, INSIDE_SKIPPED, l);
}

static void be_the_child(const struct sync *e, const struct strlist *skip, int out, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGINT, SIG_IGN); /* the parent ends it */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    _exit(inside_watch(e->here.path, skip->v, (unsigned)skip->n, out));
}

/* 0: it goes on; -1: it ended. */
static int read_more(int fd, struct buf *in)
{
    unsigned char *to = buf_reserve(in, CHUNK);
    ssize_t n = to ? read(fd, to, CHUNK) : -1;
    if (n < 0 && to && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n <= 0)
        return -1;
    buf_commit(in, (size_t)n);
    return 0;
}

static int watch_here(struct loop *l)
{
    struct strlist skip = {0};
    int p[2];
    if (ignored_names(l->e, &skip) < 0 || pipe2(p, O_CLOEXEC) < 0) {
        strlist_done(&skip);
        return err_sys(&l->e->err, "pipe");
    }
    pid_t parent = getpid();
    l->child = fork();
    if (l->child == 0) {
        close(p[0]);
        be_the_child(l->e, &skip, p[1], parent);
    }
    close(p[1]);
    strlist_done(&skip);
    if (l->child < 0) {
        close(p[0]);
        return err_sys(&l->e->err, "fork");
    }
    l->here = p[0];
    /* its first word: from then on nothing is missed */
    while (memchr(buf_data(&l->from_here), 0, buf_len(&l->from_here)) == NULL)
        if (read_more(l->here, &l->from_here) < 0)
            return err_set(&l->e->err, ERR_UNREADY, "%s cannot be watched", l->e->here.path);
    return 0;
}

static void unwatch_here(struct loop *l)
{
    if (l->here >= 0)
        close(l->here);
    if (l->child > 0) {
        kill(l->child, SIGKILL);
        while (waitpid(l->child, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    l->here = -1;
    l->child = -1;
    buf_clear(&l->from_here);
}

static void missed(struct loop *l, bool folders)
{
    l->polled = l->polled || folders;
    sync_touch_all(l->e);
}

/* "KIND DIR NAME" */
static void take_here(struct loop *l, const char *entry)
{
    const char *path = strlen(entry) > 4 ? entry + 4 : "";
    switch ((enum inside_event)entry[0]) {
    case INSIDE_READY:
        break;
    case INSIDE_MISSED_EVENTS:
    case INSIDE_MISSED_FOLDERS:
        missed(l, entry[0] == INSIDE_MISSED_FOLDERS);
        break;
    case INSIDE_CREATED:
    case INSIDE_MODIFIED:
    case INSIDE_ATTRIBUTES:
    case INSIDE_DELETED:
        l->renew = l->renew || strcmp(path, SYNC_IGNORE_FILE) == 0;
        if (entry[2] != '1' || entry[0] == INSIDE_CREATED || entry[0] == INSIDE_DELETED)
            sync_touch(l->e, path, entry[2] == '1');
        break;
    }
}

static int on_here(struct loop *l)
{
    const char *end;
    if (read_more(l->here, &l->from_here) < 0)
        return err_set(&l->e->err, ERR_UNREADY, "%s is not there any more, or cannot be watched",
                       l->e->here.path);
    while ((end = memchr(buf_data(&l->from_here), 0, buf_len(&l->from_here))) != NULL) {
        const char *entry = (const char *)buf_data(&l->from_here);
        take_here(l, entry);
        buf_drain(&l->from_here, (size_t)(end - entry) + 1);
    }
    return 0;
}

/* ---- the sandbox ---- */

static void unwatch_inside(struct loop *l)
{
    if (l->inside >= 0)
        close(l->inside);
    l->inside = -1;
    buf_free(&l->from_inside);
}

static int watch_inside(struct loop *l, struct err *err)
{
    struct strlist skip = {0};
    char path[128];
    json_t *names = json_array(), *body;
    if (ignored_names(l->e, &skip) < 0)
        json_array_clear(names); /* too long a list: they are watched for nothing */
    for (size_t i = 0; i < skip.n; i++)
        json_array_append_new(names, json_string(skip.v[i]));
    strlist_done(&skip);
    body = json_pack("{s:s, s:o}", "path", l->e->inside.path, "skip", names);
    snprintf(path, sizeof path, "/v1/sandboxes/%s/files/watch", l->e->inside.id);
    unwatch_inside(l);
    l->inside =
        exec_upgrade(l->e->inside.socket, path, "durward-watch", body, &l->from_inside, err);
    json_decref(body);
    if (l->inside < 0)
        return -1;
    /* what came with the answer's head */
    struct buf more;
    buf_init(&more, LINES_MAX);
    int bad = buf_append(&more, buf_data(&l->from_inside), buf_len(&l->from_inside));
    buf_free(&l->from_inside);
    l->from_inside = more;
    return bad ? err_set(err, ERR_LIMIT, "the daemon says too much") : 0;
}

/* One line. 1: it ended since the directory is gone. */
static int take_inside(struct loop *l, const char *line)
{
    json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    const char *type = out_member(o, "type"), *path = out_member(o, "path");
    bool folder = json_is_true(json_object_get(o, "directory"));
    int r = 0;
    if (strcmp(type, "overflow") == 0)
        missed(l, strcmp(out_member(o, "reason"), "directories") == 0);
    else if (strcmp(type, "end") == 0)
        r = strcmp(out_member(o, "code"), "file_not_found") == 0;
    else if (*path && strcmp(out_member(o, "encoding"), "utf-8") == 0 &&
             (!folder || strcmp(type, "created") == 0 || strcmp(type, "deleted") == 0))
        sync_touch(l->e, path, folder);
    json_decref(o);
    return r;
}

static int on_inside(struct loop *l)
{
    ssize_t end;
    bool over = read_more(l->inside, &l->from_inside) < 0;
    while ((end = slice_find(buf_slice(&l->from_inside), '\n')) >= 0) {
        char *line = (char *)buf_data(&l->from_inside);
        line[end] = '\0';
        if (take_inside(l, line))
            return err_set(&l->e->err, ERR_UNREADY, "the directory inside is gone");
        buf_drain(&l->from_inside, (size_t)end + 1);
    }
    if (over)
        l->e->gone = true;
    return 0;
}

/* A sandbox that sleeps is not woken: whoever stopped it meant it. */
static int come_back(struct loop *l)
{
    struct sync *e = l->e;
    struct err err = {0};
    char state[32];
    unwatch_inside(l);
    if (e->wishes->once && ++l->returns > ONCE_RETURNS)
        return err_set(&e->err, ERR_UNREADY, "the sandbox does not answer");
    const char *is = sync_inside_state(&e->inside, state);
    if (is && *is == '\0')
        return err_set(&e->err, ERR_UNREADY, "the sandbox is not there any more");
    if (is && strcmp(is, "running") == 0 && watch_inside(l, &err) == 0) {
        e->gone = false;
        sync_touch_all(e);
        if (l->waited_said)
            sync_say_state(e, "back", "the sandbox answers again");
        l->waited_said = false;
        return 0;
    }
    if (!l->waited_said)
        sync_say_state(e, "waiting",
                       err.code ? err.text
                       : is     ? "the sandbox does not run: waiting until it does"
                                : "no daemon answers: waiting until one does");
    l->waited_said = true;
    return 0;
}

/* ---- both ---- */

static struct file_version ignore_version(const struct sync *e)
{
    struct stat st;
    return fstatat(e->here.root, SYNC_IGNORE_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0
               ? (struct file_version){0}
               : file_version_of(&st);
}

/* Other names are ignored, once nobody writes the file any more: until then nothing is carried. */
static int watch_anew(struct loop *l)
{
    struct file_version before = ignore_version(l->e);
    if (!file_version_still(&before))
        return 0;
    unwatch_here(l);
    if (sync_read_ignored(l->e) < 0 || watch_here(l) < 0)
        return -1;
    struct file_version after = ignore_version(l->e);
    l->renew = !file_version_same(&before, &after);
    l->e->gone = true; /* it is watched anew when it comes back */
    sync_touch_all(l->e);
    return 0;
}

static int wait_ms(const struct loop *l)
{
    int ms = l->renew ? RENEW_MS : l->e->gone ? RETRY_MS : sync_wait_ms(l->e);
    if (l->polled && (ms < 0 || ms > POLL_MS))
        ms = POLL_MS;
    return ms;
}

static int turn(struct loop *l)
{
    struct pollfd p[3] = {{.fd = l->here, .events = POLLIN},
                          {.fd = l->inside, .events = POLLIN},
                          {.fd = l->e->signals, .events = POLLIN}};
    if (poll(p, 3, wait_ms(l)) < 0 && errno != EINTR)
        return err_sys(&l->e->err, "poll");
    if (sync_is_stopped(l->e))
        return 0;
    if (p[0].revents && on_here(l) < 0)
        return -1;
    if (p[1].revents && l->inside >= 0 && on_inside(l) < 0)
        return -1;
    if (l->renew && watch_anew(l) < 0)
        return -1;
    if (l->e->gone && come_back(l) < 0)
        return -1;
    if (l->polled && sync_now_ms() >= l->poll_due) {
        l->poll_due = sync_now_ms() + POLL_MS;
        sync_touch_all(l->e);
    }
    if (!l->renew)
        sync_work(l->e);
    return l->e->broken ? -1 : 0;
}

/* Nothing is carried when all that was there is gone at one side: it is a mistake more often than
 * not. */
static int first_look(struct loop *l)
{
    struct sync *e = l->e;
    size_t known = sync_table_common(e->table);
    bool empty = (e->seen_here == 0 && e->wishes->direction != SYNC_OUT) ||
                 (e->seen_inside == 0 && e->wishes->direction != SYNC_IN);
    if (known > SYNC_MANY && empty && !e->wishes->allow_empty)
        return err_set(&e->err, ERR_DENIED,
                       "all %zu files are gone %s: if that is meant, say --allow-empty", known,
                       e->seen_here ? "inside" : "here");
    return 0;
}

static int work(struct loop *l)
{
    struct sync *e = l->e;
    bool first = true;
    int r = 0;
    sync_touch_all(e);
    e->scan_due = 1;
    while (r == 0 && !sync_is_stopped(e)) {
        if (first) {
            sync_walk_due(e);
            r = e->broken ? -1 : e->gone ? 0 : first_look(l);
            first = e->gone;
        }
        if (r == 0 && !first && sync_is_idle(e) && !e->gone) {
            if (e->wishes->once)
                return 0;
            if (!e->ready_said)
                sync_say_state(e, "ready", "both sides are the same; what changes is carried");
            e->ready_said = true;
        }
        if (r == 0)
            r = turn(l);
    }
    return r;
}

/* They are read where there is time for them: nothing is left half done. */
static int catch_signals(struct sync *e)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    signal(SIGIO, SIG_IGN); /* file_version.h */
    signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 ||
        (e->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC)) < 0)
        return err_sys(&e->err, "signalfd");
    return 0;
}

int sync_loop(struct sync *e)
{
    struct loop l = {.e = e, .child = -1, .here = -1, .inside = -1};
    buf_init(&l.from_here, LINES_MAX);
    buf_init(&l.from_inside, LINES_MAX);
    int r = catch_signals(e);
    l.renew = !e->wishes->once;
    while (r == 0 && l.renew && !sync_is_stopped(e)) {
        r = watch_anew(&l);
        if (r == 0 && l.renew)
            (void)poll(NULL, 0, RENEW_MS);
    }
    e->gone = false;
    if (r == 0 && !e->wishes->once)
        r = watch_inside(&l, &e->err);
    if (r == 0)
        r = work(&l);
    unwatch_here(&l);
    unwatch_inside(&l);
    buf_free(&l.from_here);
    return r;
}
