/* Synthetic names of one sandbox: which index (and so which synthetic address) a host name has.
 * Given in order, kept for the sandbox's life, never reused; they outlive the gate that asked. */
#ifndef DURWARD_NAMES_H
#define DURWARD_NAMES_H

#include "compiler.h"

struct names;

/* The first index given is 2: 198.18.0.1 is left free. */
enum { NAMES_FIRST = 2, NAMES_LIMIT = 4096 };

/* limit: how many names, at most NAMES_LIMIT - NAMES_FIRST + 1. NULL when memory is out. */
struct names *names_new(unsigned limit);
void names_free(struct names *n);
/* The index of this canonical host name, new if need be; 0 when full. */
uint32_t names_index(struct names *n, const char *host);
size_t names_count(const struct names *n);

#endif
