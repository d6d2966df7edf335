/* Which pods of a cluster are a daemon's own, and which of them somebody keeps. */
#ifndef DURWARD_KUBE_OWNED_H
#define DURWARD_KUBE_OWNED_H

#include <jansson.h>
#include <stdbool.h>

/* locks: CLUSTER_LOCKS. Where it cannot be told the answer is yes: a pod that stays too long is
 * seen again, and one that is deleted is gone. */
bool kube_is_kept(int locks, const char *pod);
/* The body of the request that deletes it: this very one, whatever has its name by then. pod: what
 * the API server says of it. A new reference; NULL: it is not this daemon's. */
json_t *kube_removal(const json_t *pod, const char *daemon);

#endif
