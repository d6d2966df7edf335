/* What is left to the processes of a pod's keeper (kube_keeper.h), in two steps. */
#ifndef DURWARD_KUBE_CONFINE_H
#define DURWARD_KUBE_CONFINE_H

#include "err.h"

/* For who asks the API server: the token, files that a name's resolution needs, TCP and UDP. No
 * other process, no unix socket, no other program. keep: a directory, or -1. */
int kube_confine(const char *token, int keep, struct err *err);
/* Then, for who carries what a pod says: what it has open, and nothing else. */
int kube_confine_carrier(struct err *err);

#endif
