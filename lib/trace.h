/* Steps of a request, as each role takes them, for whoever looks for where its time goes (`durward
 * trace`) or what a role does (`log_level: debug`). Names, sizes and codes: never a value of a
 * credential, nor anything of a path, a query, a header's value or a body.
 *
 * The gate decides which requests are traced. What it gives on goes beside the request, in a
 * message of its own (W_TRACING), so that a request that is not traced costs each step one branch.
 * Lines go to the parent and from there to the controller, or into the log of the daemon; each
 * process says at most TRACE_LINES_A_SECOND, and how many it left out. */
#ifndef DURWARD_TRACE_H
#define DURWARD_TRACE_H

#include "ipc.h"

enum { TRACE_LINES_A_SECOND = 256, TRACE_STEP_MAX = 24, TRACE_TEXT_MAX = 384 };

struct trace {
    uint64_t session; /* which `durward trace` asked, by a random number; 0: nobody */
    uint64_t begun;   /* us, monotonic: the request's, which tells it from others too */
};

/* Beside a request that comes next on the same channel. */
struct tracing {
    uint32_t req;
    struct trace trace;
};

#define TRACE(t, ...)                               \
    do {                                            \
        if (__builtin_expect((t)->session != 0, 0)) \
            trace_step((t), __VA_ARGS__);           \
    } while (0)

void trace_step(const struct trace *t, const char *step, const char *fmt, ...) PRINTF(3, 4);

/* This process: `log_level: debug`, said at its start; and who takes its lines (NULL: nobody). */
void trace_to_log(bool on);
void trace_report(struct ipc *parent);

/* A request that begins here: of a session (0: none), or else for the log of the daemon. */
struct trace trace_begin(uint64_t session, uint64_t begun);
/* Before the request itself; nothing where it is not traced. */
void trace_send(struct ipc *ch, uint32_t req, const struct trace *t);
int trace_get(struct msg *m, struct tracing *ret); /* W_TRACING; -1: bad */
/* What was said beside this request, once; else as one that begins here. */
struct trace trace_take(struct tracing *next, uint32_t req, uint64_t begun);

#endif
