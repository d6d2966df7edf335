/* Carries bytes between two stream sockets, both ways, and the end of each way. */
#define _GNU_SOURCE 1
#include "connection_relay.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROOM = 16 * 1024 };

struct way {
    int from, to;
    char bytes[ROOM];
    size_t at, n;
    bool ended;
};

/* -1: one of them is gone. */
static int turn(struct way *w)
{
    ssize_t k;
    if (w->at < w->n) {
        k = send(w->to, w->bytes + w->at, w->n - w->at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (k < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        w->at += (size_t)k;
        return 0;
    }
    k = recv(w->from, w->bytes, sizeof w->bytes, MSG_DONTWAIT);
    if (k < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    w->at = 0;
    w->n = (size_t)k;
    w->ended = k == 0;
    return w->ended && shutdown(w->to, SHUT_WR) < 0 ? -1 : 0;
}

static void carry(int a, int b)
{
    struct way ways[2] = {{.from = a, .to = b}, {.from = b, .to = a}};
    while (!ways[0].ended || !ways[1].ended) {
        struct pollfd p[2];
        for (int i = 0; i < 2; i++) {
            bool full = ways[i].at < ways[i].n;
            p[i] = (struct pollfd){.fd = ways[i].ended ? -1
                                         : full        ? ways[i].to
                                                       : ways[i].from,
                                   .events = full ? POLLOUT : POLLIN};
        }
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return;
        for (int i = 0; i < 2; i++)
            if (p[i].revents && turn(&ways[i]) < 0)
                return;
    }
}

int connection_relay(int a, int b, int other)
{
    pid_t pid = fork();
    if (pid == 0) {
        close(other);
        carry(a, b);
        _exit(0);
    }
    return pid < 0 || setpgid(pid, pid) < 0 ? -1 : 0;
}
