/* New lines of an audit directory as they come (`audit tail -f`). */
#ifndef DURWARD_AUDIT_FOLLOW_H
#define DURWARD_AUDIT_FOLLOW_H

#include "log_tree.h"

/* From the positions in t on, until stdout fails or the reader is interrupted. after runs when a
 * batch was given. 0 when stdout is gone, -1 with err. */
int audit_follow(struct log_tree *t, log_tree_fn fn, void *arg, int (*after)(void),
                 struct err *err);

#endif
