/* The sets in use, so that a request does not build an automaton. One for each list of secrets and
 * values that is searched for, dropped when it was not used for a minute. */
#ifndef DURWARD_SCRUB_CACHE_H
#define DURWARD_SCRUB_CACHE_H

#include "scrub.h"
#include "secret.h"

struct event_base;
struct scrub_cache;

enum { SCRUB_CACHE_MAX = 256, SCRUB_CACHE_IDLE_SECONDS = 60 };

struct scrub_cache *scrub_cache_new(struct event_base *base);
void scrub_cache_free(struct scrub_cache *c); /* NULL is fine */
/* One value, and the user of its Basic pair; NULL: none. */
struct scrub_source {
    const char *name, *user;
    struct secret *value;
};
/* The set for these values, with a reference for the caller. NULL: the length of one is out of
 * scrub_forms.h's bounds, they are too many, or out of memory. */
struct scrub_set *scrub_cache_get(struct scrub_cache *c, const struct scrub_source *all, size_t n);

#endif
