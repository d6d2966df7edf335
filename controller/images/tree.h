/* Files below a directory whose content is not to be trusted: every component is opened without
 * following links, from descriptor to descriptor, and nothing outside is ever named.
 *
 * Paths are relative ("usr/bin/env"); "." components and slashes too many are ignored, ".." is an
 * error. */
#ifndef DURWARD_TREE_H
#define DURWARD_TREE_H

#include <limits.h>
#include <sys/types.h>

#include "err.h"

enum { TREE_DEPTH_MAX = 256 };

/* The directory that holds path's last component, which is copied to name ("" when path is the root
 * itself). Missing directories are made when make is set. An O_PATH descriptor, the caller's. */
int tree_parent(int root, const char *path, bool make, char name[NAME_MAX + 1], struct err *err);
/* Remove name below at, a directory with everything in it, however deep. Absent is fine. What
 * cannot be removed keeps nothing else from being removed; the first failure is told. */
int tree_remove(int at, const char *name, struct err *err);
/* Have this owner for a directory, last, and for all that it holds. */
int tree_give(int dir, uid_t uid, gid_t gid, struct err *err);
/* Remove what a directory holds, likewise. */
int tree_empty(int dir, struct err *err);

#endif
