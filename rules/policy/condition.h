/* What a rule asks of a request beside authority, method and path. The narrowest rule decides; when
 * its conditions are not met the request is denied, no wider rule is tried. Gate and injector both
 * ask here, so a conquered gate gets nothing past it. */
#ifndef DURWARD_CONDITION_H
#define DURWARD_CONDITION_H

#include "policy.h"

/* NULL when every condition on the query is met, else a constant code: "query". A query whose
 * reading is ambiguous (a broken escape, a parameter twice, ";" or "+" in it, bytes that another
 * reader could split at) meets none. */
const char *condition_query(const struct rule *r, struct slice query, bool has_query);

/* One field of the request: how often it is there, and its value if once. */
typedef size_t (*condition_field_fn)(const void *head, const char *name, struct slice *value);
/* NULL, or "header": one that the rule names is absent, twice, or has another value. */
const char *condition_headers(const struct rule *r, condition_field_fn find, const void *head);

#endif
