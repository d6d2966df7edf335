/* The pod of a sandbox (backend kubernetes): what the API server is asked to make, and what it says
 * became of it. It keeps to Pod Security's `restricted`, has no token of the API server, asks for a
 * node with Durward, and begins with durward-init, which ends it where there is no gate. */
#ifndef DURWARD_KUBE_MANIFEST_H
#define DURWARD_KUBE_MANIFEST_H

#include <jansson.h>

#include "err.h"

#define KUBE_LABEL_SANDBOX "durward.internal/sandbox"
#define KUBE_LABEL_POLICY  "durward.internal/policy" /* a PolicyBinding may go by it */
#define KUBE_LABEL_DAEMON  "durward.internal/daemon" /* whose it is */

/* plan: as controller/backends/cluster.c makes it. A new reference; NULL: out of memory, or it is
 * no such plan. */
json_t *kube_manifest(const json_t *plan);

enum kube_pod_state { KUBE_POD_COMES, KUBE_POD_RUNS, KUBE_POD_OVER };
/* of: what the API server says of it. why: of one that is over; or "". */
enum kube_pod_state kube_pod_state(const json_t *of, char *why, size_t size);

#endif
