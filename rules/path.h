/* Request paths as bytes: what is refused as ambiguous (path_check, see policy.h) and the folded
 * form in which deny rules see a path. */
#ifndef DURWARD_PATH_H
#define DURWARD_PATH_H

#include "policy.h"

/* The two readings of %2F that a deny rule must hold in. */
enum path_reading {
    PATH_SLASH_BYTE = 1,  /* %2F is a byte of its segment (kept as "%2f") */
    PATH_SLASH_SPLIT = 2, /* %2F separates segments; slashes that meet are one */
};

/* Take the parameters (";" to the end of the segment) out of a folded path, in place: how a reader
 * that knows them sees it. Slashes that meet are one. Returns the new length. */
size_t path_drop_parameters(char *path, size_t n);

/* Fold a path for comparison with a deny rule folded the same way: percent escapes decoded until
 * none is left, over-long UTF-8 of an ASCII byte made that byte, ASCII letters lower, %2F by the
 * reading. Writes at most path.n bytes to `to`; returns how many. Never fails. */
size_t path_fold(struct slice path, enum path_reading reading, char *to);

#endif
