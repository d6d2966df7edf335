/* Looking for a secret in the fields of a reply's head or trailers. */
#ifndef DURWARD_SCRUB_HEAD_H
#define DURWARD_SCRUB_HEAD_H

#include "http_head.h"
#include "scrub.h"

/* A copy of `from` with each value looked through for itself. How many hits, or -1 when memory is
 * out. The caller frees `to` in either case. */
ssize_t scrub_head(const struct scrub_set *set, struct head *to, const struct head *from);
/* A coded body could hold anything, and the injector has no decoder (attack C13). */
bool scrub_head_coded(const struct head *h);

#endif
