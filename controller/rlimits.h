/* What holds a sandbox's limits where no control group does. */
#ifndef DURWARD_RLIMITS_H
#define DURWARD_RLIMITS_H

#include "plan.h"

/* In the process that is about to become bubblewrap, in the user namespace above the sandbox's. */
int rlimits_set(const struct plan *plan, struct err *err);
/* A line for each limit that is weaker than it reads, or not held at all. uncounted: the sandbox is
 * uid 0 outside, whose processes the kernel does not count. */
int rlimits_note(const struct plan *plan, bool uncounted, struct buf *notes);

#endif
