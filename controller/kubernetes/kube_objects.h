/* What a cluster's objects are to the node's daemon: policies and bindings judged by the compiler
 * that the daemon itself has, and the text that it reads (node.objects). */
#ifndef DURWARD_KUBE_OBJECTS_H
#define DURWARD_KUBE_OBJECTS_H

#include <jansson.h>

#include "err.h"
#include "slice.h"

#define KUBE_GROUP "durward.internal"
#define KUBE_API   "/apis/" KUBE_GROUP "/v1alpha1"

/* The daemon's configuration, which says the secrets that policies may name. */
struct kube_base {
    const char *path;
    struct slice text;
};

/* NULL, or what is wrong with this policy beside the configuration. With warned (an array) also
 * what loads and may not do what it seems to. */
int kube_judge(const struct kube_base *base, const char *name, const json_t *spec, json_t *warned,
               struct err *err);

/* The objects as node.objects has them. policies, bindings: the lists' items. last: what was made
 * before, or NULL: a policy whose new version is bad keeps its old one, and one that is gone allows
 * nothing. verdicts (an array) gets of each { kind, name, accepted, message }. NULL: out of
 * memory. */
json_t *kube_objects(const struct kube_base *base, const json_t *policies, const json_t *bindings,
                     const json_t *last, json_t *verdicts);

/* The answer to an AdmissionReview of a Policy; NULL: it is none. base NULL: there is nothing to
 * judge beside, and it is refused. */
json_t *kube_review_answer(const struct kube_base *base, const json_t *asked);

#endif
