/* What exchange (in the gate) and grant (in the injector) have in common: each is the back of one
 * side and the front of the other, and most of what comes goes straight on. A relay stands first in
 * its owner, so that these functions serve as the owner's stream operations. */
#ifndef DURWARD_RELAY_H
#define DURWARD_RELAY_H

#include "stream.h"

#include <time.h>

struct relay {
    struct front front;
    struct back back; /* ops NULL until it is open */
    unsigned status;  /* of the reply, 0 before it */
    uint64_t up, down;
    bool request_ended;
    struct timespec begun;
};

void relay_init(struct relay *r, struct front front);
/* The way to the origin is there: what waits goes on. */
void relay_open(struct relay *r, struct back back);
uint64_t relay_ms(const struct relay *r); /* since relay_init */

/* As a back: towards the origin. */
void relay_up_bytes(void *self, const void *p, size_t n);
void relay_up_end(void *self);
size_t relay_up_room(void *self);
void relay_resume(void *self);
/* As a front: towards the client. */
void relay_down_bytes(void *self, const void *p, size_t n);
size_t relay_down_room(void *self);
void relay_wanted(void *self);

#endif
