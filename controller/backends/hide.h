/* What of /proc a sandbox is not to write to or not to see, whatever mounts it there. */
#ifndef DURWARD_HIDE_H
#define DURWARD_HIDE_H

#include "err.h"

enum hide_how {
    HIDE_READ_ONLY, /* itself, read-only */
    HIDE_EMPTY,     /* a file with nothing in its place */
};

/* Calls fn for each NAME of /proc/NAME. -1 when fn says so, or with err when /proc cannot be read.
 *
 * root: the sandbox's user is 0 by the kernel's own reckoning. It has no capability, but many files
 * of /proc ask only for the owner's uid. So what is writable is made read-only and what others may
 * not read is emptied. */
int hide_proc(bool root, int (*fn)(void *arg, const char *name, enum hide_how how), void *arg,
              struct err *err);

#endif
