/* A scrub over the messages of a tunnel: each is one stream, whatever its fragments. */
#ifndef DURWARD_SCRUB_FRAMES_H
#define DURWARD_SCRUB_FRAMES_H

#include "scrub.h"
#include "tunnel.h"

struct scrub_frames {
    struct scrub *scrub; /* borrowed */
    uint64_t hits;       /* in control frames, beside scrub_hits */
};

struct tunnel_filter scrub_frames_filter(struct scrub_frames *f);

#endif
