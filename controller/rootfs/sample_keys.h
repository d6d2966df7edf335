/* Private keys that are no secret, since they are part of published software. */
#ifndef DURWARD_SAMPLE_KEYS_H
#define DURWARD_SAMPLE_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "slice.h"

/* Is this, the whole content of a file, such a key? A file with one byte more or less is not. */
bool sample_key(struct slice file);
/* Bytes of the largest of them: who reads a file's first bytes must read more than so many, to know
 * the whole. */
size_t sample_key_size_max(void);

#endif
