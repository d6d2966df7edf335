/* epoll, which is asked for one event at a time: no event of a watch that has ended is at hand. */
#define _GNU_SOURCE 1
#include "network_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int epoll = -1, spare = -1;

static void open_spare(void)
{
    spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int network_loop_begin(void)
{
    open_spare();
    epoll = epoll_create1(EPOLL_CLOEXEC);
    return epoll < 0 ? -1 : 0;
}

int network_loop_want(struct network_watch *w, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = w};
    int how = w->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    if (w->events == events)
        return 0;
    if (epoll_ctl(epoll, how, w->fd, &e) < 0)
        return -1;
    w->events = events;
    return 0;
}

int network_loop_accept(struct network_watch *w, int flags)
{
    struct linger at_once = {.l_onoff = 1};
    int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | flags);
    if (fd >= 0 || (errno != EMFILE && errno != ENFILE) || spare < 0)
        return fd;
    close(spare);
    fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | flags);
    if (fd >= 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close(fd);
    }
    open_spare();
    return -1;
}

void network_loop_close(struct network_watch *w)
{
    if (w->fd < 0)
        return;
    (void)network_loop_want(w, 0);
    close(w->fd);
    w->fd = -1;
}

void network_loop_turn(int ms)
{
    struct epoll_event e;
    if (epoll_wait(epoll, &e, 1, ms) != 1)
        return;
    struct network_watch *w = e.data.ptr;
    w->fn(w, e.events);
}
