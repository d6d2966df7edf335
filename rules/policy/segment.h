/* One segment of a path pattern: matching and algebra. See pattern.h for the language. */
#ifndef DURWARD_SEGMENT_H
#define DURWARD_SEGMENT_H

#include "pattern.h"

/* Linear in text.n + s->text.n. */
bool segment_matches(const struct segment *s, struct slice text);
bool segment_contains(const struct segment *outer, const struct segment *inner);
/* A text in both, written to `to` (at most size - 1 bytes, NUL-terminated), or false. */
bool segment_intersects(const struct segment *a, const struct segment *b, char *to, size_t size);
/* A short text in the segment's set. */
void segment_example(const struct segment *s, char *to, size_t size);

#endif
