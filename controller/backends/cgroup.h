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
 * beside: tasks of ours in it, which do not count for the sandbox. */
struct cgroup *cgroup_new(const char *id, const struct config_sandbox *limits, unsigned beside,
                          bool freezer);
unsigned cgroup_held(const struct cgroup *g); /* NULL: 0 */
/* fork() into it; the child calls cgroup_enter() before it starts anything. NULL: just fork().
 *
 * To move a process that runs (cgroup.procs) the kernel waits until every processor knows, which
 * takes 5 to 15 ms, and meanwhile nobody on the host can fork. Neither of the two waits: version 2
 * starts a process inside, and in version 1 a thread may move itself. Where clone3 is not to be had
 * (an engine's filter), the child of version 2 moves after all. */
pid_t cgroup_fork(struct cgroup *g);
/* Its only thread calls it, and is inside. */
int cgroup_enter(const struct cgroup *g, struct err *err);
int cgroup_freeze(const struct cgroup *g, bool frozen, struct err *err);
/* Do all of its processes stand still, which takes a moment? */
bool cgroup_frozen(const struct cgroup *g);
/* Its processes are gone: remove it. NULL is fine. */
void cgroup_free(struct cgroup *g);
/* Remove what a builder that was killed left behind. */
void cgroup_sweep(void);

#endif
