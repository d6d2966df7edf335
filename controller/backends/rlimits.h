/* What holds a sandbox's limits where no control group does. */
#ifndef DURWARD_RLIMITS_H
#define DURWARD_RLIMITS_H

#include "plan.h"

/* In the process that is about to become bubblewrap, in the user namespace above the sandbox's. */
int rlimits_set(const struct plan *plan, struct err *err);
/* In the sandbox's user namespace, while it is ours: what the kernel counts there, and for its
 * launcher's uid above it too, is bounded, so that no sandbox takes all that this uid may have on
 * the host (inotify; user_namespaces(7), /proc/sys/user). Where that cannot be said the host's
 * bound is left.
 */
void rlimits_shared(void);
/* One of them: no more than `to`, or errno with -1. */
int rlimits_lower_shared(const char *path, unsigned long to);
/* How many processes, where no control group holds that: of a user namespace that is made by
 * whoever has this limit, it is the sum. */
int rlimits_tasks(const struct plan *plan, struct err *err);
/* How many descriptors a program may have that serves a virtual machine's files, of which it keeps
 * one for each file that the machine's kernel knows: as many as that has memory to know, or the
 * host gives to one process. */
uint64_t rlimits_server_files(const struct plan *plan);
/* In the process that is about to become it, or its bubblewrap. */
int rlimits_server(const struct plan *plan, struct err *err);
/* A line for each limit that is weaker than it reads, or not held at all. uncounted: the sandbox is
 * uid 0 outside, whose processes the kernel does not count. */
int rlimits_note(const struct plan *plan, bool uncounted, struct buf *notes);

#endif
