/* What the API server has of one kind, held here: listed once, by pages, and kept from then on by a
 * watch that tells of each object that came, changed or went. Of an object only what `keep` makes
 * of it is held, so that what nobody here looks at (who wrote it, a status) costs no memory, and is
 * no change. Where anything is in doubt all is listed anew. */
#ifndef DURWARD_KUBE_MIRROR_H
#define DURWARD_KUBE_MIRROR_H

#include <jansson.h>

#include "err.h"

struct kube;
struct kube_mirror;

enum {
    KUBE_MIRROR_MAX = 400 * 1000, /* objects: more pods than a cluster may have */
    KUBE_MIRROR_BYTES =
        192 << 20, /* of texts that `keep` makes: who makes pods chooses their labels */
};

struct kube_mirror_of {
    const char *path; /* of the list, with its selectors */
    /* A new reference; NULL: this object is nothing to us. */
    json_t *(*keep)(const json_t *object);
    bool names_only; /* the objects' metadata is asked for and nothing else */
    bool wakes;      /* kube_mirror_wait returns for a change */
};

/* NULL: out of memory. of: its texts outlive the mirror. */
struct kube_mirror *kube_mirror_new(const struct kube_mirror_of *of);
void kube_mirror_free(struct kube_mirror *m);

/* Lists where that has to be, and watches where nothing is watched. Where what comes of it could
 * not be read it rests, longer each time up to 16 s, and what is held stays. */
int kube_mirror_sync(struct kube_mirror *m, const struct kube *k, struct err *err);
/* Until one that wakes has changed (true), one has to be synchronised again, or the time is over.
 * What comes of all of them is taken in meanwhile. */
bool kube_mirror_wait(struct kube_mirror *const *list, size_t n, unsigned seconds);

/* { KEY: what is kept of it }; KEY is NAMESPACE/NAME, or NAME of what has no namespace. */
const json_t *kube_mirror_items(const struct kube_mirror *m);
/* What is kept, as an array: a new reference. */
json_t *kube_mirror_list(const struct kube_mirror *m);
/* One that the API server has answered with: what the watch will say of it is no change, but for
 * another generation, which nobody here has looked at. */
void kube_mirror_put(struct kube_mirror *m, const json_t *object);

#endif
