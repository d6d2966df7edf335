/* Copies a directory of the host's into one of ours, for a sandbox that nothing can be bound in. */
#ifndef DURWARD_WORK_IN_H
#define DURWARD_WORK_IN_H

#include "buf.h"
#include "err.h"
#include "out.h"
#include "work_list.h"

enum { WORK_ENTRIES_MAX = 300000, WORK_DEPTH_MAX = 64 };

#define WORK_BYTES_MAX (UINT64_C(4) << 30)

struct work_count {
    uint64_t bytes, entries;
    uint64_t bytes_max, entries_max;
    unsigned
        left_out; /* sockets, devices, pipes, what the caller may not read, what lies too deep */
    struct out_progress progress;
};

/* Files that are known to hold credentials (controller/rootfs/mask.h) are not copied: notes gets a
 * line for each. from, to: open directories. source: from's path. -1 when it cannot be copied whole
 * within the bounds. */
int work_copy_in(int from, int to, const char *source, struct work_count *count, struct buf *notes,
                 struct work_list *ret, struct err *err) WUNUSED;

/* All bytes of an open file, at most *left of them, which sinks. -1 with err. */
int work_copy_bytes(int from, int to, uint64_t *left, const char *what, struct err *err) WUNUSED;

#endif
