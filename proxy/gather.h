/* A request body that is held until it is whole, because its secret or its hash comes before it.
 * All bodies of a process share one bound. */
#ifndef DURWARD_GATHER_H
#define DURWARD_GATHER_H

#include "buf.h"
#include "stream.h"

enum { GATHER_TOTAL_MAX = 64 * 1024 * 1024 };

enum gather_state { GATHER_OFF = 0, GATHER_TAKING, GATHER_WHOLE, GATHER_LARGE, GATHER_FULL };

struct gather {
    enum gather_state state; /* LARGE: longer than max; FULL: the process holds too much already */
    struct buf body;         /* wiped */
    size_t max;
    size_t *total; /* of the process */
    size_t held;   /* our part of it */
};

void gather_begin(struct gather *g, size_t max, size_t *total);
void gather_free(struct gather *g); /* of one that never began, too */
size_t gather_room(const struct gather *g);
void gather_data(struct gather *g, const void *p, size_t n);
void gather_end(struct gather *g);
/* Another body in its place, taken over (b is empty then). */
void gather_replace(struct gather *g, struct buf *b);
/* Pass on what the back has room for; true once all is out and its end told. */
bool gather_pump(struct gather *g, struct back back);

#endif
