/* Which directories of the host a sandbox sees, and what must never be among them. */
#ifndef DURWARD_RUN_BINDS_H
#define DURWARD_RUN_BINDS_H

#include "config.h"
#include "run.h"
#include "run_options.h"

#include <limits.h>

/* Fills binds, cwd and home of the request. Refused: the caller's home, "/", their parents and
 * system directories as the default bind. */
int run_binds(const struct run_options *o, struct run_request *r, struct err *err);
/* Why nobody means to hand over this directory as it is; NULL: it may be. home: the caller's. */
const char *run_binds_refused(const char *dir, const char *home);
/* Where a directory or file to hand over lies. Refused: a link, and one on the way that a sandbox
 * may have left. flag: what stands before it in a message. */
int run_binds_source(const char *path, const char *flag, const char *home, char out[PATH_MAX],
                     struct err *err);
/* Of all binds together. Refused: a configuration or a profile (NULL if none) inside a writable
 * one; Durward's own directories and the files of `file:` secrets inside any. */
int run_binds_check(const struct run_request *r, const struct config *c, const char *config_file,
                    const char *profile_file, struct err *err);

#endif
