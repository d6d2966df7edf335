/* Shared by stage.c (what a root holds) and stage_layers.c (what it is written to). */
#ifndef DURWARD_STAGE_INTERNAL_H
#define DURWARD_STAGE_INTERNAL_H

#include "mask.h"
#include "stage.h"

struct stage {
    const struct stage_parts *parts;
    const struct plan *plan;
    struct stage_dirs dirs;    /* borrowed */
    int outer;                 /* the tmpfs that hides the host's /tmp */
    int scratch;               /* the tmpfs of everything that may be written and is not kept */
    int base;                  /* what we lay out: the root itself, or its upmost read-only layer */
    int root;                  /* the new root's mount */
    int trees[PLAN_BINDS_MAX]; /* detached copies of the binds' sources; -1: none */
    bool is_dir[PLAN_BINDS_MAX];
    struct mask mask;
};

/* Is the root an overlay? */
bool stage_layered(const struct plan *plan);

int stage_attach_at(struct stage *s, int tree, const char *path, bool dir, struct err *err);
/* The binds' sources, into trees. */
int stage_open_sources(struct stage *s, struct err *err);
/* Outer, scratch and base; without layers the root is the base. */
int stage_make(struct stage *s, struct err *err);
/* A directory of scratch at path in the root. */
int stage_add_scratch(struct stage *s, const char *name, const char *path, mode_t mode,
                      struct err *err);
/* When base is laid out: the root that is seen above it. */
int stage_make_root(struct stage *s, struct err *err);
/* The host's /usr, with a layer to write to if the root has one and its owner is in there. */
int stage_add_usr(struct stage *s, struct err *err);

#endif
