/* The sets of the secrets in use, so that a request does not build an automaton. One a secret and
 * Basic user, built anew when the value has changed, dropped when it was not used for a minute. */
#ifndef DURWARD_SCRUB_CACHE_H
#define DURWARD_SCRUB_CACHE_H

#include "scrub.h"
#include "secret.h"

struct event_base;
struct scrub_cache;

enum { SCRUB_CACHE_MAX = 256, SCRUB_CACHE_IDLE_SECONDS = 60 };

struct scrub_cache *scrub_cache_new(struct event_base *base);
void scrub_cache_free(struct scrub_cache *c); /* NULL is fine */
/* The set for this value, with a reference for the caller; user: of a Basic credential or NULL.
 * NULL: the value's length is out of scrub_forms.h's bounds, or out of memory. */
struct scrub_set *scrub_cache_get(struct scrub_cache *c, const char *name, struct secret *value,
                                  const char *user);

#endif
