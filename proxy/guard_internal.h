/* What guard.c and guard_place.c share: looking for placeholders of a request's own sandbox. */
#ifndef DURWARD_GUARD_INTERNAL_H
#define DURWARD_GUARD_INTERNAL_H

#include "guard.h"

struct hit {
    const struct gate *gate;
    const struct identity *who;
    const char *allowed_secret; /* this one may be here; NULL: none may */
    bool found, stranger, misplaced;
    unsigned own; /* of the allowed secret */
    unsigned lookups;
    struct slice whole; /* the first one found */
};

/* The shapes that placeholders have (secrets/placeholder.h). */
enum { GUARD_KINDS = 4 };
extern const char *const guard_kinds[GUARD_KINDS];

void guard_scan(struct hit *s, struct slice text);
/* Is the whole text exactly this sandbox's placeholder of that secret? */
bool guard_is_own(const struct gate *g, const struct identity *who, const char *secret,
                  struct slice text);
/* A query parameter's name as its reader will see it: escapes decoded, case folded. */
bool guard_parameter_is(struct slice name, const char *known);

/* One part of a list ("a=1&b=2", "a=1; b=2") from the front of *rest; name and value as they stand.
 * False at the end. */
struct guard_part {
    struct slice whole, name, value;
};
bool guard_next_part(struct slice *rest, bool cookie, struct guard_part *ret);

/* Slots that are no field of their own: the client's copy is taken out (query, cookie) or its
 * places are checked (placeholder). NULL, or the code of the refusal. */
const char *guard_place(const struct gate *g, const struct identity *who, struct head *h,
                        const struct rule *rule, bool *inject);

#endif
