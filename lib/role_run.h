/* The life that all roles share: enter (proc.h), the channel to the parent, W_INIT, the filter,
 * W_READY, the loop, leave. What is a role's own stands in two tables. */
#ifndef DURWARD_ROLE_RUN_H
#define DURWARD_ROLE_RUN_H

#include "ipc.h"
#include "proc.h"

struct role_life {
    enum role role;
    bool counts, traces; /* its counters, and steps of its requests, go to the parent */
    void (*first)(void); /* before all else: crypto_text_later, of who is linked with OpenSSL */
    /* Makes the role on its control channel, whose descriptor it owns from here on. NULL when it
     * cannot start; without a text in err memory is out. */
    struct ipc *(*open)(void *self, struct event_base *base, int control_fd, struct err *err);
    /* After the loop: frees what there is, and the loop where the filter lets it; -> the exit
     * status. */
    int (*leave)(void *self, struct event_base *base);
};

/* A role's main: the exit status. */
int role_run(const struct role_life *life, void *self);

struct role_start {
    /* Reads W_INIT and does all that the filter would forbid. What W_READY has beside its type goes
     * into `ready`. -1: the role cannot start; without a text in err the message is bad. */
    int (*load)(void *self, struct msg *m, struct msg *ready, struct err *err);
    int (*confine)(void *self, struct err *err); /* NULL: there is no filter */
    void (*begun)(void *self);                   /* W_READY is out; may be NULL */
};

/* The first message of the control channel: loads, confines, answers W_READY, or W_FAILED with why.
 * -1: the channel is to be closed, and with it the role ends. */
int role_start(const struct role_start *s, void *self, struct ipc *control, struct msg *m);

#endif
