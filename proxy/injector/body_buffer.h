/* A request body that is held until it is whole, because its secret or its hash comes before it.
 * All bodies of a process share one bound, of which each sandbox has its share. */
#ifndef DURWARD_BODY_BUFFER_H
#define DURWARD_BODY_BUFFER_H

#include "buf.h"
#include "quota.h"
#include "stream.h"

enum { BODY_BUFFER_TOTAL_MAX = 64 * 1024 * 1024 };

enum body_buffer_state {
    BODY_BUFFER_OFF = 0,
    BODY_BUFFER_TAKING,
    BODY_BUFFER_WHOLE,
    BODY_BUFFER_LARGE,
    BODY_BUFFER_FULL
};

#define BODY_BUFFER_QUOTA                                             \
    {                                                                 \
        .total = BODY_BUFFER_TOTAL_MAX, .each = BODY_BUFFER_TOTAL_MAX \
    }

struct body_buffer {
    enum body_buffer_state state; /* LARGE: longer than max; FULL: `full` says what is */
    enum quota_end full;
    struct buf body; /* wiped */
    bool keeps;      /* what was sent, too */
    size_t sent;     /* of what it keeps, */
    bool told;       /* and that it has ended */
    size_t max;
    struct quota *total; /* of the process */
    const char *owner;   /* outlives it */
    struct quota_part held;
};

void body_buffer_begin(struct body_buffer *g, size_t max, struct quota *total, const char *owner);
void body_buffer_free(struct body_buffer *g); /* of one that never began, too */
size_t body_buffer_room(const struct body_buffer *g);
void body_buffer_data(struct body_buffer *g, const void *p, size_t n);
void body_buffer_end(struct body_buffer *g);
/* Another body in its place, taken over (b is empty then). */
void body_buffer_replace(struct body_buffer *g, struct buf *b);
/* Pass on what the upstream has room for; true once all is out and its end told. */
bool body_buffer_pump(struct body_buffer *g, struct upstream upstream);
/* Before it is pumped: it stays until body_buffer_free or _release, or is sent again. */
void body_buffer_keep(struct body_buffer *g);
/* It is sent from its start once more, and not kept that time. */
void body_buffer_again(struct body_buffer *g);
/* What was sent is not needed again; nothing to do where it is not kept. */
void body_buffer_release(struct body_buffer *g);

#endif
