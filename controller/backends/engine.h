/* A container engine by the Docker Engine API (unversioned paths: each engine's own newest; Podman
 * has them too): what a sandbox needs of it. Blocking; see engine_http.h.
 *
 * Errors carry the engine's own words. */
#ifndef DURWARD_ENGINE_H
#define DURWARD_ENGINE_H

#include <jansson.h>
#include <sys/types.h>

#include "buf.h"
#include "err.h"

enum { ENGINE_ID_MAX = 128, ENGINE_NAME_MAX = 96 };

struct engine {
    const char *socket; /* borrowed */
    bool podman;        /* known after engine_meet */
};

/* Who answers there. */
int engine_meet(struct engine *e, struct err *err);

/* A container of that name ([a-z0-9-]+); id is filled in. The engine's warnings become lines of
 * notes. */
int engine_create(const struct engine *e, const char *name, const json_t *spec,
                  char id[ENGINE_ID_MAX], struct buf *notes, struct err *err);
int engine_start(const struct engine *e, const char *id, struct err *err);
/* The pid of its first process, in our pid namespace, and a line in notes for each volume that it
 * got beyond what was asked for. */
int engine_look(const struct engine *e, const char *id, pid_t *pid, struct buf *notes,
                struct err *err);
/* Kill and remove it, with its volumes; returns when it is gone. One that is not there is gone. */
int engine_remove(const struct engine *e, const char *id, struct err *err);
/* Every container, running or not, with label = value: fn gets its id and its labels. */
int engine_each(const struct engine *e, const char *label, const char *value,
                void (*fn)(void *arg, const char *id, const json_t *labels), void *arg,
                struct err *err);

#endif
