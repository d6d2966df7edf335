/* Says which rules of a policy a further one would stand beside, and which it would step before. */
#include "policy_build.h"

bool policy_overlaps(const struct policy *p, size_t i, const struct policy *with)
{
    const struct rule_entry *a = policy_entry(p, i), *b = policy_entry(with, 0);
    for (size_t m = 0; a && b && m < a->n_arms; m++)
        for (size_t n = 0; n < b->n_arms; n++)
            if (pattern_intersects(&a->arms[m].pattern, &b->arms[n].pattern, NULL, 0))
                return true;
    return false;
}

/* Of some request of both arms the first one's rule decides: by the order of policy_index.c, where
 * that rule is the first of the list. */
static bool arm_steps(const struct rule_arm *first, const struct rule_arm *other)
{
    int r = pattern_order(&first->pattern, &other->pattern);
    if (r == 0)
        r = __builtin_popcount(first->methods) - __builtin_popcount(other->methods);
    return r <= 0 && (first->methods & other->methods) != 0 &&
           pattern_intersects(&first->pattern, &other->pattern, NULL, 0);
}

const struct rule *policy_first_steps(const struct policy *p)
{
    const struct rule_entry *first = policy_entry(p, 0), *e;
    for (size_t i = 1; first && (e = policy_entry(p, i)) != NULL; i++) {
        if (e->deny || e->rule.ask || e->terms == first->terms)
            continue;
        for (size_t m = 0; m < first->n_arms; m++)
            for (size_t n = 0; n < e->n_arms; n++)
                if (arm_steps(&first->arms[m], &e->arms[n]))
                    return &e->rule;
    }
    return NULL;
}
