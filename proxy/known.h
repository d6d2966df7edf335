/* A bounded set of texts; the one that was named least recently goes first. */
#ifndef DURWARD_KNOWN_H
#define DURWARD_KNOWN_H

#include <stdbool.h>
#include <stddef.h>

struct known;

struct known *known_new(size_t max); /* NULL when memory is out */
void known_free(struct known *k);    /* NULL is fine */
bool known_has(const struct known *k, const char *text);
/* In or out; where memory is out it is not in. */
void known_set(struct known *k, const char *text, bool in);

#endif
