/* The trust bundles of one local sandbox: the system's roots, which are cached (trust_roots), and
 * the root of the sandbox's own CA. The signer makes all that depends on the latter; whoever lays a
 * sandbox out only puts bytes together. */
#ifndef DURWARD_TRUST_SANDBOX_H
#define DURWARD_TRUST_SANDBOX_H

#include "buf.h"
#include "err.h"

enum { TRUST_ROOT_MAX = 8192 }; /* of what trust_root_put makes */

/* Into the directory `to`, from the one that trust_roots made (both by descriptor): what is listed
 * at trust_prepare. Files that are there already get their content in place, so they may be mounted
 * before. The Java store has no checksum: one over all of it would have to be made each time. */
int trust_lay(int roots, int to, struct slice root, struct err *err);
/* The same into a directory in which a sandbox may write meanwhile: each file is made anew, in the
 * place of what has its name, and nothing that is there is opened. */
int trust_lay_anew(int roots, int to, struct slice root, struct err *err);
/* Those files, without content yet. */
int trust_lay_empty(int to, struct err *err);

#endif
