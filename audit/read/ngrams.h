/* The pieces of 1, 2, 3 and 5 bytes that a text holds, ASCII case folded, as positions in a set of
 * NGRAM_BITS bits: a line that holds a text has every piece of it. */
#ifndef DURWARD_NGRAMS_H
#define DURWARD_NGRAMS_H

#include "slice.h"

enum { NGRAM_BITS = 1 << 16, NGRAMS_WANTED = 64 };

/* What a search by text reads of a line: all but the chain's fields (seq, prev, at) and the times.
 * Two parts; a text that is found lies in one. Both are empty in a line that is no record. */
void ngrams_parts(struct slice line, struct slice part[2]);
void ngrams_add(unsigned char bits[NGRAM_BITS / 8], struct slice text);
/* Positions that must be set, NGRAMS_WANTED at most; a long text names some of its pieces. */
size_t ngrams_wanted(struct slice text, uint32_t at[NGRAMS_WANTED]);

#endif
