/* What the controller has the builder do with sandboxes' files (layer_work.h), in an order in which
 * nothing is read while it is written: a task waits for those before it that write what it reads or
 * writes, or read what it writes. A few run at once.
 *
 * Without a builder nothing runs. When one dies, what it was at fails, but for removals, which the
 * next one is asked for again. */
#ifndef DURWARD_LAYER_QUEUE_H
#define DURWARD_LAYER_QUEUE_H

#include "layer_work.h"

struct layer_queue;

/* Called once, later; not when the queue is freed. */
typedef void (*layer_fn)(void *arg, enum layer_result result, const char *text);

struct layer_queue *layer_queue_new(void); /* NULL: out of memory */
void layer_queue_free(struct layer_queue *q);
/* -1: out of memory. */
int layer_queue_add(struct layer_queue *q, enum layer_op op, const char *from, const char *to,
                    layer_fn fn, void *arg) WUNUSED;
/* What makes a volume's files; about: what it is (volume.h). */
int layer_queue_volume(struct layer_queue *q, enum layer_op op, const char *from, const char *to,
                       const char *about, layer_fn fn, void *arg) WUNUSED;
/* Exports and imports; the stream's fd is taken over in any case. Those that wait for
 * somebody else's network keep no other task waiting but such of the same files. */
int layer_queue_archive(struct layer_queue *q, enum layer_op op, const char *name,
                        const struct layer_stream *stream, layer_fn fn, void *arg) WUNUSED;
/* Pause a sandbox or let it go on; not queued. -1: there is no builder, or memory is out. */
int layer_queue_freeze(struct layer_queue *q, const char *sandbox, bool frozen, layer_fn fn,
                       void *arg) WUNUSED;
/* The builder's channel, or NULL when it is gone. */
void layer_queue_builder(struct layer_queue *q, struct ipc *builder);
/* W_LAYERED. -1: it is bad. */
int layer_queue_answer(struct layer_queue *q, struct msg *m);

#endif
