/* The smallest rules that would have allowed what was denied: each destination with just the
 * methods and paths that were tried. Where many paths differ in one segment only, that segment
 * becomes '*'. */
#ifndef DURWARD_SUGGEST_H
#define DURWARD_SUGGEST_H

#include <jansson.h>

#include "query.h"

struct suggest;

enum { SUGGEST_MAX = 100000 /* distinct denials that are looked at; more are counted only */ };

/* exact: no '*', every path by itself. */
struct suggest *suggest_new(bool exact);
void suggest_free(struct suggest *s);
/* A record. Only what a rule could have allowed counts: denials for want of a rule or a method, and
 * names that were not answered. */
void suggest_add(struct suggest *s, const struct query_row *row);
/* [{"policy":…,"rule":{"allow":…,"methods":[…]},"denied":N}], ordered by policy, then place. */
json_t *suggest_rules(struct suggest *s);
uint64_t suggest_left_out(const struct suggest *s); /* beyond SUGGEST_MAX */

#endif
