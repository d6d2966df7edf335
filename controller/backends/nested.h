/* A sandbox with containers inside: the user namespaces that it lives in, and what its root may.
 *
 * Four of them, from the host inwards: the launcher's, which owns the network; "outer", which owns
 * the mounts that we lay out, the process numbers and the host name; "inner", in which durward-init
 * and all commands are, with capabilities that count in there and below; and those that programs
 * inside make. So no program inside has a right to the network, nor to a mount of ours. */
#ifndef DURWARD_NESTED_H
#define DURWARD_NESTED_H

#include "err.h"
#include "plan.h"

struct nested_namespaces {
    int outer, inner; /* close-on-exec */
};

/* In the launcher, once it is who the command is, with the capabilities of its user namespace: in
 * both namespaces 0 is that one, and 1 to 65535 are the others of its map (idmap_nest). */
int nested_make(const struct plan *plan, struct nested_namespaces *ret, struct err *err);
/* In the launcher's own user namespace: how many namespaces of each kind the sandbox may have, all
 * that are made inside counted. Else it could have all that its uid may on the host. In its network
 * every port can be bound that nobody has. */
int nested_bound(struct err *err);
/* The capabilities of its root, by bubblewrap's names; NULL past the last. Without SYS_PTRACE, so
 * that durward-init's memory stays its own. */
const char *nested_capability(size_t i);

#endif
