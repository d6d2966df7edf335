/* bubblewrap: makes the nested user namespace, the pid, ipc, uts and mount namespaces, /proc and
 * /dev, drops all capabilities, loads the filter and starts durward-init as process 1. */
#ifndef DURWARD_BWRAP_H
#define DURWARD_BWRAP_H

#include "err.h"
#include "plan.h"

#ifndef BWRAP_PATH
#define BWRAP_PATH "/usr/bin/bwrap"
#endif

/* Descriptors by which bubblewrap is told and tells; they must be open without close-on-exec. */
struct bwrap_fds {
    int filter;       /* the seccomp program */
    int info;         /* gets {"child-pid": N, ...} */
    int outer, inner; /* of a sandbox with containers inside: its user namespaces (nested.h) */
};

/* Where things lie, in the caller's mount namespace but for init. */
struct bwrap_root {
    const char *directory;  /* the sandbox's root */
    const char *empty_file; /* what covers a file that nobody is to see */
    const char *terminals;  /* a devpts */
    const char *init;       /* process 1, inside */
    uid_t outside;          /* who the command is, by the reckoning of whoever made us */
};

/* Is it there? -1 with the remedy. */
int bwrap_check(struct err *err);
/* Becomes bubblewrap; returns only on failure. The network namespace is the caller's. */
int bwrap_exec(const struct bwrap_root *root, const struct plan *plan, const struct bwrap_fds *fds,
               struct err *err);
/* Process 1's pid from what came out of info; 0 when it is not there. */
pid_t bwrap_child(const char *info, size_t n);
/* What bubblewrap wrote on stderr, with a remedy where we know one. */
const char *bwrap_remedy(const char *message);

#endif
