/* Which directories of the host a sandbox sees, and what must never be among them. */
#ifndef DURWARD_RUN_BINDS_H
#define DURWARD_RUN_BINDS_H

#include "config.h"
#include "run.h"
#include "run_options.h"

/* Fills binds, cwd and home of the request. Refused: the caller's home, "/", their parents and
 * system directories as the default bind; a configuration file (config_file, NULL if none) inside a
 * writable bind; Durward's own directories and the files of `file:` secrets inside any bind. */
int run_binds(const struct run_options *o, const struct config *c, const char *config_file,
              struct run_request *r, struct err *err);

#endif
