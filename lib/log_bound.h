/* How many lines a second somebody may have written on our standard error; what is left out is
 * counted and told. */
#ifndef DURWARD_LOG_BOUND_H
#define DURWARD_LOG_BOUND_H

#include <stdbool.h>
#include <stdint.h>

enum { LOG_LINES_A_SECOND = 16 };

struct log_bound {
    int64_t second;
    unsigned lines;    /* in it */
    uint64_t left_out; /* not told yet */
};

/* May one more be written in this second? *told: so many were left out before, to be said now. */
static inline bool log_bound_take(struct log_bound *b, int64_t second, uint64_t *told)
{
    *told = 0;
    if (second != b->second) {
        *told = b->left_out;
        *b = (struct log_bound){.second = second};
    }
    if (b->lines < LOG_LINES_A_SECOND) {
        b->lines++;
        return true;
    }
    b->left_out++;
    return false;
}

#endif
