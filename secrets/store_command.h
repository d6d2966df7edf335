/* Start the command of a `command` store. See store.h for what it gets. */
#ifndef DURWARD_STORE_COMMAND_H
#define DURWARD_STORE_COMMAND_H

#include "store.h"

/* argv is NULL-terminated; argv[0] without a slash is looked for in PATH. -1 also when it cannot be
 * executed: the error names it and the reason. */
int store_command_start(const char *const *argv, struct store_result *ret, struct err *err);

#endif
