/* Decides about a session at a Redis server, and matches its patterns. */
#include "redis_rule.h"

void policy_redis_decide(const struct policy *p, const struct authority *a, struct decision *ret)
{
    const struct policy_request r = {
        .authority = a, .method = SLICE("connect"), .path = SLICE("/")};
    policy_decide(p, &r, ret);
    if (ret->verdict != VERDICT_DENY && (ret->rule->redis == NULL || ret->rule->credential == NULL))
        *ret = (struct decision){VERDICT_DENY, ret->rule, "no_rule", false};
}

bool redis_pattern_match(struct slice pattern, struct slice text)
{
    size_t p = 0, t = 0, star = SIZE_MAX, from = 0;
    while (t < text.n) {
        if (p < pattern.n && pattern.p[p] == '*') {
            star = p++;
            from = t;
        } else if (p < pattern.n && pattern.p[p] == text.p[t]) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.p[p] == '*')
        p++;
    return p == pattern.n;
}
