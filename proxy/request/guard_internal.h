/* What the files that judge a request's head share: its parts, and how a place in it is said. */
#ifndef DURWARD_GUARD_INTERNAL_H
#define DURWARD_GUARD_INTERNAL_H

#include "guard.h"

/* A query parameter's name as its reader will see it: escapes decoded, case folded. */
bool guard_parameter_is(struct slice name, const char *known);

/* One part of a list ("a=1&b=2", "a=1; b=2") from the front of *rest; name and value as they stand.
 * False at the end. */
struct guard_part {
    struct slice whole, name, value;
};
bool guard_next_part(struct slice *rest, bool cookie, struct guard_part *ret);

/* Say where it was, if nothing is said yet: "header x-api-key". */
void guard_where(struct guard_answer *a, const char *what, struct slice name);
/* And where the rule would have put its credential: "; the rule fills header x-api-key". */
void guard_rule_place(struct guard_answer *a, const struct credential *c);

/* Known names and their twins: nothing that decides, routes or frames comes after the body. */
bool guard_trailer_forbidden(struct slice name);
/* A place of the rule's where the client's copy may stand, by this very name. */
const struct credential *guard_slot(const struct credential *c, struct slice name);

#endif
