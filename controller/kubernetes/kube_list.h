/* A node's list of CNI plugins (a .conflist; Container Network Interface 1.0, section 1) with
 * durward-cni behind all others, and without it. */
#ifndef DURWARD_KUBE_LIST_H
#define DURWARD_KUBE_LIST_H

#include <jansson.h>
#include <stdbool.h>

#include "err.h"

#define KUBE_LIST_TYPE "durward-cni"

/* A new reference; NULL with err: it is no list of plugins. entry: ours, of that type. What the
 * list says else stays as it is, but that no CHECK is asked for: the interface that the first
 * plugin made is not in the pod. */
json_t *kube_list_with(const json_t *list, const json_t *entry, struct err *err);
json_t *kube_list_without(const json_t *list, struct err *err);

#endif
