/* The life of files that have a name, from the row that announces them to its end: what snapshots
 * and volumes do alike. What the daemon's end finds half made or half removed is removed at its
 * next start. */
#include "named_layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "assertion.h"
#include "controller_internal.h"
#include "proc.h"

void named_layer_tell(struct named_layer_waits *q, struct named_layer *l, const char *why)
{
    struct named_layer_wait *w;
    struct named_layer_waits now = STAILQ_HEAD_INITIALIZER(now);
    STAILQ_CONCAT(&now, q);
    while ((w = STAILQ_FIRST(&now)) != NULL) {
        STAILQ_REMOVE_HEAD(&now, link);
        w->fn(w->arg, l, why);
        free(w);
    }
}

static int wait_in(struct named_layer_waits *q, named_layer_fn fn, void *arg)
{
    struct named_layer_wait *w = malloc(sizeof *w);
    if (w == NULL)
        return -1;
    *w = (struct named_layer_wait){fn, arg, {NULL}};
    STAILQ_INSERT_TAIL(q, w, link);
    return 0;
}

static void count(const struct named_layer_kind *kind, struct controller *c)
{
    if (kind->counted)
        kind->counted(c);
}

struct named_layer *named_layer_find(const struct named_layers *list, const char *name)
{
    struct named_layer *l;
    TAILQ_FOREACH(l, &list->list, link)
    if (strcmp(l->name, name) == 0)
        return l;
    return NULL;
}

int named_layer_may_be(const struct named_layers *list, const struct named_layer_kind *kind,
                       const char *name, struct err *err)
{
    if (named_layer_find(list, name))
        return err_set(err, ERR_DENIED, "a %s named %s exists already", kind->noun, name);
    if (list->n >= kind->most)
        return err_set(err, ERR_UNREADY, "%zu %ss exist already", kind->most, kind->noun);
    return 0;
}

struct named_layer *named_layer_new(struct controller *c, struct named_layers *list,
                                    const struct named_layer_kind *kind, const char *name,
                                    const char *policy)
{
    ASSERT(kind->size >= sizeof(struct named_layer));
    struct named_layer *l = calloc(1, kind->size);
    if (l == NULL)
        return NULL;
    l->controller = c;
    l->list = list;
    l->kind = kind;
    snprintf(l->name, sizeof l->name, "%s", name);
    snprintf(l->policy, sizeof l->policy, "%s", policy);
    STAILQ_INIT(&l->ready);
    STAILQ_INIT(&l->gone);
    TAILQ_INSERT_TAIL(&list->list, l, link);
    list->n++;
    return l;
}

void named_layer_free(struct named_layer *l)
{
    const struct named_layer_kind *kind = l->kind;
    struct controller *c = l->controller;
    TAILQ_REMOVE(&l->list->list, l, link);
    l->list->n--;
    if (kind->release)
        kind->release(l);
    free(l);
    count(kind, c);
}

/* ---- its end ---- */

static void on_removed(void *arg, enum layer_result result, const char *text)
{
    struct named_layer *l = arg;
    struct err err = {0};
    l->busy = false;
    if (result == LAYER_EXISTS && l->kind->mounted) {
        text = "it is mounted in a sandbox";
        result = l->kind->mounted(l);
        if (result == LAYER_EXISTS) {
            l->state = LAYER_READY;
            named_layer_tell(&l->gone, NULL, text);
            return;
        }
    }
    if (result != LAYER_FAILED && l->kind->forget(l, &err) == 0) {
        named_layer_tell(&l->gone, l, "");
        named_layer_free(l);
        return;
    }
    text = err.code == ERR_NONE ? text : err.text; /* until it is asked for again */
    proc_log("the %s %s is not removed: %s", l->kind->noun, l->name, text);
    named_layer_tell(&l->gone, NULL, text);
}

void named_layer_dispose(struct named_layer *l, const char *why)
{
    l->state = LAYER_REMOVING;
    named_layer_tell(&l->ready, NULL, why);
    if (l->busy)
        return;
    l->busy = true;
    if (layer_queue_add(l->controller->layers, l->kind->remove, l->name, "", on_removed, l) < 0)
        on_removed(l, LAYER_FAILED, "out of memory");
}

int named_layer_delete(struct named_layer *l, named_layer_fn fn, void *arg)
{
    if (fn && wait_in(&l->gone, fn, arg) < 0)
        return -1;
    if (l->state == LAYER_READY)
        l->kind->going(l);
    named_layer_dispose(l, "it was deleted");
    return 0;
}

/* ---- making ---- */

int named_layer_begin(struct named_layer *l, int queued, struct err *err)
{
    l->busy = queued == 0;
    if (queued == 0)
        return 0;
    named_layer_dispose(l, "out of memory");
    return err_set(err, ERR_INTERNAL, "out of memory");
}

void named_layer_made(struct named_layer *l, enum layer_result result, const char *text,
                      const char *absent,
                      int (*ready)(struct named_layer *l, const char *text, struct err *err))
{
    struct err err = {0};
    l->busy = false;
    if (l->state == LAYER_REMOVING) {
        named_layer_dispose(l, "it was deleted");
        return;
    }
    if (result == LAYER_DONE && ready(l, text, &err) == 0) {
        l->state = LAYER_READY;
        named_layer_tell(&l->ready, l, "");
        return;
    }
    if (result == LAYER_EXISTS) /* of no row: a registry that was lost */
        text = "there were files of this name, which are being removed; try again";
    else if (result == LAYER_ABSENT)
        text = absent;
    named_layer_dispose(l, err.code == ERR_NONE ? text : err.text);
}

int named_layer_await(struct named_layer *l, named_layer_fn fn, void *arg)
{
    if (l->state == LAYER_MAKING || l->state == LAYER_RESTORING)
        return wait_in(&l->ready, fn, arg);
    fn(arg, l->state == LAYER_READY ? l : NULL, "it is being removed");
    return 0;
}

int named_layer_export(struct named_layer *l, int fd, layer_fn fn, void *arg)
{
    struct layer_stream stream = {.fd = fd};
    json_t *about = l->kind->about(l);
    size_t n = about ? json_dumpb(about, stream.about, sizeof stream.about - 1,
                                  JSON_COMPACT | JSON_PRESERVE_ORDER)
                     : 0;
    json_decref(about);
    if (n == 0 || n >= sizeof stream.about) {
        close(fd);
        return -1;
    }
    stream.about[n] = '\0';
    return layer_queue_archive(l->controller->layers, l->kind->export, l->name, &stream, fn, arg);
}

const char *named_layer_state(const struct named_layer *l)
{
    static const char *const states[] = {"making", "ready", "restoring", "removing"};
    return states[l->state];
}

/* ---- start and end of the controller ---- */

void named_layers_settle(struct named_layers *list)
{
    struct named_layer *l, *next;
    if ((l = TAILQ_FIRST(&list->list)) != NULL)
        count(l->kind, l->controller);
    for (; l; l = next) {
        next = TAILQ_NEXT(l, link);
        if (l->state == LAYER_REMOVING)
            named_layer_dispose(l, "the daemon ended while it was made or removed");
    }
}

void named_layers_close(struct named_layers *list)
{
    struct named_layer *l;
    while ((l = TAILQ_FIRST(&list->list)) != NULL) {
        named_layer_tell(&l->ready, NULL, "the daemon ended");
        named_layer_tell(&l->gone, NULL, "the daemon ended");
        named_layer_free(l);
    }
}
