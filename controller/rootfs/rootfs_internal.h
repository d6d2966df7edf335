/* Shared by rootfs.c (what a root holds), rootfs_layers.c (what it is written to),
 * rootfs_binds.c, rootfs_volumes.c and rootfs_devices.c. */
#ifndef DURWARD_ROOTFS_INTERNAL_H
#define DURWARD_ROOTFS_INTERNAL_H

#include "mask.h"
#include "rootfs.h"

struct rootfs {
    const struct rootfs_parts *parts;
    const struct plan *plan;
    struct rootfs_dirs dirs;   /* borrowed */
    int outer;                 /* the tmpfs that hides the host's /tmp */
    int scratch;               /* the tmpfs of everything that may be written and is not kept */
    int base;                  /* what we lay out: the root itself, or its upmost read-only layer */
    int trust;                 /* the tmpfs of the trust bundles */
    int root;                  /* the new root's mount */
    int trees[PLAN_BINDS_MAX]; /* detached copies of the binds' sources; -1: none */
    bool is_dir[PLAN_BINDS_MAX];
    struct mask mask;
};

/* Is the root an overlay? */
bool rootfs_layered(const struct plan *plan);

int rootfs_attach_at(struct rootfs *s, int tree, const char *path, bool dir, struct err *err);
/* The binds' sources, into trees. */
int rootfs_open_sources(struct rootfs *s, struct err *err);
/* Binds the directory trees[i] as a view (view.h), which is mounted, but has no place yet. */
int rootfs_add_view(struct rootfs *s, unsigned i, int view, struct err *err);
/* The plan's volumes, each a mount that is served already: as rootfs_open, and then onto the root.
 */
int rootfs_open_volumes(const struct rootfs_parts *parts, const struct plan *plan,
                        const struct idmap *map, struct rootfs_dirs *ret, struct err *err);
int rootfs_add_volumes(struct rootfs *s, struct err *err);
/* What is mounted on, and an image lacks, is laid out in the base: in the image's own directories
 * only their owner could make it, who is nobody in a sandbox that has a bind. Their modes stay. */
int rootfs_lay_place(struct rootfs *s, const char *path, bool dir, struct err *err);
int rootfs_lay_device_places(struct rootfs *s, struct err *err);
/* The files of the plan's devices, onto the root; after binds and volumes. */
int rootfs_add_devices(struct rootfs *s, struct err *err);
/* A file or directory that is not the kernel's? */
int rootfs_check_opened(int fd, const char *source, bool *is_dir, struct err *err);
/* Outer, scratch and base; without layers the root is the base. */
int rootfs_make(struct rootfs *s, struct err *err);
/* A directory of scratch at path in the root. */
int rootfs_add_scratch(struct rootfs *s, const char *name, const char *path, mode_t mode,
                       struct err *err);
/* When base is laid out: the root that is seen above it. */
int rootfs_make_root(struct rootfs *s, struct err *err);
/* The host's /usr, with a layer to write to if the root has one and its owner is in there. */
int rootfs_add_usr(struct rootfs *s, struct err *err);

#endif
