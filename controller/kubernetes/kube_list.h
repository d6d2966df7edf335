/* A node's list of CNI plugins (a .conflist; Container Network Interface 1.0, section 1) with
 * durward-cni behind all others, and without it. */
#ifndef DURWARD_KUBE_LIST_H
#define DURWARD_KUBE_LIST_H

#include <jansson.h>
#include <stdbool.h>

#include "err.h"

#define KUBE_LIST_TYPE "durward-cni"
/* Before any other by name, so that a runtime uses it and no other: '-' sorts before what a name
 * with a number goes on with. */
#define KUBE_LIST_FILE "0-durward.conflist"

/* A new reference; NULL with err: it is no list of plugins. entry: ours, of that type. What the
 * list says else stays as it is, but that no CHECK is asked for: the interface that the first
 * plugin made is not in the pod. */
json_t *kube_list_with(const json_t *list, const json_t *entry, struct err *err);
json_t *kube_list_without(const json_t *list, struct err *err);
/* Ours anew: of the network's list, or of ours (NULL: there is none) where that was made of the
 * very same, since others may have put a plugin of theirs into it. */
json_t *kube_list_made_of(const json_t *network, const json_t *ours, const json_t *entry,
                          struct err *err);

#endif
