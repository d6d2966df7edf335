/* What guard_placeholder.c and guard_place.c share: looking for placeholders of a request's own
 * sandbox. */
#ifndef DURWARD_GUARD_PLACEHOLDER_INTERNAL_H
#define DURWARD_GUARD_PLACEHOLDER_INTERNAL_H

#include "guard_internal.h"
#include "guard_placeholder.h"
#include "placeholder.h"

struct hit {
    const struct gate *gate;
    const struct identity *who;
    const char *allowed_secret; /* this one may be here; NULL: none may */
    bool found, stranger, misplaced;
    unsigned own; /* of the allowed secret */
    unsigned lookups;
    struct slice whole; /* the first one found */
};

/* The shapes that placeholders have (secrets/proto/placeholder.h). */
enum { GUARD_KINDS = 4 };
extern const char *const guard_kinds[GUARD_KINDS];

void guard_scan(struct hit *s, struct slice text);
/* Is the whole text exactly this sandbox's placeholder of that secret? */
bool guard_is_own(const struct gate *g, const struct identity *who, const char *secret,
                  struct slice text);
/* This sandbox's own placeholder of a secret. -1: it has none. */
int guard_placeholder_of(const struct gate *g, const struct identity *who, const char *secret,
                         char to[PLACEHOLDER_MAX]) WUNUSED;
/* Slots that are no field of their own: the client's copy is taken out (query, cookie) or its
 * places are checked (placeholder). NULL, or the code of the refusal. */
const char *guard_place(const struct gate *g, const struct identity *who, struct head *h,
                        const struct rule *rule, struct guard_answer *ret);

#endif
