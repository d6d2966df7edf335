/* Making a policy rule by rule, with the place of each in messages; the loader's view of it.
 * Internal to rules/. */
#ifndef DURWARD_POLICY_BUILD_H
#define DURWARD_POLICY_BUILD_H

#include "rule.h"

enum { POLICY_RULES_MAX = 20000, POLICY_ARMS_MAX = 65536 };

/* secrets: see rule_read; borrowed until policy_seal. */
struct policy *policy_new(const char *name, const json_t *secrets);
/* Read one allow or deny rule (no `use`). */
int policy_add(struct policy *p, const struct node *rule, struct err *err);
/* The budget of all its rules together. Before policy_seal. */
int policy_budget_read(struct policy *p, const struct node *n, struct err *err);
/* No more rules: refuse what is ambiguous, build the index. Decides only after this. */
int policy_seal(struct policy *p, struct err *err);
const struct rule_entry *policy_entry(const struct policy *p, size_t i); /* NULL past the end */

/* Tells fn of each deny rule that stands inside a wider allow: the origin may have other names for
 * the same resource. */
void policy_warnings(const struct policy *p,
                     void (*fn)(void *arg, const struct rule_entry *deny,
                                const struct rule_entry *allow),
                     void *arg);

#endif
