/* Files of the sandbox's home that `durward run` writes: steps of a request. */
#ifndef DURWARD_RUN_FILES_H
#define DURWARD_RUN_FILES_H

#include "err.h"
#include "run.h"

/* A bind lies around the path, or (below) in it: what is there is not ours to change. */
bool run_files_meet_bind(const struct run_request *r, const char *path, bool below);
/* path: below the home; text: {{project}} is filled in here, placeholders by the controller. op:
 * INSIDE_WRITE or INSIDE_WRITE_NEW. Where a bind is, nothing is written. */
int run_files_add(struct run_request *r, int op, const char *path, const char *text,
                  struct err *err) WUNUSED;

#endif
