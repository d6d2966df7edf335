/* Orders the addresses, starts one attempt after the other on a timer, hands over the first that
 * connects and closes the others. */
#include "race.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct attempt {
    struct race *race;
    struct address address;
    int fd; /* -1: not started, or over */
    struct event *writable;
};

struct race {
    struct event_base *base;
    struct attempt attempts[RACE_ATTEMPTS];
    size_t n;
    size_t started;
    size_t open;
    int error; /* of the last that failed */
    struct event *next;
    race_fn fn;
    void *arg;
};

static void attempt_end(struct attempt *t)
{
    if (t->writable)
        event_free(t->writable);
    t->writable = NULL;
    if (t->fd >= 0) {
        close(t->fd);
        t->race->open--;
    }
    t->fd = -1;
}

void race_cancel(struct race *r)
{
    for (size_t i = 0; i < r->started; i++)
        attempt_end(&r->attempts[i]);
    if (r->next)
        event_free(r->next);
    free(r);
}

/* The one way out; fd is -1 or that of a connected attempt. */
static void race_tell(struct race *r, int fd, struct address a, int error)
{
    race_fn fn = r->fn;
    void *arg = r->arg;
    race_cancel(r);
    fn(arg, fd, &a, error);
}

static void on_writable(evutil_socket_t fd, short what UNUSED, void *arg)
{
    struct attempt *t = arg;
    struct race *r = t->race;
    int error = 0;
    socklen_t n = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
        error = errno;
    if (error == 0) {
        t->fd = -1; /* the callback's from here on */
        r->open--;
        race_tell(r, fd, t->address, 0);
        return;
    }
    r->error = error;
    attempt_end(t);
    event_active(r->next, EV_TIMEOUT, 0);
}

/* 0 under way (or connected already: then it is writable); else errno. */
static int attempt_start(struct attempt *t)
{
    int fd = socket(t->address.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    if (connect(fd, &t->address.sa, t->address.len) < 0 && errno != EINPROGRESS && errno != EINTR) {
        int error = errno;
        close(fd);
        return error;
    }
    t->writable = event_new(t->race->base, fd, EV_WRITE, on_writable, t);
    if (t->writable == NULL || event_add(t->writable, NULL) < 0) {
        if (t->writable)
            event_free(t->writable);
        t->writable = NULL;
        close(fd);
        return ENOMEM;
    }
    t->fd = fd;
    t->race->open++;
    return 0;
}

/* Time for the next attempt, or the end when none is left. */
static void on_next(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    static const struct timeval stagger = {0, RACE_STAGGER_MS * 1000};
    struct race *r = arg;
    while (r->started < r->n) {
        struct attempt *t = &r->attempts[r->started++];
        int error = attempt_start(t);
        if (error == 0) {
            if (r->started < r->n)
                event_add(r->next, &stagger);
            return;
        }
        r->error = error;
    }
    if (r->open == 0)
        race_tell(r, -1, r->attempts[r->n - 1].address, r->error);
}

/* IPv6 first, then the families in turn while both last. */
static void take_turns(struct race *r, const struct address *list, size_t n)
{
    int family = AF_INET6;
    size_t at[2] = {0, 0}; /* of IPv6, of IPv4 */
    while (r->n < RACE_ATTEMPTS) {
        size_t *i = &at[family == AF_INET];
        while (*i < n && list[*i].sa.sa_family != family)
            (*i)++;
        if (*i < n)
            r->attempts[r->n++] = (struct attempt){.race = r, .address = list[(*i)++], .fd = -1};
        family = family == AF_INET6 ? AF_INET : AF_INET6;
        if (at[0] >= n && at[1] >= n)
            return;
    }
}

struct race *race_new(struct event_base *base, const struct address *list, size_t n, race_fn fn,
                      void *arg)
{
    struct race *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->base = base;
    r->fn = fn;
    r->arg = arg;
    r->error = EADDRNOTAVAIL;
    take_turns(r, list, n);
    r->next = event_new(base, -1, 0, on_next, r);
    if (r->next == NULL || r->n == 0) {
        race_cancel(r);
        return NULL;
    }
    event_active(r->next, EV_TIMEOUT, 0);
    return r;
}
