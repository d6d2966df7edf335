/* What the builder has done by a process of its own: W_LAYER. */
#ifndef DURWARD_WORKER_H
#define DURWARD_WORKER_H

#include "layer_work.h"

struct event_base;
struct worker;

struct worker_place {
    const char *state_dir;
    int archive; /* the program that exports and imports */
};

/* Starts it. stream: a copy is used. done is called once, later; the worker is freed after it.
 * NULL: it cannot be. */
struct worker *worker_start(struct event_base *base, const struct worker_place *at,
                            enum layer_op op, const char *from, const char *to,
                            const struct layer_stream *stream,
                            void (*done)(void *arg, enum layer_result result, const char *text),
                            void *arg);
/* Kill and forget; done is not called. */
void worker_abandon(struct worker *e);

/* Wait for its end, at most so long, then kill; done is not called. */
void worker_finish(struct worker *e, unsigned ms);

#endif
