/* The request methods that Durward lets through at all (attack A24). Case counts. CONNECT and TRACE
 * are not among them: one is the proxy's own, the other echoes what was injected. */
#ifndef DURWARD_METHOD_H
#define DURWARD_METHOD_H

#include "slice.h"

enum { METHOD_COUNT = 19 };

#define METHODS_ALL ((1u << METHOD_COUNT) - 1)

/* A single bit, or 0 when the method is not on the list. */
uint32_t method_bit(struct slice method);
uint32_t methods_read_only(void); /* GET HEAD OPTIONS */
/* Name of the lowest method in the set; NULL for the empty set. */
const char *method_first(uint32_t set);
const char *method_name(unsigned i); /* NULL past the end */

#endif
