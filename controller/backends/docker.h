/* docker: a container of a Docker Engine (or of what speaks its API, such as Podman) without any
 * network of the engine's. The container is one with pid 1 of ours: durward-init, mounted into it,
 * waits there until the launcher has opened the listeners in the container's network namespace, has
 * the consent, and hands it its socket and filter (handover.h). Neither the image's entry point
 * nor a health check of its ever runs by itself.
 *
 * The launcher stays as long as the container does. It takes it down at SIGTERM, at the end of its
 * channel and when pid 1 ends; when the launcher itself is killed, pid 1 sees the end of its
 * socket, and the engine removes the container. What was created and never started is swept by the
 * next. */
#ifndef DURWARD_DOCKER_H
#define DURWARD_DOCKER_H

#include <jansson.h>
#include <limits.h>

#include "engine.h"
#include "launcher_internal.h"

/* The directory of one container on the host, locked while its launcher lives:
 *
 *   run/init, run/socket    mounted at HANDOVER_DIR
 *   trust/                  its trust bundles (ca/trust_sandbox.h), filled before init may begin
 *   resolv.conf, gitconfig, ssh_known_hosts  mounted into /etc */
struct docker_parts {
    char path[PATH_MAX];
    const char *name; /* its last component: the sandbox's id */
    int above, dir;   /* -1: not there */
    int listener;     /* at run/socket, non-blocking */
};

/* Removes what launchers left that were killed, then makes ours. docker_parts_remove in either
 * case.
 */
int docker_parts_make(const struct making *m, struct docker_parts *ret, struct err *err);
/* After the listeners were offered: waits for the sandbox's CA. */
int docker_parts_trust(const struct making *m, const struct docker_parts *p, struct err *err);
void docker_parts_remove(struct docker_parts *p);
/* Is no launcher alive that this sandbox's container belongs to? */
bool docker_parts_orphan(const struct docker_parts *p, const char *sandbox);

struct docker_copies {
    uid_t owner;
};

/* Is all that is bound a copy that `durward run` made (cli/run/work.h)? -1 with the reason. */
int docker_copies_check(const struct making *m, struct docker_copies *ret, struct err *err);
/* Is the user of the container, whose process pid is, who owns them? */
int docker_copies_owner(const struct plan *plan, const struct docker_copies *c, pid_t pid,
                        struct err *err);

#define DOCKER_TRUST "trust"

#define DOCKER_LABEL_STATE   "durward.state"   /* the state directory: whose container it is */
#define DOCKER_LABEL_SANDBOX "durward.sandbox" /* its id */

/* What the engine is asked for. New reference; NULL with err. */
json_t *docker_spec(const struct making *m, const struct engine *e, const struct docker_parts *p,
                    struct err *err);
/* What of the limits is not held as bwrap would. */
int docker_note_limits(const struct plan *plan, struct buf *notes, struct err *err);

#endif
