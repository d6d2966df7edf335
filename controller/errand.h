/* What the builder has done by a process of its own: W_LAYER. */
#ifndef DURWARD_ERRAND_H
#define DURWARD_ERRAND_H

#include "layer_work.h"

struct event_base;
struct errand;

/* Starts it. stream: a copy is used. done is called once, later; the errand is freed after it.
 * NULL: it cannot be. */
struct errand *errand_start(struct event_base *base, const char *state_dir, enum layer_op op,
                            const char *from, const char *to, const struct layer_stream *stream,
                            void (*done)(void *arg, enum layer_result result, const char *text),
                            void *arg);
/* Kill and forget; done is not called. */
void errand_abandon(struct errand *e);

/* Wait for its end, at most so long, then kill; done is not called. */
void errand_finish(struct errand *e, unsigned ms);

#endif
