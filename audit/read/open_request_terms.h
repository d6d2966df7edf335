/* What the beginnings of requests said that have not ended yet, as terms (audit/read/terms.h), for
 * their ends: from one file of a log to the next. Bounded; the oldest is given up first. */
#ifndef DURWARD_OPEN_REQUEST_TERMS_H
#define DURWARD_OPEN_REQUEST_TERMS_H

#include "compiler.h"

#include <stdint.h>

enum { OPEN_REQUEST_TERMS_MOST = 20 };

struct begun {
    uint64_t counter, since;
    uint32_t channel;
    uint32_t
        n; /* terms; 0: this place is free. More than OPEN_REQUEST_TERMS_MOST: too many to keep */
    uint64_t term[OPEN_REQUEST_TERMS_MOST];
};

struct open_request_terms;

struct open_request_terms *open_request_terms_new(void);
void open_request_terms_free(struct open_request_terms *t); /* NULL is fine */
/* A place for this one, with no terms yet. */
struct begun *open_request_terms_put(struct open_request_terms *t, uint32_t channel,
                                     uint64_t counter);
void open_request_terms_add(struct begun *b, uint64_t term);
/* NULL: not known. The caller sets n to 0 once it has ended. */
struct begun *open_request_terms_find(struct open_request_terms *t, uint32_t channel,
                                      uint64_t counter);

#endif
