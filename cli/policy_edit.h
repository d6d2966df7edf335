/* A rule more in the text of a configuration, which stays as its author wrote it otherwise. */
#ifndef DURWARD_POLICY_EDIT_H
#define DURWARD_POLICY_EDIT_H

#include "buf.h"
#include "err.h"

/* Into policies.POLICY.rules of `text`, as the first of them (the order of allow rules says
 * nothing): allow TARGET, with this method. Neither may hold a quote, a backslash or a newline. -1
 * with err: the text has no such list, or one that a rule cannot be put into. */
int policy_edit_add(struct slice text, const char *policy, const char *target, const char *method,
                    struct buf *out, struct err *err);

#endif
