/* Start a command of the configuration: of a `command` store (see store.h for what it gets), or one
 * that is told of something: what keeps the checkpoints of the audit log, or takes notices. */
#ifndef DURWARD_STORE_COMMAND_H
#define DURWARD_STORE_COMMAND_H

#include "store.h"

/* in: its standard input, a descriptor of 10 or more that stays the caller's; -1: nothing.
 * argv is NULL-terminated; argv[0] without a slash is looked for in PATH. -1 also when it cannot be
 * executed: the error names it and the reason. */
int store_command_start(const char *const *argv, int in, struct store_result *ret, struct err *err);
/* The same, with a line on its standard input, shorter than a pipe holds; what it prints is
 * dropped. *pid is 0 when it does not run. */
int store_command_tell(const char *const *argv, const char *line, pid_t *pid, struct err *err);

#endif
