/* The process that makes one sandbox and then becomes its bubblewrap.
 *
 * It talks to the builder over one channel: W_LISTENERS as soon as the network stands, W_BUILT (ok
 * with the notes, or the reason of a failure) when the file system does, and waits for
 * W_LISTENERS_OK before it starts bubblewrap. The channel closes with that exec. */
#ifndef DURWARD_LAUNCHER_H
#define DURWARD_LAUNCHER_H

#include "cgroup.h"
#include "err.h"
#include "plan.h"
#include "sandbox_seccomp.h"
#include "rootfs.h"

struct launcher {
    pid_t pid;   /* of the launcher, later bubblewrap; a child of ours that leads a process group */
    int channel; /* our end of the channel */
    int init;    /* our end of durward-init's socket */
    int errors;  /* what bubblewrap writes on stderr; non-blocking */
    int info;    /* what it writes about itself; non-blocking */
};

/* The bytes of durward-init, as they were when the builder started: a sealed memfd, the caller's.
 * of: the file, which is shown by a mount only as long as it is that one (rootfs.c:add_init). */
int launcher_load(const char *path, struct stat *of, struct err *err);
/* Forks it into its control group (NULL: none). All descriptors are the caller's. */
int launcher_start(const struct rootfs_parts *parts, const struct filter_program *filter,
                   const struct plan *plan, struct cgroup *cgroup, struct launcher *ret,
                   struct err *err);

#endif
