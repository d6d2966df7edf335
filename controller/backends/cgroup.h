/* A control group for one sandbox, where this host lets us make one: version 2 or version 1, below
 * our own or beside it. What no control group holds is left to rlimits.h. */
#ifndef DURWARD_CGROUP_H
#define DURWARD_CGROUP_H

#include <sys/types.h>

#include "config.h"

struct cgroup;

enum { /* bits: what it holds */
       CGROUP_MEMORY = 1,
       CGROUP_PIDS = 2,
       CGROUP_CPU = 4,
       CGROUP_FREEZER = 8,
};

/* Of what the limits ask for, and with freezer set that too, as much as can be had. Memory is
 * always bounded: by the limit, else by three quarters of what there is. NULL: nothing can be had.
 */
struct cgroup *cgroup_new(const char *id, const struct config_sandbox *limits, bool freezer);
unsigned cgroup_held(const struct cgroup *g); /* NULL: 0 */
/* Puts a process in, and whatever it starts from then on. */
int cgroup_add(const struct cgroup *g, pid_t pid, struct err *err);
/* Moves the caller to where it is. The kernel has a process that moves wait until every processor
 * knows, which takes some milliseconds; whoever moves soon after another does not wait. */
void cgroup_rehearse(void);
int cgroup_freeze(const struct cgroup *g, bool frozen, struct err *err);
/* Its processes are gone: remove it. NULL is fine. */
void cgroup_free(struct cgroup *g);
/* Remove what a builder that was killed left behind. */
void cgroup_sweep(void);

#endif
