/* The root file system of a local sandbox, laid out in the maker's own mount namespace.
 *
 * Without an image and read-only: on a tmpfs, frozen when it is complete. Otherwise an overlay
 * whose layers are, the upmost first: what is written (kept or in memory, layer.h), what we lay
 * out, the image. On it are mounted:
 *
 *   /usr, /bin, /lib...        the host's, where there is no image
 *   /etc/durward               trust bundles, read-only
 *   /tmp, /var/tmp, /run       one tmpfs of the size that limits.disk says; $HOME too where the
 * root cannot be written and no bind covers it /run/durward/init          our process 1, read-only
 *   binds                      as the plan says, credential files masked (mask.h)
 *
 * Sources are opened without following links and mounted by descriptor. /proc and /dev are left to
 * bubblewrap, which takes STAGE_ROOT as the new root. */
#ifndef DURWARD_STAGE_H
#define DURWARD_STAGE_H

#include "buf.h"
#include "err.h"
#include "layer.h"
#include "plan.h"

#define STAGE_ROOT  "/tmp/root"
#define STAGE_EMPTY "/tmp/empty/file"   /* an empty file beside it */
#define STAGE_INIT  "/run/durward/init" /* inside */

struct stage_parts {
    const char *state_dir; /* ours: no bind may show it */
    const char *trust_dir;
    int init;   /* the program's bytes, a rewound file; read once */
    int owners; /* a user namespace (idmap_mounts), or -1 */
};

/* What the builder opens of its own for a sandbox; -1 where there is none. */
struct stage_dirs {
    int trust, image;
    struct layer layer;
    bool foreign;              /* the command is not who owns what is bound */
    int binds[PLAN_BINDS_MAX]; /* so detached copies that show their owner as the command */
    bool is_dir[PLAN_BINDS_MAX], partly[PLAN_BINDS_MAX]; /* partly: as mounts_clone_as says */
    int usr; /* and the host's /usr, where it is written above */
};

/* Nothing is open yet. */
void stage_init(struct stage_dirs *d);
/* While still the host's root, whom the command will not be: what is bound, and /usr below a layer.
 * What cannot be had so, or may not be bound, stays -1: stage_build says why. */
void stage_show(const struct stage_parts *parts, const struct plan *plan, struct stage_dirs *ret);
/* In the mount namespace that the sandbox is laid out in, while still the builder's own user. */
int stage_open(const struct stage_parts *parts, const struct plan *plan, const struct idmap *map,
               struct stage_dirs *ret, struct err *err);
void stage_close(struct stage_dirs *d);
/* In there, as who the command is. notes gets a line for each masked file. */
int stage_build(const struct stage_parts *parts, const struct plan *plan,
                const struct stage_dirs *dirs, struct buf *notes, struct err *err);

/* May this host path be bound? Purely by the paths; -1 with the reason. */
int stage_check_source(const struct stage_parts *parts, const struct plan *plan, const char *source,
                       struct err *err);
int stage_check_target(const char *target, struct err *err);

#endif
