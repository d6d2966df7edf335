/* A bounded set of texts; the one that was named least recently goes first. */
#ifndef DURWARD_LRU_SET_H
#define DURWARD_LRU_SET_H

#include <stdbool.h>
#include <stddef.h>

struct lru_set;

struct lru_set *lru_set_new(size_t max); /* NULL when memory is out */
void lru_set_free(struct lru_set *k);    /* NULL is fine */
bool lru_set_has(const struct lru_set *k, const char *text);
/* In or out; where memory is out it is not in. */
void lru_set_put(struct lru_set *k, const char *text, bool in);

#endif
