/* "did you mean": the candidate that a misspelt word is closest to. */
#ifndef DURWARD_NEAREST_H
#define DURWARD_NEAREST_H

#include "compiler.h"

/* Edits (insert, delete, replace, swap of neighbours) from a to b, at most `max` + 1. */
unsigned nearest_distance(const char *a, const char *b, unsigned max);
/* Index of the closest of n words, or -1 when none is close enough to suggest. word(i, arg) gives
 * them, NULL to skip one. */
ssize_t nearest(const char *s, size_t n, const char *(*word)(size_t i, const void *arg),
                const void *arg);

#endif
