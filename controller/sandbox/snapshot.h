/* Snapshots: copies of sandboxes' files by name (named_layer.h). They cannot be changed. */
#ifndef DURWARD_SNAPSHOT_H
#define DURWARD_SNAPSHOT_H

#include "managed_sandbox.h"
#include "named_layer.h"

enum { SNAPSHOTS_MAX = 1000 };

struct snapshot {
    struct named_layer layer;              /* policy: of what it was taken of */
    char image[SANDBOX_SPEC_NAME_MAX + 1]; /* "": the host's /usr */
    char sandbox[SANDBOX_ID_MAX + 1];      /* what it was taken of */
    json_t *labels;                        /* as that had them; of an imported one none */
};

/* Rows of the registry: what was being made is removed. Before the first message. */
int snapshots_load(struct controller *c, struct err *err);
struct snapshot *snapshot_find(struct controller *c, const char *name);
/* Of r's files as they are just then. NULL with err: ERR_DENIED (the name is taken), ERR_UNREADY
 * (it has none that are kept, or there are too many). It is MAKING; named_layer_await. */
struct snapshot *snapshot_new(struct managed_sandbox *r, const char *name, struct err *err);
/* One that comes as an archive over fd, which is taken over in any case; as snapshot_new. */
struct snapshot *snapshot_import(struct controller *c, const char *name, int fd, struct err *err);

#endif
