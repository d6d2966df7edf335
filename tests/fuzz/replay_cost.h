/* Processor time and heap of one run of a fuzz target. */
#ifndef DURWARD_REPLAY_COST_H
#define DURWARD_REPLAY_COST_H

#include <stddef.h>
#include <stdint.h>

struct replay_cost {
    uint64_t ns; /* the least of several runs */
    size_t heap; /* most that was allocated at once during a run, beyond what was before it */
};

void replay_cost(const uint8_t *data, size_t n, struct replay_cost *c);

#endif
