/* What a process can never do again by path, port or signal, whatever system calls it may still
 * make: Landlock (Linux 5.13 and later; ports from 6.7, signals and abstract sockets from 6.12).
 * Beside the system-call filter, not in its place: where the kernel has none, that filter stands
 * alone. */
#ifndef DURWARD_LANDLOCK_H
#define DURWARD_LANDLOCK_H

#include "err.h"

/* What is left to a role; descriptors that it holds already stay what they are. */
enum landlock_reach {
    LANDLOCK_NOTHING, /* no path, no TCP port */
    LANDLOCK_READS,   /* reads files; any port (which one the decision says) */
    LANDLOCK_KEEPS,   /* keeps files: no program, device, socket, pipe or link; no TCP port */
};

/* The kernel's version of it, 0 where there is none (not built in, or switched off). */
int landlock_abi(void);
/* For this process and for good. -1 when the kernel has Landlock and refused; where it has none, 0.
 */
int landlock_enter(enum landlock_reach reach, struct err *err);

#endif
