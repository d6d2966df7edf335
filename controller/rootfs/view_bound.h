/* What the process that serves a volume keeps of its bound. */
#ifndef DURWARD_VIEW_BOUND_H
#define DURWARD_VIEW_BOUND_H

#include <pthread.h>
#include <stdatomic.h>

#include "volume.h"

struct bound {
    pthread_mutex_t own; /* of this process, taken before the lock of all */
    int64_t size;
    unsigned slot;             /* ours */
    int lock;                  /* `usage` */
    struct volume_usage usage; /* as it was read when the lock was taken */
    atomic_uint handles;       /* files and directories that are open here */
    uint32_t n_open;
    uint64_t inodes[VOLUME_OPEN_MAX]; /* of files that are open here: what our slot holds */
    uint32_t opens[VOLUME_OPEN_MAX];  /* how often each is */
};

void bound_init(struct bound *b, const struct volume *v, int lock);

#endif
