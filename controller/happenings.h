/* What happened to sandboxes lately, for GET /v1/events: the last ones in memory, numbered. The
 * audit log is the record. */
#ifndef DURWARD_HAPPENINGS_H
#define DURWARD_HAPPENINGS_H

#include <jansson.h>

#include "compiler.h"

struct happenings;

enum { HAPPENINGS_MAX = 1000 };

struct happenings *happenings_new(void); /* NULL: out of memory */
void happenings_free(struct happenings *h);
/* Texts are copied, cut at 256 bytes. NULL h is fine. */
void happenings_add(struct happenings *h, const char *sandbox, const char *what,
                    const char *detail);
/* {events: […], next}: those with a higher number, at most `limit`. */
json_t *happenings_json(const struct happenings *h, uint64_t after, unsigned limit);

#endif
