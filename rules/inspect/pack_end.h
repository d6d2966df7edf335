/* Where a pack ends that comes in pieces (gitformat-pack(5)): a stream of git's own protocol says
 * only by its pack when a push is all there. */
#ifndef DURWARD_PACK_END_H
#define DURWARD_PACK_END_H

#include "slice.h"

#include <zlib.h>

enum pack_end_state {
    PACK_END_HEAD = 0, /* "PACK", version, number of objects */
    PACK_END_TYPE,     /* of an object, and its size */
    PACK_END_SIZE,
    PACK_END_OFFSET, /* of its base */
    PACK_END_ID,     /* the same */
    PACK_END_DATA,
    PACK_END_SUM,
    PACK_END_WHOLE,
    PACK_END_BAD,
};

struct pack_end {
    enum pack_end_state state;
    unsigned char head[12];
    unsigned have; /* of what the state reads */
    unsigned id_n; /* 20 or 32 */
    uint32_t objects;
    int type;
    uint64_t inflated;
    z_stream z;
    bool has_z;
};

/* id_n: bytes of an object's name. */
void pack_end_init(struct pack_end *e, unsigned id_n);
/* More of it. WHOLE: it ended with these bytes, or before their end; BAD: it is none, or inflates
 * to more than PACK_INFLATED_MAX; else there is more to come. */
enum pack_end_state pack_end_take(struct pack_end *e, struct slice bytes);
void pack_end_done(struct pack_end *e);

#endif
