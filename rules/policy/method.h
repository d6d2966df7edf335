/* The request methods that Durward lets through at all (attack A24). Case counts. CONNECT and TRACE
 * are not among them: one is the proxy's own, the other echoes what was injected. */
#ifndef DURWARD_METHOD_H
#define DURWARD_METHOD_H

#include "slice.h"

enum { METHOD_COUNT = 24 };

#define METHODS_ALL ((1u << METHOD_COUNT) - 1)

/* Verbs of brokers, in lower case: what one asks of a server that speaks no HTTP. They stand above
 * the methods and are none: a site has one scheme, and so either methods or verbs. */
enum { VERB_FIRST = 24, VERB_COUNT = 7 };
/* the last bit stands for every other method (METHODS_ANY) */
_Static_assert((int)METHOD_COUNT <= (int)VERB_FIRST && VERB_FIRST + VERB_COUNT <= 31, "32 bits");
#define VERBS_ALL (((1u << VERB_COUNT) - 1) << VERB_FIRST)

/* A single bit, or 0 when the method is not on the list. */
uint32_t method_bit(struct slice method);
/* "fetch", "push", "exec", "shell", "connect", "sign", "sftp"; likewise */
uint32_t verb_bit(struct slice verb);
uint32_t methods_read_only(void); /* GET HEAD OPTIONS */
/* Name of the lowest method in the set; NULL for the empty set. */
const char *method_first(uint32_t set); /* or verb */
const char *method_name(unsigned i);    /* NULL past the end */

#endif
