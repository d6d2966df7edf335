/* Where a reply is searched beside its body: the fields of its head or trailers, and the messages
 * of a tunnel. */
#ifndef DURWARD_SCRUB_PLACES_H
#define DURWARD_SCRUB_PLACES_H

#include "http_head.h"
#include "scrub.h"
#include "tunnel.h"

/* A copy of `from` with each value looked through for itself. How many hits, or -1 when memory is
 * out. The caller frees `to` in either case. */
ssize_t scrub_head(const struct scrub_set *set, struct head *to, const struct head *from);
/* A coded body could hold anything, and the injector has no decoder (attack C13). */
bool scrub_head_coded(const struct head *h);

/* A scrub over the messages of a tunnel: each is one stream, whatever its fragments. */
struct scrub_frames {
    struct scrub *scrub; /* borrowed */
    uint64_t hits;       /* in control frames, beside scrub_hits */
};

struct tunnel_filter scrub_frames_filter(struct scrub_frames *f);

#endif
