/* The builder's workers that are under way, each for a controller's channel. */
#ifndef DURWARD_WORKER_TABLE_H
#define DURWARD_WORKER_TABLE_H

#include "worker.h"

struct event_base;
struct worker_table;

/* tell: what a worker came to, once for each, perhaps before worker_table_start returns; not after
 * worker_table_drop. state_dir is borrowed. NULL: out of memory. */
struct worker_table *worker_table_new(struct event_base *base, const struct worker_place *at,
                                      void (*tell)(void *requester, uint32_t req,
                                                   enum layer_result result, const char *text));
/* NULL is fine. */
void worker_table_free(struct worker_table *c);
void worker_table_start(struct worker_table *c, void *requester, uint32_t req, enum layer_op op,
                        const char *from, const char *to, const struct layer_stream *stream);
/* The same of an export or import, whose stream is what m still has. -1: the message is bad. */
int worker_table_read(struct worker_table *c, void *requester, uint32_t req, enum layer_op op,
                      const char *from, const char *to, struct msg *m);
/* Whoever asked is gone: what is not finished is given up, and what there is of it removed. */
void worker_table_drop(struct worker_table *c, const void *requester);
/* Remove what others left that were killed. */
void worker_table_sweep(struct worker_table *c);

#endif
