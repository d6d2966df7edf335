/* Start a command of the configuration: of a `command` store (see store.h for what it gets), or
 * what keeps the checkpoints of the audit log. */
#ifndef DURWARD_STORE_COMMAND_H
#define DURWARD_STORE_COMMAND_H

#include "store.h"

/* in: its standard input, a descriptor of 10 or more that stays the caller's; -1: nothing.
 * argv is NULL-terminated; argv[0] without a slash is looked for in PATH. -1 also when it cannot be
 * executed: the error names it and the reason. */
int store_command_start(const char *const *argv, int in, struct store_result *ret, struct err *err);

#endif
