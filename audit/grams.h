/* The pieces of 1, 2, 3 and 5 bytes that a text holds, ASCII case folded, as positions in a set of
 * GRAM_BITS bits: a line that holds a text has every piece of it. */
#ifndef DURWARD_GRAMS_H
#define DURWARD_GRAMS_H

#include "slice.h"

enum { GRAM_BITS = 1 << 16, GRAMS_WANTED = 64 };

/* What a search by text reads of a line: all but the chain's fields (seq, prev, at) and the times.
 * Two parts; a text that is found lies in one. Both are empty in a line that is no record. */
void grams_parts(struct slice line, struct slice part[2]);
void grams_add(unsigned char bits[GRAM_BITS / 8], struct slice text);
/* Positions that must be set, GRAMS_WANTED at most; a long text names some of its pieces. */
size_t grams_wanted(struct slice text, uint32_t at[GRAMS_WANTED]);

#endif
