/* Basic credentials (RFC 7617): "Basic base64(user:password)", in the canonical spelling only. */
#ifndef DURWARD_BASIC_H
#define DURWARD_BASIC_H

#include "slice.h"

/* A field's value. 0, with the decoded bytes in out (at most size) and *pair over them; -1 when it
 * is no Basic value, is longer than out, or its base64 is not the one RFC 4648 4 gives: whole
 * groups of four of the alphabet, at most two "=", and those at the end. */
int basic_decode(struct slice value, char *out, size_t size, struct slice *pair);
/* The two halves of a pair; -1 when there is no colon. */
int basic_split(struct slice pair, struct slice *user, struct slice *password);

#endif
