/* What snapshots and volumes have in common: files that the builder keeps by a name, with a row in
 * the registry that comes before them and goes after them, and who waits until they are made or
 * gone. Either is a struct that begins with this one.
 *
 *   MAKING ──► READY ◄──► RESTORING (of volumes)
 *      │         └──► REMOVING ──► (gone)
 *      └──────────────────▲ */
#ifndef DURWARD_NAMED_LAYER_H
#define DURWARD_NAMED_LAYER_H

#include <jansson.h>
#include <sys/queue.h>

#include "layer_queue.h"
#include "run.h"
#include "sandbox_spec.h"

struct controller;

enum named_layer_state { LAYER_MAKING, LAYER_READY, LAYER_RESTORING, LAYER_REMOVING };

struct named_layer;
/* Called once: l is ready, or gone (then freed afterwards). l NULL: it will not be, why says it. */
typedef void (*named_layer_fn)(void *arg, struct named_layer *l, const char *why);

struct named_layer_wait {
    named_layer_fn fn;
    void *arg;
    STAILQ_ENTRY(named_layer_wait) link;
};
STAILQ_HEAD(named_layer_waits, named_layer_wait);

/* In order of creation. */
struct named_layers {
    TAILQ_HEAD(, named_layer) list;
    size_t n;
};

struct named_layer_kind {
    const char *noun; /* "volume" */
    size_t size, most;
    enum layer_op remove, export; /* of its files */
    json_t *(*json)(const struct named_layer *l);
    json_t *(*about)(const struct named_layer *l); /* what an archive says that it is */
    /* A record and an event. */
    void (*note)(const struct named_layer *l, const char *what);
    void (*going)(struct named_layer *l); /* one that was READY: its row says so */
    int (*forget)(const struct named_layer *l, struct err *err); /* its row */
    /* Its files cannot be removed, as they are mounted: READY again (LAYER_EXISTS), not its own at
     * all (LAYER_ABSENT), or LAYER_FAILED. NULL: that does not happen. */
    enum layer_result (*mounted)(struct named_layer *l);
    void (*release)(struct named_layer *l); /* what it holds */
    void (*counted)(struct controller *c);  /* after their number changed; or NULL */
};

struct named_layer {
    TAILQ_ENTRY(named_layer) link;
    struct controller *controller;
    struct named_layers *list; /* of the controller's */
    const struct named_layer_kind *kind;
    char name[SANDBOX_SPEC_NAME_MAX + 1], policy[RUN_NAME_MAX];
    int64_t created; /* seconds since 1970 */
    enum named_layer_state state;
    bool busy; /* the builder is at its files */
    struct named_layer_waits ready, gone;
};

struct named_layer *named_layer_find(const struct named_layers *list, const char *name);
/* ERR_DENIED: the name is taken; ERR_UNREADY: there are too many. */
int named_layer_may_be(const struct named_layers *list, const struct named_layer_kind *kind,
                       const char *name, struct err *err);
/* One that is MAKING, of kind->size bytes. NULL: out of memory. */
struct named_layer *named_layer_new(struct controller *c, struct named_layers *list,
                                    const struct named_layer_kind *kind, const char *name,
                                    const char *policy);
void named_layer_free(struct named_layer *l);
/* The builder was asked to make its files (queued 0), or could not be: then it is disposed of. */
int named_layer_begin(struct named_layer *l, int queued, struct err *err);
/* What the builder answered. ready: text is its answer; the row says READY, or -1. absent: why,
 * where what it was to begin with is not there. */
void named_layer_made(struct named_layer *l, enum layer_result result, const char *text,
                      const char *absent,
                      int (*ready)(struct named_layer *l, const char *text, struct err *err));
/* fn runs when it is READY, at once if it is. -1: out of memory. */
int named_layer_await(struct named_layer *l, named_layer_fn fn, void *arg) WUNUSED;
/* fn runs when nothing of it is left; NULL: nobody waits. -1: out of memory. */
int named_layer_delete(struct named_layer *l, named_layer_fn fn, void *arg) WUNUSED;
void named_layer_dispose(struct named_layer *l, const char *why);
/* As an archive into fd, which is taken over in any case. fn: LAYER_DONE, or text says why not.
 * -1: out of memory. */
int named_layer_export(struct named_layer *l, int fd, layer_fn fn, void *arg) WUNUSED;
/* Whoever waits is told, those that begin to wait meanwhile later. l NULL: why. */
void named_layer_tell(struct named_layer_waits *q, struct named_layer *l, const char *why);
const char *named_layer_state(const struct named_layer *l);

/* When all rows are read: what was being made or removed is removed. */
void named_layers_settle(struct named_layers *list);
void named_layers_close(struct named_layers *list);

#endif
