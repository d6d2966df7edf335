/* What the beginnings of requests said that have not ended yet, as terms (audit/terms.h), for their
 * ends: from one file of a log to the next. Bounded; the oldest is given up first. */
#ifndef DURWARD_BEGUN_TERMS_H
#define DURWARD_BEGUN_TERMS_H

#include "compiler.h"

#include <stdint.h>

enum { BEGUN_TERMS_MOST = 20 };

struct begun {
    uint64_t counter, since;
    uint32_t channel;
    uint32_t n; /* terms; 0: this place is free. More than BEGUN_TERMS_MOST: too many to keep */
    uint64_t term[BEGUN_TERMS_MOST];
};

struct begun_terms;

struct begun_terms *begun_terms_new(void);
void begun_terms_free(struct begun_terms *t); /* NULL is fine */
/* A place for this one, with no terms yet. */
struct begun *begun_terms_put(struct begun_terms *t, uint32_t channel, uint64_t counter);
void begun_terms_add(struct begun *b, uint64_t term);
/* NULL: not known. The caller sets n to 0 once it has ended. */
struct begun *begun_terms_find(struct begun_terms *t, uint32_t channel, uint64_t counter);

#endif
