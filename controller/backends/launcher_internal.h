/* The launcher as its backends see it. */
#ifndef DURWARD_LAUNCHER_INTERNAL_H
#define DURWARD_LAUNCHER_INTERNAL_H

#include "netns.h"
#include "plan.h"
#include "rootfs.h"

/* Where the launcher's descriptors lie, close-on-exec; nothing else but stdin, stdout (both
 * /dev/null) and stderr is open. */
enum launcher_fd {
    LAUNCHER_INIT = 3, /* durward-init's end of its socket */
    LAUNCHER_FILTER,   /* the seccomp program, rewound */
    LAUNCHER_INFO,     /* takes {"child-pid": N} */
    LAUNCHER_ERRORS,   /* takes what is wrong */
    LAUNCHER_CHANNEL,  /* the builder */
    LAUNCHER_PROGRAM,  /* durward-init's bytes */
    LAUNCHER_OWNERS,   /* a user namespace (rootfs_parts), if there is one */
    LAUNCHER_FDS,
};

enum { LAUNCHER_NOTES_MAX = 8000 }; /* what a controller takes of W_BUILT's text */

struct making {
    struct rootfs_parts parts; /* init is LAUNCHER_PROGRAM */
    const struct plan *plan;
    pid_t builder;
};

/* W_LISTENERS: duplicates of the descriptors. */
int launcher_offer(const struct plan *plan, const struct netns_listeners *l, struct err *err);
/* W_BUILT: the notes, or the reason why not. */
int launcher_built(const struct plan *plan, bool ok, const char *text, struct err *err);
/* Waits for W_ROOT, which follows the listeners: what trust_lay takes, in memory of its own. */
int launcher_await_root(struct slice *root, struct err *err);
/* Waits for W_LISTENERS_OK. */
int launcher_await_consent(struct err *err);
/* What comes before either of the programs that get a root laid out: who the command is, the
 * network and its listeners, which are offered, and the root. Appends to notes. */
int launcher_lay_out(const struct making *m, struct idmap *map, struct netns_listeners *l,
                     struct buf *notes, struct err *err);
/* Says that it is built, waits for the consent, and lets go of the listeners and the notes. */
int launcher_agree(const struct plan *plan, struct netns_listeners *l, struct buf *notes,
                   struct err *err);
/* What is to be said about a network without nf_tables. */
int launcher_note_network(const struct netns_listeners *l, struct buf *notes, struct err *err);

#endif
