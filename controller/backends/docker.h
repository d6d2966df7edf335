/* docker: a container of a Docker Engine (or of what speaks its API, such as Podman) without any
 * network of the engine's. The container is one with pid 1 of ours: durward-init, mounted into it,
 * waits there until the maker has opened the listeners in the container's network namespace, has
 * the consent, and hands it its socket and filter (handover.h). Neither the image's entry point
 * nor a health check of its ever runs by itself.
 *
 * The maker stays as long as the container does. It takes it down at SIGTERM, at the end of its
 * channel and when pid 1 ends; when the maker itself is killed, pid 1 sees the end of its socket,
 * and the engine removes the container. What was created and never started is swept by the next. */
#ifndef DURWARD_DOCKER_H
#define DURWARD_DOCKER_H

#include <jansson.h>
#include <limits.h>

#include "engine.h"
#include "maker_internal.h"

/* The directory of one container on the host, locked while its maker lives:
 *
 *   run/init, run/socket    mounted at HANDOVER_DIR
 *   resolv.conf, gitconfig  mounted into /etc */
struct docker_parts {
    char path[PATH_MAX];
    const char *name; /* its last component: the sandbox's id */
    int above, dir;   /* -1: not there */
    int listener;     /* at run/socket, non-blocking */
};

/* Removes what makers left that were killed, then makes ours. docker_parts_remove in either case.
 */
int docker_parts_make(const struct making *m, struct docker_parts *ret, struct err *err);
void docker_parts_remove(struct docker_parts *p);
/* Is no maker alive that this sandbox's container belongs to? */
bool docker_parts_orphan(const struct docker_parts *p, const char *sandbox);

#define DOCKER_LABEL_STATE   "durward.state"   /* the state directory: whose container it is */
#define DOCKER_LABEL_SANDBOX "durward.sandbox" /* its id */

/* What the engine is asked for. New reference; NULL with err. */
json_t *docker_spec(const struct making *m, const struct engine *e, const struct docker_parts *p,
                    struct err *err);
/* What of the limits is not held as bwrap would. */
int docker_note_limits(const struct plan *plan, struct buf *notes, struct err *err);

#endif
