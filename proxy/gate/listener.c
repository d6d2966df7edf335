/* Accepts connections in batches and makes each a session; when none can be accepted they wait in
 * the kernel's queue and the log says so once a minute. */
#include "listener.h"

#include "proc.h"
#include "heap_trim.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ACCEPT_BATCH = 32, PAUSE_SECONDS = 1, SAY_SECONDS = 60 };

struct listener {
    struct gate *gate;
    int fd;
    enum session_entry entry;
    char *name; /* ENTRY_TLS */
    bool paused, freed;
    struct event *ev, *again;
    struct heap_trim *heap_trim;
    unsigned sessions;
    time_t said; /* that none could be accepted; monotonic */
};

static void destroy(struct listener *l)
{
    event_free(l->ev);
    event_free(l->again);
    heap_trim_free(l->heap_trim);
    if (l->fd >= 0)
        close(l->fd);
    free(l->name);
    free(l);
}

static void on_session_closed(void *arg)
{
    struct listener *l = arg;
    l->sessions--;
    heap_trim_note(l->heap_trim);
    if (l->freed) {
        if (l->sessions == 0)
            destroy(l);
        return;
    }
    if (l->paused && l->sessions < l->gate->limits.connections) {
        l->paused = false;
        event_add(l->ev, NULL);
    }
}

/* Who waits stays in the kernel's queue meanwhile. */
static void pause_for_a_while(struct listener *l, int error)
{
    struct timeval tv = {PAUSE_SECONDS, 0};
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (l->said == 0 || now.tv_sec - l->said >= SAY_SECONDS) {
        l->said = now.tv_sec;
        proc_log("connections wait, %u are open: %s", l->sessions, strerror(error));
    }
    event_del(l->ev);
    event_add(l->again, &tv);
}

static void on_again(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct listener *l = arg;
    if (!l->freed && !l->paused)
        event_add(l->ev, NULL);
}

/* 1 accepted; 0 nothing there; -1 pause. */
static int accept_one(struct listener *l)
{
    struct sockaddr_storage dst;
    socklen_t len = sizeof dst;
    int one = 1;
    int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return 0;
        return errno == ECONNABORTED || errno == EINTR || errno == EPROTO ? 1 : -1;
    }
    if (getsockname(fd, (struct sockaddr *)&dst, &len) < 0) {
        close(fd);
        return 1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    l->sessions++;
    session_new(l->gate, fd, l->entry, l->entry == ENTRY_TRANSPARENT ? &dst : NULL, l->name,
                on_session_closed, l);
    return 1;
}

static void on_accept(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct listener *l = arg;
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        if (l->sessions >= l->gate->limits.connections) {
            l->paused = true;
            event_del(l->ev);
            return;
        }
        int r = accept_one(l);
        if (r < 0)
            pause_for_a_while(l, errno);
        if (r <= 0)
            return;
    }
}

struct listener *listener_new(struct gate *g, int fd, enum session_entry entry, const char *name)
{
    struct listener *l = calloc(1, sizeof *l);
    if (l == NULL) {
        close(fd);
        return NULL;
    }
    l->gate = g;
    l->fd = fd;
    l->entry = entry;
    l->name = name ? strdup(name) : NULL;
    l->ev = event_new(g->base, fd, EV_READ | EV_PERSIST, on_accept, l);
    l->again = event_new(g->base, -1, 0, on_again, l);
    l->heap_trim = heap_trim_new(g->base);
    if ((name && l->name == NULL) || l->heap_trim == NULL || l->ev == NULL || l->again == NULL ||
        event_add(l->ev, NULL) < 0) {
        if (l->ev)
            event_free(l->ev);
        if (l->again)
            event_free(l->again);
        heap_trim_free(l->heap_trim);
        close(fd);
        free(l->name);
        free(l);
        return NULL;
    }
    return l;
}

void listener_free(struct listener *l)
{
    if (l == NULL)
        return;
    l->freed = true;
    event_del(l->ev);
    event_del(l->again);
    close(l->fd);
    l->fd = -1;
    if (l->sessions == 0)
        destroy(l);
}

unsigned listener_sessions(const struct listener *l)
{
    return l->sessions;
}
