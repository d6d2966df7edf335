/* Copies the tree of a layer as overlayfs keeps it: whiteouts (character devices 0:0), opaque
 * directories and other user attributes, hard links within, times and modes. Data is shared where
 * the file system can (reflink). Devices and sockets are left out. Owners stay who we are. */
#ifndef DURWARD_COPY_TREE_H
#define DURWARD_COPY_TREE_H

#include "err.h"

/* Is this attribute copied? */
bool copy_tree_keeps(const char *name);

/* Both are directories, `to` is empty. A tree that is written to meanwhile is copied as found. */
int copy_tree(int from, int to, struct err *err);

#endif
