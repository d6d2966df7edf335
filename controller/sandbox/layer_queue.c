/* Tells from each task what it reads and writes, asks the builder for those that wait for no other
 * one, and hands the answers back. */
#include "layer_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "sandbox_spec.h"

enum { RUNNING_MAX = 6 };

struct task {
    TAILQ_ENTRY(task) link;
    uint32_t req; /* 0 while it waits */
    enum layer_op op;
    bool freezes;
    struct layer_stream *stream; /* of exports and imports: their own until it is asked */
    char from[SANDBOX_SPEC_NAME_MAX + 1], to[SANDBOX_SPEC_NAME_MAX + 1];
    layer_fn fn;
    void *arg;
};

struct layer_queue {
    struct ipc *builder; /* NULL: none */
    uint32_t last;       /* number of the last question */
    unsigned running;
    TAILQ_HEAD(, task) tasks; /* in the order in which they came */
};

struct layer_queue *layer_queue_new(void)
{
    struct layer_queue *q = calloc(1, sizeof *q);
    if (q)
        TAILQ_INIT(&q->tasks);
    return q;
}

static void task_free(struct task *t)
{
    if (t->stream && t->stream->fd >= 0)
        close(t->stream->fd);
    free(t->stream);
    free(t);
}

void layer_queue_free(struct layer_queue *q)
{
    struct task *t;
    if (q == NULL)
        return;
    while ((t = TAILQ_FIRST(&q->tasks)) != NULL) {
        TAILQ_REMOVE(&q->tasks, t, link);
        task_free(t);
    }
    free(q);
}

/* ---- order ---- */

enum store { SANDBOXES, SNAPSHOTS, VOLUMES };

struct place { /* a layer; name NULL: none */
    enum store store;
    const char *name;
};

static const struct place nowhere = {SANDBOXES, NULL};

static struct place reads(const struct task *t)
{
    if (layer_removes(t->op) || t->op == LAYER_IMPORT || t->op == LAYER_VOLUME_MAKE)
        return nowhere;
    if (layer_is_volume(t->op))
        return (struct place){VOLUMES, t->from};
    if (t->op == LAYER_CONFIRM) /* whose names may be needed then */
        return (struct place){SNAPSHOTS, t->to};
    bool snapshot = t->op == LAYER_RESTORE || t->op == LAYER_REPLACE || t->op == LAYER_EXPORT;
    return (struct place){snapshot ? SNAPSHOTS : SANDBOXES, t->from};
}

static struct place writes(const struct task *t)
{
    if (layer_is_volume(t->op))
        return layer_makes_volume(t->op)      ? (struct place){VOLUMES, t->to}
               : t->op == LAYER_VOLUME_REMOVE ? (struct place){VOLUMES, t->from}
                                              : nowhere;
    if (layer_removes(t->op))
        return (struct place){t->op == LAYER_REMOVE_SNAPSHOT ? SNAPSHOTS : SANDBOXES, t->from};
    if (t->op == LAYER_EXPORT || t->op == LAYER_CONFIRM)
        return nowhere;
    if (t->op == LAYER_UNMARK)
        return (struct place){SANDBOXES, t->from};
    bool snapshot = t->op == LAYER_SNAPSHOT || t->op == LAYER_IMPORT;
    return (struct place){snapshot ? SNAPSHOTS : SANDBOXES, t->to};
}

static bool same(struct place a, struct place b)
{
    return a.name && b.name && a.store == b.store && strcmp(a.name, b.name) == 0;
}

static bool must_wait(const struct layer_queue *q, const struct task *t)
{
    const struct task *e;
    TAILQ_FOREACH(e, &q->tasks, link)
    {
        if (e == t)
            return false;
        if (!e->freezes &&
            (same(writes(e), writes(t)) || same(writes(e), reads(t)) || same(reads(e), writes(t))))
            return true;
    }
    return false;
}

/* ---- asking ---- */

static uint32_t next_number(struct layer_queue *q)
{
    if (++q->last == 0) /* which answers to questions without a number have */
        q->last = 1;
    return q->last;
}

static void start_all(struct layer_queue *q)
{
    struct task *t;
    TAILQ_FOREACH(t, &q->tasks, link)
    {
        if (q->builder == NULL)
            return;
        if (t->req || must_wait(q, t) || (!layer_streams(t->op) && q->running == RUNNING_MAX))
            continue;
        struct layer_stream *stream = t->stream;
        t->stream = NULL;
        t->req = next_number(q);
        q->running += !layer_streams(t->op);
        int r = layer_ask(q->builder, t->req, t->op, t->from, t->to, stream);
        free(stream);
        if (r < 0)
            return; /* its channel is about to close, which is heard of */
    }
}

static struct task *add(struct layer_queue *q, const char *from, const char *to, layer_fn fn,
                        void *arg)
{
    struct task *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    snprintf(t->from, sizeof t->from, "%s", from);
    snprintf(t->to, sizeof t->to, "%s", to);
    t->fn = fn;
    t->arg = arg;
    TAILQ_INSERT_TAIL(&q->tasks, t, link);
    return t;
}

int layer_queue_add(struct layer_queue *q, enum layer_op op, const char *from, const char *to,
                    layer_fn fn, void *arg)
{
    struct task *t = add(q, from, to, fn, arg);
    if (t == NULL)
        return -1;
    t->op = op;
    start_all(q);
    return 0;
}

int layer_queue_archive(struct layer_queue *q, enum layer_op op, const char *name,
                        const struct layer_stream *stream, layer_fn fn, void *arg)
{
    bool out = op != LAYER_IMPORT;
    struct layer_stream *own = malloc(sizeof *own);
    struct task *t = own ? add(q, out ? name : "", out ? "" : name, fn, arg) : NULL;
    if (t == NULL) {
        free(own);
        close(stream->fd);
        return -1;
    }
    *own = *stream;
    t->op = op;
    t->stream = own;
    start_all(q);
    return 0;
}

int layer_queue_volume(struct layer_queue *q, enum layer_op op, const char *from, const char *to,
                       const char *about, layer_fn fn, void *arg)
{
    struct layer_stream *own = calloc(1, sizeof *own);
    struct task *t = own ? add(q, from, to, fn, arg) : NULL;
    if (t == NULL) {
        free(own);
        return -1;
    }
    own->fd = -1;
    snprintf(own->about, sizeof own->about, "%s", about);
    t->op = op;
    t->stream = own;
    start_all(q);
    return 0;
}

int layer_queue_freeze(struct layer_queue *q, const char *sandbox, bool frozen, layer_fn fn,
                       void *arg)
{
    struct task *t = q->builder ? add(q, sandbox, "", fn, arg) : NULL;
    if (t == NULL)
        return -1;
    t->freezes = true;
    t->req = next_number(q);
    if (layer_freeze(q->builder, t->req, sandbox, frozen) == 0)
        return 0;
    TAILQ_REMOVE(&q->tasks, t, link);
    free(t);
    return -1;
}

/* ---- answers ---- */

static void finish(struct layer_queue *q, struct task *t, enum layer_result result,
                   const char *text)
{
    struct task done = *t;
    TAILQ_REMOVE(&q->tasks, t, link);
    if (!t->freezes && !layer_streams(t->op))
        q->running--;
    free(t); /* it was asked: it has no stream */
    done.fn(done.arg, result, text);
}

int layer_queue_answer(struct layer_queue *q, struct msg *m)
{
    uint32_t req;
    enum layer_result result;
    char text[512];
    struct task *t;
    if (layer_answer(m, &req, &result, text, sizeof text) < 0)
        return -1;
    if (req == 0)
        return 0; /* nobody asked to be told */
    TAILQ_FOREACH(t, &q->tasks, link)
    if (t->req == req)
        break;
    if (t == NULL)
        return -1;
    finish(q, t, result, text);
    start_all(q);
    return 0;
}

static void fail_running(struct layer_queue *q)
{
    for (struct task *t = TAILQ_FIRST(&q->tasks), *next; t; t = next) {
        next = TAILQ_NEXT(t, link);
        if (t->req == 0)
            continue;
        if (t->freezes || !layer_removes(t->op)) {
            finish(q, t, LAYER_FAILED, "the builder died while it was at it");
            next = TAILQ_FIRST(&q->tasks); /* fn may have added or ended others */
            continue;
        }
        t->req = 0;
        q->running--;
    }
}

void layer_queue_builder(struct layer_queue *q, struct ipc *builder)
{
    q->builder = NULL;
    fail_running(q);
    q->builder = builder;
    start_all(q);
}
