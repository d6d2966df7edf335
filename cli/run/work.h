/* The directories of a `durward run` in a container, which nothing of the host can be bound in:
 * copied to a directory of ours, which the engine mounts, and back when the sandbox has ended.
 *
 * STATE/copies/NAME/  0700, flock of whoever runs with it
 *   0/ 1/ ...         what the sandbox sees of the first directory, the second...
 *   about             which they are of; there once the sandbox may have written to them
 *
 * What could not be brought back stays there, and is told of; without `about` it is removed by the
 * next run. */
#ifndef DURWARD_WORK_H
#define DURWARD_WORK_H

#include <jansson.h>

#include "config.h"
#include "run.h"

struct work;

/* Copies what the request binds, and has it bind the copies. *ret: NULL
 * where the backend is another or nothing is bound. */
int work_begin(const struct config *c, struct run_request *r, struct work **ret,
               struct err *err) WUNUSED;
/* The sandbox has gone, or never began. whole: it ended by its command's end. Copies back, says
 * what was not, and frees. NULL is fine. false: not all is in its place. *ret: what came of it, for
 * JSON; NULL where nothing was copied. */
bool work_end(struct work *w, bool started, bool whole, json_t **ret);

#endif
