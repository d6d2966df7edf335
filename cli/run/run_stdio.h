/* The standard descriptors of a command in a sandbox. Pipes, regular files and /dev/null are handed
 * in as they are; sockets, terminals and other devices stay outside and are relayed through pipes,
 * because whoever holds one could do more with it than read or write. */
#ifndef DURWARD_RUN_STDIO_H
#define DURWARD_RUN_STDIO_H

#include "pump.h"
#include "run.h"

struct run_stdio {
    struct pump *in, *out[2];   /* towards the sandbox; from it */
    bool pending[2];            /* out[i] still has something to say */
    void (*drained)(void *arg); /* both outputs are at their end */
    void *arg;
};

/* Both standard input and output are terminals: the command gets a terminal of its own. */
bool run_stdio_is_terminal(void);
/* Fills r->fds, making pumps where needed. */
int run_stdio_pass(struct run_stdio *s, struct event_base *base, struct run_request *r,
                   struct err *err);
/* Relay our terminal to the pty master (owned from here on). */
int run_stdio_terminal(struct run_stdio *s, struct event_base *base, int pty, struct err *err);
bool run_stdio_drained(const struct run_stdio *s);
/* Nothing to or from the sandbox meanwhile (but what goes past us: pipes and files). */
void run_stdio_pause(struct run_stdio *s);
void run_stdio_resume(struct run_stdio *s);
void run_stdio_done(struct run_stdio *s);

#endif
