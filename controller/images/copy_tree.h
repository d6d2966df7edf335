/* Copies the tree of a layer as overlayfs keeps it: whiteouts (character devices 0:0), opaque
 * directories and other user attributes, hard links within, times and modes. Data is shared where
 * the file system can (reflink). Devices and sockets are left out. Owners stay who we are. */
#ifndef DURWARD_COPY_TREE_H
#define DURWARD_COPY_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/* Is this attribute copied? */
bool copy_tree_keeps(const char *name);

/* Both are directories, `to` is empty. A tree that is written to meanwhile is copied as found. */
/* most: what the copy may hold, as a volume counts (volume.h); beyond that ERR_LIMIT. */
int copy_tree(int from, int to, int64_t most, struct err *err);

#endif
