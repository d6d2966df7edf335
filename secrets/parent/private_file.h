/* Files of mode 0600 in a directory of the parent's, for what the vault must not lose. */
#ifndef DURWARD_PRIVATE_FILE_H
#define DURWARD_PRIVATE_FILE_H

#include "slice.h"

/* A name as the configuration allows it: no slash, no leading dot. */
bool file_name_ok(const char *s);
/* Whole or not at all: a new file, on disk before it takes the name. */
bool private_file_write(int dir, const char *name, struct slice value);
/* How many bytes it has; 0: there is none, others can read it, or `size` bytes do not hold it. */
size_t private_file_read(int dir, const char *name, char *to, size_t size);

#endif
