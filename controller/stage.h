/* The root file system of a local sandbox, laid out on a tmpfs in the maker's own mount namespace:
 *
 *   /usr /bin /lib...   the host's, read-only        /etc       written for it (etcfiles.h),
 * read-only /tmp /var/tmp /run  tmpfs, writable              $HOME      tmpfs, writable, unless a
 * bind covers it /etc/durward        trust bundles, read-only     /run/durward/init   our process
 * 1, read-only binds               as the plan says, credential files masked (mask.h)
 *
 * Sources are opened without following links and mounted by descriptor. /proc and /dev are left to
 * bubblewrap, which takes STAGE_ROOT as the new root. */
#ifndef DURWARD_STAGE_H
#define DURWARD_STAGE_H

#include "buf.h"
#include "err.h"
#include "plan.h"

#define STAGE_ROOT  "/tmp/root"
#define STAGE_EMPTY "/tmp/empty/file"   /* an empty file beside it */
#define STAGE_INIT  "/run/durward/init" /* inside */

struct stage_parts {
    const char *state_dir; /* ours: no bind may show it */
    const char *trust_dir;
    int init; /* the program's bytes, a rewound file; read once */
};

/* In a fresh mount namespace of our own. notes gets a line for each masked file. */
int stage_build(const struct stage_parts *parts, const struct plan *plan, struct buf *notes,
                struct err *err);

/* May this host path be bound? Purely by the paths; -1 with the reason. */
int stage_check_source(const struct stage_parts *parts, const struct plan *plan, const char *source,
                       struct err *err);
int stage_check_target(const char *target, struct err *err);

#endif
