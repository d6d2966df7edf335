/* What a process can never do again by path, port or signal, whatever system calls it may still
 * make: Landlock (Linux 5.13 and later; ports from 6.7, signals and abstract sockets from 6.12).
 * Beside the system-call filter, not in its place: where the kernel has none, that filter stands
 * alone. */
#ifndef DURWARD_LANDLOCK_H
#define DURWARD_LANDLOCK_H

#include "err.h"

#include <stddef.h>

enum landlock_right {
    LANDLOCK_READ, /* this file, or all beneath this directory: read */
    LANDLOCK_KEEP, /* beneath this directory: files and directories made, read, written, removed,
                      renamed within it; no device, socket, pipe or symbolic link */
};

/* A place is named by a descriptor, which may be closed once landlock_enter has returned. */
struct landlock_place {
    int fd;
    enum landlock_right right;
};

/* All that is left to a process; descriptors that it holds already stay what they are. No program
 * can be run, no TCP port bound. */
struct landlock_reach {
    const struct landlock_place *places;
    size_t n;      /* 0: no path at all */
    bool connects; /* to any TCP port (which one the decision says), else to none */
};

/* The kernel's version of it, 0 where there is none (not built in, or switched off). */
int landlock_abi(void);
/* For this process and for good. -1 when the kernel has Landlock and refused; where it has none, 0.
 */
int landlock_enter(const struct landlock_reach *reach, struct err *err);

#endif
