/* bubblewrap: makes the nested user namespace, the pid, ipc, uts and mount namespaces, /proc and
 * /dev, drops all capabilities, loads the filter and starts durward-init as process 1. */
#ifndef DURWARD_BWRAP_H
#define DURWARD_BWRAP_H

#include "err.h"
#include "plan.h"

/* Descriptors by which bubblewrap is told and tells; they must be open without close-on-exec. */
struct bwrap_fds {
    int filter; /* the seccomp program */
    int info;   /* gets {"child-pid": N, ...} */
};

/* The program that bwrap_exec starts. */
const char *bwrap_program(void);
/* Is it there? -1 with the remedy. */
int bwrap_check(struct err *err);
/* Becomes bubblewrap with `root` as the sandbox's root directory and `init` as its process 1;
 * returns only on failure. The network namespace is the caller's. */
int bwrap_exec(const char *root, const char *init, const struct plan *plan,
               const struct bwrap_fds *fds, struct err *err);
/* Process 1's pid from what came out of info; 0 when it is not there. */
pid_t bwrap_child(const char *info, size_t n);
/* What bubblewrap wrote on stderr, with a remedy where we know one. */
const char *bwrap_remedy(const char *message);

#endif
