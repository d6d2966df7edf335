/* Makes and removes the directories that are locks, touches them while they are held, and writes
 * what the vault got meanwhile. */
#define _GNU_SOURCE 1
#include "login_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <event2/event.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "login_file.h"
#include "secret_list.h"
#include "wire.h"

enum { TOUCH_SECONDS = 5, HELD_MAX_SECONDS = 60, NAMES = 4 };

struct held {
    struct login_locks *all;
    char secret[SECRET_NAME_MAX + 1];
    char *paths[NAMES]; /* in the order in which they were taken */
    size_t n;
    unsigned seconds;
    struct event *touch;
    LIST_ENTRY(held) link;
};

struct login_locks {
    struct event_base *base;
    unsigned n;
    LIST_HEAD(, held) list;
};

static void held_free(struct held *h)
{
    while (h->n > 0) { /* the last one first, as their program does */
        rmdir(h->paths[--h->n]);
        free(h->paths[h->n]);
    }
    if (h->touch)
        event_free(h->touch);
    LIST_REMOVE(h, link);
    h->all->n--;
    free(h);
}

/* Whoever looks at it sees by its time that it is held. */
static void on_touch(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct held *h = arg;
    h->seconds += TOUCH_SECONDS;
    if (h->seconds >= HELD_MAX_SECONDS) {
        held_free(h);
        return;
    }
    for (size_t i = 0; i < h->n; i++)
        utimensat(AT_FDCWD, h->paths[i], NULL, AT_SYMLINK_NOFOLLOW);
}

int login_lock_take(const char *path, struct err *err)
{
    struct stat st;
    if (mkdir(path, 0700) == 0)
        return 1;
    if (errno != EEXIST)
        return err_sys(err, "the lock %s", path);
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : err_sys(err, "the lock %s", path);
    if (time(NULL) - st.st_mtime < LOGIN_LOCK_SECONDS)
        return 0;
    /* its holder is dead; of two who take it away one makes it anew */
    return rmdir(path) == 0 && mkdir(path, 0700) == 0;
}

/* The i-th lock of a file; NULL past the end. malloc'd. */
static char *lock_path(const struct login_format *f, const char *file, size_t i)
{
    const char *name = login_lock(f, i), *slash = strrchr(file, '/');
    int folder = (int)(slash - file);
    char *path = NULL;
    int r = 0;
    if (name && strcmp(name, ".lock") == 0)
        r = asprintf(&path, "%.*s.lock", folder, file);
    else if (name)
        r = asprintf(&path, "%.*s/%s", folder, file, name);
    else if (i == 0)
        r = asprintf(&path, "%s.lock", file);
    if (r < 0)
        abort(); /* memory is out */
    return path;
}

static int take_all(struct held *h, const struct login_format *f, const char *file, struct err *err)
{
    char real[PATH_MAX], *path;
    if (realpath(file, real) == NULL)
        return err_sys(err, "%s", file);
    while (h->n < NAMES && (path = lock_path(f, real, h->n)) != NULL) {
        int r = login_lock_take(path, err);
        if (r <= 0) {
            free(path);
            return r;
        }
        h->paths[h->n++] = path;
    }
    return 1;
}

static struct held *held_new(struct login_locks *l, const char *secret)
{
    struct timeval tv = {TOUCH_SECONDS, 0};
    struct held *h = l->n < LOGIN_LOCKS_MAX ? calloc(1, sizeof *h) : NULL;
    if (h == NULL)
        return NULL;
    h->all = l;
    snprintf(h->secret, sizeof h->secret, "%s", secret);
    LIST_INSERT_HEAD(&l->list, h, link);
    l->n++;
    h->touch = event_new(l->base, -1, EV_PERSIST, on_touch, h);
    if (h->touch == NULL || event_add(h->touch, &tv) < 0) {
        held_free(h);
        return NULL;
    }
    return h;
}

static struct held *find(const struct login_locks *l, const char *secret)
{
    struct held *h;
    LIST_FOREACH(h, &l->list, link)
    if (strcmp(h->secret, secret) == 0)
        return h;
    return NULL;
}

/* A session of the configuration that is there now. */
static const struct config_secret *session_of(const struct config_secret *list, size_t n,
                                              const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].store == STORE_LOGIN && strcmp(list[i].name, name) == 0 &&
            strcmp(list[i].login->part, "session") == 0)
            return &list[i];
    return NULL;
}

/* 1: locked; 0: somebody else holds it. The file as it is now stands in *to. */
static int lock(struct login_locks *l, const struct config_secret *s, struct buf *to,
                struct err *err)
{
    if (s == NULL)
        return err_set(err, ERR_UNREADY, "it is not in the configuration any more");
    struct login_format *f = login_format_new(s->login->format, err);
    struct held *h = f && find(l, s->name) == NULL ? held_new(l, s->name) : NULL;
    int r = f == NULL ? -1
            : find(l, s->name) == NULL
                ? err_set(err, ERR_LIMIT, "too many logins are refreshed at once")
            : h ? take_all(h, f, s->source, err)
                : 0;
    if (r >= 0 && login_file_session(f, s->source, to, err) < 0)
        r = -1;
    if (r != 1 && h)
        held_free(h);
    login_format_free(f);
    return r;
}

static int on_lock(struct login_locks *l, struct ipc *vault, struct msg *m,
                   const struct config_secret *list, size_t n)
{
    uint32_t req;
    char name[SECRET_NAME_MAX + 1];
    struct err err = {0};
    struct buf session;
    struct msg reply;
    if (msg_get_u32(m, &req) < 0 || msg_get_str(m, name, sizeof name) < 0 || msg_end(m) < 0)
        return -1;
    buf_init_wiped(&session, SECRET_MAX);
    int r = lock(l, session_of(list, n, name), &session, &err);
    msg_init(&reply, W_LOGIN_LOCKED); /* its body is wiped when sent */
    msg_put_u32(&reply, req);
    msg_put_u8(&reply, (uint8_t)(r < 0 ? 2 : r));
    msg_put_slice(&reply, r < 0 ? slice_str(err.text) : buf_slice(&session));
    buf_free(&session);
    ipc_send(vault, &reply);
    return 0;
}

static int save(struct login_locks *l, const struct config_secret *s,
                const struct login_session *session, struct err *err)
{
    if (s == NULL || find(l, s->name) == NULL)
        return err_set(err, ERR_UNREADY, "its lock was lost");
    struct login_format *f = login_format_new(s->login->format, err);
    int r = f ? login_file_save(f, s->source, session, err) : -1;
    login_format_free(f);
    return r;
}

static int on_save(struct login_locks *l, struct ipc *vault, struct msg *m,
                   const struct config_secret *list, size_t n)
{
    uint32_t req;
    uint64_t expires;
    char name[SECRET_NAME_MAX + 1];
    struct login_session session;
    struct err err = {0};
    struct msg reply;
    if (msg_get_u32(m, &req) < 0 || msg_get_str(m, name, sizeof name) < 0 ||
        msg_get_slice(m, SECRET_MAX, &session.access) < 0 ||
        msg_get_slice(m, SECRET_MAX, &session.refresh) < 0 || msg_get_u64(m, &expires) < 0 ||
        msg_end(m) < 0 || session.access.n + session.refresh.n == 0 || expires > INT64_MAX / 1000)
        return -1;
    session.expires = (int64_t)expires;
    int r = save(l, session_of(list, n, name), &session, &err);
    struct held *h = find(l, name);
    if (h)
        held_free(h);
    msg_init(&reply, W_LOGIN_SAVED);
    msg_put_u32(&reply, req);
    msg_put_u8(&reply, r == 0);
    msg_put_str(&reply, r == 0 ? "" : err.text);
    ipc_send(vault, &reply);
    return 0;
}

static int on_unlock(struct login_locks *l, struct msg *m)
{
    char name[SECRET_NAME_MAX + 1];
    if (msg_get_str(m, name, sizeof name) < 0 || msg_end(m) < 0)
        return -1;
    struct held *h = find(l, name);
    if (h)
        held_free(h);
    return 0;
}

int login_locks_message(struct login_locks *l, struct ipc *vault, struct msg *m,
                        const struct config_secret *list, size_t n)
{
    return m->type == W_LOGIN_LOCK   ? on_lock(l, vault, m, list, n)
           : m->type == W_LOGIN_SAVE ? on_save(l, vault, m, list, n)
                                     : on_unlock(l, m);
}

void login_locks_release(struct login_locks *l)
{
    while (!LIST_EMPTY(&l->list))
        held_free(LIST_FIRST(&l->list));
}

struct login_locks *login_locks_new(struct event_base *base)
{
    struct login_locks *l = calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->base = base;
    LIST_INIT(&l->list);
    return l;
}

void login_locks_free(struct login_locks *l)
{
    if (l == NULL)
        return;
    login_locks_release(l);
    free(l);
}
