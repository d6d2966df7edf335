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
int policy_prices_read(struct policy *p, const struct node *n, struct err *err);
/* The same. */
int policy_identity_read(struct policy *p, const struct node *n, struct err *err);
int policy_budget_read(struct policy *p, const struct node *n, struct err *err);
/* What DNS says of names that no rule names: `names`. */
extern const char *const policy_names_words[2], *const policy_guide_words[2];
int policy_names_read(struct policy *p, const struct node *n, struct err *err);
int policy_guide_read(struct policy *p, const struct node *n, struct err *err);
/* No more rules: refuse what is ambiguous, build the index. Decides only after this. */
int policy_seal(struct policy *p, struct err *err);
const struct rule_entry *policy_entry(const struct policy *p, size_t i); /* NULL past the end */

/* Tells fn of each rule that denies, asks, or has conditions, and stands inside a wider allow that
 * has not: no spelling gets round it, but the origin may have other names for the same resource. */
void policy_warnings(const struct policy *p,
                     void (*fn)(void *arg, const struct rule_entry *narrow,
                                const struct rule_entry *wide),
                     void *arg);
/* Tells fn of each allow or ask rule that decides no request, since others decide all of them: a
 * deny, an ask, or a rule before it with the same patterns and another effect. `by` is one of
 * those.
 */
void policy_idle(const struct policy *p,
                 void (*fn)(void *arg, const struct rule_entry *idle, const struct rule_entry *by),
                 void *arg);

#endif
