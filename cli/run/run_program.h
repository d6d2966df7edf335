/* Where a profile's program lies on the host, and what of it a sandbox has to see: whoever installs
 * an agent does so below his home, of which nothing is seen inside. */
#ifndef DURWARD_RUN_PROGRAM_H
#define DURWARD_RUN_PROGRAM_H

#include <limits.h>

#include "err.h"
#include "run.h"

/* Binds, read-only, what the program needs and the sandbox would not see: its own file or the
 * folder of its package, and its interpreter's. -1 with err that says what to install when there is
 * no such program in PATH. to: the word that starts it inside: its own path, where a link would not
 * be seen.
 */
int run_program_bind(const char *name, struct run_request *r, char to[PATH_MAX], struct err *err);

#endif
