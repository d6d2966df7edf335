/* The builder's errands that are under way, each for a controller's channel. */
#ifndef DURWARD_CHORES_H
#define DURWARD_CHORES_H

#include "layer_work.h"

struct event_base;
struct chores;

/* tell: what an errand came to, once for each, perhaps before chores_start returns; not after
 * chores_drop. state_dir is borrowed. NULL: out of memory. */
struct chores *chores_new(struct event_base *base, const char *state_dir,
                          void (*tell)(void *asker, uint32_t req, enum layer_result result,
                                       const char *text));
/* NULL is fine. */
void chores_free(struct chores *c);
void chores_start(struct chores *c, void *asker, uint32_t req, enum layer_op op, const char *from,
                  const char *to, const struct layer_stream *stream);
/* The same of an export or import, whose stream is what m still has. -1: the message is bad. */
int chores_read(struct chores *c, void *asker, uint32_t req, enum layer_op op, const char *from,
                const char *to, struct msg *m);
/* Whoever asked is gone: what is not finished is given up, and what there is of it removed. */
void chores_drop(struct chores *c, const void *asker);
/* Remove what others left that were killed. */
void chores_sweep(struct chores *c);

#endif
