/* Volumes: files with a name and a bound, which sandboxes of their policy mount and which outlive
 * them; and snapshots of volumes, which nobody mounts. Each has a row in the registry that comes
 * before its files and goes after them. The files are the builder's business (images/volume.h).
 *
 *   MAKING ──► READY ◄──► RESTORING
 *      │         └──► REMOVING ──► (gone)
 *      └──────────────────▲ */
#ifndef DURWARD_VOLUMES_H
#define DURWARD_VOLUMES_H

#include "layer_queue.h"
#include "managed_sandbox.h"

enum managed_volume_state { VOLUME_MAKING, VOLUME_READY, VOLUME_RESTORING, VOLUME_REMOVING };

enum { MANAGED_VOLUMES_MAX = 1000 };
#define MANAGED_VOLUME_SIZE_MIN     (INT64_C(1) << 20)
#define MANAGED_VOLUME_SIZE_MAX     (INT64_C(1) << 50)
#define MANAGED_VOLUME_SIZE_DEFAULT (INT64_C(1) << 30)

struct managed_volume;
/* Called once: v is ready, or gone (then freed afterwards). v NULL: it will not be, why says it. */
typedef void (*managed_volume_fn)(void *arg, struct managed_volume *v, const char *why);

struct managed_volume_wait {
    managed_volume_fn fn;
    void *arg;
    STAILQ_ENTRY(managed_volume_wait) link;
};
STAILQ_HEAD(managed_volume_waits, managed_volume_wait);

struct managed_volume {
    TAILQ_ENTRY(managed_volume) link; /* of controller.volumes, in order of creation */
    struct controller *controller;
    char name[SANDBOX_SPEC_NAME_MAX + 1], policy[RUN_NAME_MAX];
    char snapshot_of[SANDBOX_SPEC_NAME_MAX + 1]; /* "": it is no snapshot */
    char token[SANDBOX_ID_MAX + 1];              /* that it counts for; "": none */
    json_t *labels;
    int64_t size, created;
    bool many; /* several may write */
    enum managed_volume_state state;
    bool busy;      /* the builder is at its files */
    bool was_ready; /* before it was removed */
    bool others;    /* there were files of its name, of no row */
    struct managed_volume_waits ready, gone;
};

struct managed_volume_wish {
    const char *name, *policy;
    int64_t size;
    bool many;
    json_t *labels;                    /* borrowed; NULL: none */
    const char *token;                 /* "": none */
    const struct managed_volume *from; /* begin with its files; NULL: empty */
    bool snapshot;                     /* of `from` */
};

/* Rows of the registry: what was being made or removed is removed. Before the first message. */
int managed_volumes_load(struct controller *c, struct err *err);
void managed_volumes_close(struct controller *c);
struct managed_volume *managed_volume_find(struct controller *c, const char *name);
/* NULL with err: ERR_DENIED (the name is taken), ERR_UNREADY. It is MAKING. */
struct managed_volume *managed_volume_new(struct controller *c, const struct managed_volume_wish *w,
                                          struct err *err);
/* fn runs when it is READY, at once if it is. -1: out of memory. */
int managed_volume_await(struct managed_volume *v, managed_volume_fn fn, void *arg);
/* The files of a snapshot in place of its own. ERR_UNREADY: a sandbox has it. fn as await. */
int managed_volume_restore(struct managed_volume *v, const struct managed_volume *from,
                           managed_volume_fn fn, void *arg, struct err *err);
/* fn runs when nothing of it is left. ERR_UNREADY: a sandbox has it, or could again. */
int managed_volume_delete(struct managed_volume *v, managed_volume_fn fn, void *arg,
                          struct err *err);
/* As an archive into fd, which is taken over in any case. -1: out of memory. */
int managed_volume_export(struct managed_volume *v, int fd, layer_fn fn, void *arg);
/* What volumes with this token have together. */
int64_t managed_volumes_of_token(const struct controller *c, const char *token);
json_t *managed_volume_json(const struct managed_volume *v);

/* May a sandbox of this policy have it now? ERR_PARSE: there is none; ERR_UNREADY; ERR_DENIED:
 * another one writes to it. */
int managed_volume_wanted(struct controller *c, const char *text, const char *policy,
                          const struct managed_volume **ret, struct err *err);

#endif
