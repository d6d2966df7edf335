/* What the process that serves a volume keeps of its bound. */
#ifndef DURWARD_VIEW_BOUND_H
#define DURWARD_VIEW_BOUND_H

#include "volume.h"

struct bound {
    struct volume_usage *usage; /* shared with all who serve the volume */
    int64_t size;
    unsigned slot; /* ours */
    int lock;
    uint32_t opens[VOLUME_OPEN_MAX]; /* how often the file beside it in the slot is open here */
};

void bound_init(struct bound *b, const struct volume *v, int lock);

#endif
