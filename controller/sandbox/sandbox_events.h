/* What happened to sandboxes lately, for GET /v1/events: the last ones in memory, numbered. The
 * audit log is the record. */
#ifndef DURWARD_SANDBOX_EVENTS_H
#define DURWARD_SANDBOX_EVENTS_H

#include <jansson.h>

#include "compiler.h"

struct sandbox_events;

enum { SANDBOX_EVENTS_MAX = 1000 };

struct sandbox_events *sandbox_events_new(void); /* NULL: out of memory */
void sandbox_events_free(struct sandbox_events *h);
/* Texts are copied, cut at 256 bytes. NULL h is fine. */
void sandbox_events_add(struct sandbox_events *h, const char *sandbox, const char *what,
                        const char *detail);
/* {events: […], next}: those with a higher number, at most `limit`. */
json_t *sandbox_events_json(const struct sandbox_events *h, uint64_t after, unsigned limit);

#endif
