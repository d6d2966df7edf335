/* Memory that lives and dies together: the strings and tables of one policy or configuration.
 * Never returns NULL: when memory is out the process ends, as in paths_join(). */
#ifndef DURWARD_ARENA_H
#define DURWARD_ARENA_H

#include "compiler.h"
#include "slice.h"

struct arena;

struct arena *arena_new(void);
void arena_free(struct arena *a);                               /* NULL is fine */
void *arena_zalloc(struct arena *a, size_t count, size_t size); /* zeroed, aligned for anything */
char *arena_slice(struct arena *a, struct slice s);             /* NUL-terminated copy */
char *arena_str(struct arena *a, const char *s);                /* NULL gives NULL */
/* A copy of `old` (count elements) with room for `want`; for tables that grow while being built. */
void *arena_grow(struct arena *a, const void *old, size_t count, size_t want, size_t size);

#endif
