/* What calls to models cost, by a table that the user owns (`prices`): units of money for a million
 * tokens, kept as millionths of a unit. Which money it is, the table need not say. */
#ifndef DURWARD_PRICE_H
#define DURWARD_PRICE_H

#include "err.h"
#include "slice.h"

struct arena;
struct node;

enum { PRICES_MAX = 512, PRICE_TEXT = 32 };

struct price {
    const char *model;                 /* a pattern */
    uint64_t in, out, cached, written; /* millionths of a unit, for a million tokens */
};

struct price_table {
    size_t n;
    const struct price *list; /* the first whose model fits counts */
};

/* [{ model: gpt-*, in: 2.50, out: 10, cached: 1.25, cache_write: 2.50 }] */
int price_table_read(struct arena *a, const struct node *n, const struct price_table **ret,
                     struct err *err);
const struct price *price_find(const struct price_table *t, struct slice model); /* NULL: none */
/* Of so many tokens, rounded up; tokens: at most 2^30. */
uint64_t price_of(uint64_t per_million, uint64_t tokens);
/* "2.50", at most six decimals, as millionths. -1: it is no such amount. */
int price_amount(struct slice s, uint64_t most, uint64_t *ret);
char *price_text(uint64_t millionths, char *buf, size_t size); /* "2.5". Returns buf */

#endif
