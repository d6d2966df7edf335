/* A rule more in the text of a configuration, which stays as its author wrote it otherwise. */
#ifndef DURWARD_POLICY_EDIT_H
#define DURWARD_POLICY_EDIT_H

#include "buf.h"
#include "err.h"

/* Into policies.POLICY.rules of `text`, as the first of them: allow TARGET, with this method. The
 * place counts: of two rules of the same rank the first decides (see policy_first_steps). Neither
 * word may hold a quote, a backslash or a newline. -1 with err: the text has no such list, or one
 * that a rule cannot be put into. */
int policy_edit_add(struct slice text, const char *policy, const char *target, const char *method,
                    struct buf *out, struct err *err);

#endif
