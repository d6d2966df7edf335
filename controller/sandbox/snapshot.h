/* Snapshots: copies of sandboxes' files by name, each with a row in the registry that comes before
 * its files and goes after them. They cannot be changed.
 *
 *   MAKING ──► READY ──► REMOVING ──► (gone)
 *      └────────────────────▲ */
#ifndef DURWARD_SNAPSHOT_H
#define DURWARD_SNAPSHOT_H

#include "layer_queue.h"
#include "managed_sandbox.h"

enum snapshot_state { SNAPSHOT_MAKING, SNAPSHOT_READY, SNAPSHOT_REMOVING };

enum { SNAPSHOTS_MAX = 1000 };

struct snapshot;
/* Called once: s is ready, or gone (then freed afterwards). s NULL: it will not be, why says it. */
typedef void (*snapshot_fn)(void *arg, struct snapshot *s, const char *why);

struct snapshot_wait {
    snapshot_fn fn;
    void *arg;
    STAILQ_ENTRY(snapshot_wait) link;
};
STAILQ_HEAD(snapshot_waits, snapshot_wait);

struct snapshot {
    TAILQ_ENTRY(snapshot) link; /* of controller.snapshots */
    struct controller *controller;
    char name[SANDBOX_SPEC_NAME_MAX + 1],
        image[SANDBOX_SPEC_NAME_MAX + 1];                   /* image "": the host's /usr */
    char sandbox[SANDBOX_ID_MAX + 1], policy[RUN_NAME_MAX]; /* what it was taken of */
    int64_t created;                                        /* seconds since 1970 */
    enum snapshot_state state;
    bool busy; /* its files are being removed */
    struct snapshot_waits ready, gone;
};

/* Rows of the registry: what was being made is removed. Before the first message. */
int snapshots_load(struct controller *c, struct err *err);
void snapshots_close(struct controller *c);
struct snapshot *snapshot_find(struct controller *c, const char *name);
/* Of r's files as they are just then. NULL with err: ERR_DENIED (the name is taken), ERR_UNREADY
 * (it has none that are kept, or there are too many). It is MAKING; snapshot_await. */
struct snapshot *snapshot_new(struct managed_sandbox *r, const char *name, struct err *err);
/* One that comes as an archive over fd, which is taken over in any case; as snapshot_new. */
struct snapshot *snapshot_import(struct controller *c, const char *name, int fd, struct err *err);
/* A READY one as an archive into fd, taken over in any case. fn: LAYER_DONE, or text says why not.
 * -1: out of memory. */
int snapshot_export(struct snapshot *s, int fd, layer_fn fn, void *arg);
/* fn runs when it is READY, at once if it is. -1: out of memory. */
int snapshot_await(struct snapshot *s, snapshot_fn fn, void *arg);
/* fn runs when nothing of it is left; NULL: nobody waits. -1: out of memory. */
int snapshot_delete(struct snapshot *s, snapshot_fn fn, void *arg);
json_t *snapshot_json(const struct snapshot *s);

#endif
