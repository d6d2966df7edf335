/* Statements that were read before are not parsed again: what a statement does depends on its text
 * alone, and so is the same in every session and under every rule. */
#ifndef DURWARD_STATEMENT_CACHE_H
#define DURWARD_STATEMENT_CACHE_H

#include "statement.h"

struct statement_cache;

struct statement_cache *statement_cache_new(void); /* NULL: out of memory */
void statement_cache_free(struct statement_cache *of);
/* As statement_read, and the same. True: it was there. */
bool statement_cache_read(struct statement_cache *of, struct slice text, struct statement *ret);

#endif
