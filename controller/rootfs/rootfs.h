/* The root file system of a local sandbox, laid out in the launcher's own mount namespace.
 *
 * Without an image and read-only: on a tmpfs, frozen when it is complete. Otherwise an overlay
 * whose layers are, the upmost first: what is written (kept or in memory, layer.h), what we lay
 * out, the image. On it are mounted:
 *
 *   /usr, /bin, /lib...        the host's, where there is no image
 *   /etc/durward               trust bundles, read-only
 *   /tmp, /var/tmp, /run       one tmpfs of the size that limits.disk says; $HOME too where the
 *                              root cannot be written and no bind covers it
 *   /run/durward/init          our process 1, read-only
 *   binds                      as the plan says, credential files masked (view.h, mask.h)
 *   volumes                    above them, each served by a process of its own (view_bound.c)
 *   devices' files             read-only, where neither a bind nor a volume is
 *
 * Sources are opened without following links and mounted by descriptor. /proc and /dev are left to
 * bubblewrap, which takes ROOTFS_ROOT as the new root and ROOTFS_PTS as its /dev/pts: the host's
 * terminals are one number for all (kernel.pty.max), of which each sandbox has a part. */
#ifndef DURWARD_ROOTFS_H
#define DURWARD_ROOTFS_H

#include "buf.h"
#include "cluster.h"
#include "err.h"
#include "layer.h"
#include "plan.h"

#include <sys/stat.h>

#define ROOTFS_ROOT  "/tmp/root"
#define ROOTFS_EMPTY "/tmp/empty/file"   /* an empty file beside it */
#define ROOTFS_PTS   "/tmp/pts"          /* the sandbox's terminals, beside it too */
#define ROOTFS_INIT  "/run/durward/init" /* inside */

struct rootfs_parts {
    const char *state_dir; /* ours: no bind may show it */
    const char *roots_dir; /* what trust bundles are made of (ca/trust.h) */
    struct slice root;     /* of the sandbox's own CA; once it is known */
    int init;              /* the program's bytes, a rewound file; read once */
    const char *init_path; /* where they were read, and of which file */
    struct stat init_file;
    int owners;                          /* a user namespace (idmap_mounts), or -1 */
    const struct pod_place *pods;        /* of a Kubernetes node; NULL: none are made here */
    const struct cluster_place *cluster; /* where pods are made; NULL: nowhere */
};

/* What the builder opens of its own for a sandbox; -1 where there is none. */
struct rootfs_dirs {
    int roots, image;
    int init; /* the program's file, if it is still the one that was read: shared, not copied */
    struct layer layer;
    bool foreign;              /* the command is not who owns what is bound */
    int binds[PLAN_BINDS_MAX]; /* so detached copies that show their owner as the command */
    bool is_dir[PLAN_BINDS_MAX], partly[PLAN_BINDS_MAX]; /* partly: as mounts_clone_as says */
    int views[PLAN_BINDS_MAX];                           /* /dev/fuse, for a directory each */
    int usr;                               /* and the host's /usr, where it is written above */
    int volumes[SANDBOX_SPEC_VOLUMES_MAX]; /* mounts that have no place yet */
};

/* Nothing is open yet. */
void rootfs_init(struct rootfs_dirs *d);
/* While still the host's root, whom the command will not be: what is bound, and /usr below a layer.
 * What cannot be had so, or may not be bound, stays -1: rootfs_build says why. */
void rootfs_show(const struct rootfs_parts *parts, const struct plan *plan,
                 struct rootfs_dirs *ret);
/* In the mount namespace that the sandbox is laid out in, while still the builder's own user. */
int rootfs_open(const struct rootfs_parts *parts, const struct plan *plan, const struct idmap *map,
                struct rootfs_dirs *ret, struct err *err);
void rootfs_close(struct rootfs_dirs *d);
/* In there, as who the command is. notes gets a line for each masked file. */
int rootfs_build(const struct rootfs_parts *parts, const struct plan *plan,
                 const struct rootfs_dirs *dirs, struct buf *notes, struct err *err);

/* May this host path be bound? Purely by the paths; -1 with the reason. */
int rootfs_check_source(const struct rootfs_parts *parts, const struct plan *plan,
                        const char *source, struct err *err);
int rootfs_check_target(const char *target, struct err *err);

#endif
