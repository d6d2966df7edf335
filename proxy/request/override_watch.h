/* The body of a request that is decided by its method, as it passes on: where a field of it asks
 * the origin to act on another method (override.h), it goes no further, so that the origin never
 * has the whole of it. In the gate for what it sends itself, in the injector for the rest. */
#ifndef DURWARD_OVERRIDE_WATCH_H
#define DURWARD_OVERRIDE_WATCH_H

#include "http_head.h"

struct event_base;
struct override_watch;

/* NULL with *memory false: no body of this head has such a field. found: once, from the event
 * loop; the watch may be freed in it, and says so again a little later while it returns false. */
struct override_watch *override_watch_new(struct event_base *base, const struct head *h,
                                          bool (*found)(void *arg), void *arg, bool *memory);
void override_watch_free(struct override_watch *w); /* NULL is fine */
/* True: nothing more of this body may go on, its end included. NULL is fine. */
bool override_watch_data(struct override_watch *w, const void *p, size_t n);
bool override_watch_found(const struct override_watch *w);

#endif
