/* What the keeper of containers' networks waits for: descriptors, and whom their events are for. */
#ifndef DURWARD_NETWORK_LOOP_H
#define DURWARD_NETWORK_LOOP_H

#include "compiler.h"

struct network_watch {
    int fd;
    uint32_t events; /* what is waited for; 0: nothing, and the kernel does not know of it */
    void (*fn)(struct network_watch *w, uint32_t events);
};

/* 0 or -1. Once a process. */
int network_loop_begin(void);
/* A connection of a listener; flags: SOCK_NONBLOCK or 0. -1: there is none; or there is no
 * descriptor for it, and who asked was told by a reset: it would be waiting else, and its event
 * with it. */
int network_loop_accept(struct network_watch *w, int flags);
/* Wait for these events (EPOLLIN, EPOLLOUT) of w->fd, or for none. 0 or -1. */
int network_loop_want(struct network_watch *w, uint32_t events);
/* Nothing more, and the descriptor is closed. */
void network_loop_close(struct network_watch *w);
/* One event, at most this long: whoever is called may end any other watch. */
void network_loop_turn(int ms);

#endif
