/* The life of a sandbox's pod at the API server: made, watched, deleted; and those that a keeper
 * left behind which was killed. */
#ifndef DURWARD_KUBE_LIFE_H
#define DURWARD_KUBE_LIFE_H

#include "kube_session.h"

/* Makes the pod, writes a byte to ready once it runs, and returns when it is over: 0; -1 with err:
 * it did not come to run. The descriptor is the caller's. */
int kube_make(const struct kube_place *at, const json_t *plan, int ready, struct err *err);
/* Deletes it, and waits until its node says that it is gone. One that there is not is fine. */
int kube_unmake(const struct kube_place *at, struct err *err);

#endif
