/* Volumes: files with a name and a bound (named_layer.h), which sandboxes of their policy mount and
 * which outlive them; and snapshots of volumes, which nobody mounts. The files are the builder's
 * business (images/volume.h). */
#ifndef DURWARD_VOLUMES_H
#define DURWARD_VOLUMES_H

#include "managed_sandbox.h"
#include "named_layer.h"

enum { MANAGED_VOLUMES_MAX = 1000 };
#define MANAGED_VOLUME_SIZE_MIN     (INT64_C(1) << 20)
#define MANAGED_VOLUME_SIZE_MAX     (INT64_C(1) << 50)
#define MANAGED_VOLUME_SIZE_DEFAULT (INT64_C(1) << 30)

struct managed_volume {
    struct named_layer layer;
    char snapshot_of[SANDBOX_SPEC_NAME_MAX + 1]; /* "": it is no snapshot */
    char token[SANDBOX_ID_MAX + 1];              /* that it counts for; "": none */
    json_t *labels;
    int64_t size;
    bool many;      /* several may write */
    bool was_ready; /* before it was removed */
    bool others;    /* there were files of its name, of no row */
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
struct managed_volume *managed_volume_find(struct controller *c, const char *name);
/* NULL with err: ERR_DENIED (the name is taken), ERR_UNREADY. It is MAKING. */
struct managed_volume *managed_volume_new(struct controller *c, const struct managed_volume_wish *w,
                                          struct err *err);
/* The files of a snapshot in place of its own. ERR_UNREADY: a sandbox has it. fn as await. */
int managed_volume_restore(struct managed_volume *v, const struct managed_volume *from,
                           named_layer_fn fn, void *arg, struct err *err);
/* fn runs when nothing of it is left. ERR_UNREADY: a sandbox has it, or could again. */
int managed_volume_delete(struct managed_volume *v, named_layer_fn fn, void *arg, struct err *err);
/* What volumes with this token have together. */
int64_t managed_volumes_of_token(const struct controller *c, const char *token);

/* May a sandbox of this policy have it now? ERR_PARSE: there is none; ERR_UNREADY; ERR_DENIED:
 * another one writes to it. */
int managed_volume_wanted(struct controller *c, const char *text, const char *policy,
                          const struct managed_volume **ret, struct err *err);

#endif
