/* Matches names of mailboxes, and decides about a session at their server. */
#include "imap_rule.h"

#include <string.h>

bool imap_pattern_ok(struct slice pattern)
{
    for (size_t i = 0; i < pattern.n; i++)
        if ((unsigned char)pattern.p[i] < 0x20 || pattern.p[i] == 0x7f || pattern.p[i] == '%')
            return false;
    return pattern.n > 0 && pattern.n <= IMAP_PATTERN_MAX;
}

/* A star that has to stand for something: else "A/" were a name of "A/ *", and some servers take it
 * for "A". */
static bool star_needs_one(struct slice pattern, size_t star)
{
    return star > 0 && memchr("/.\\", pattern.p[star - 1], 3) != NULL;
}

static bool matches(struct slice pattern, struct slice text)
{
    size_t p = 0, t = 0, star = SIZE_MAX, from = 0;
    while (t < text.n) {
        if (p < pattern.n && pattern.p[p] == '*') {
            star = p;
            from = t + star_needs_one(pattern, star);
            t = from;
            p++;
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
    while (p < pattern.n && pattern.p[p] == '*' && !star_needs_one(pattern, p))
        p++;
    return p == pattern.n && t == text.n;
}

static bool pattern_matches(struct slice pattern, struct slice name)
{
    if (slice_ieq_str(pattern, "INBOX"))
        return slice_eq_str(name, "INBOX");
    return matches(pattern, name);
}

bool imap_folder_allowed(const struct imap_terms *t, struct slice name)
{
    for (size_t i = 0; i < t->n_folders; i++)
        if (pattern_matches(slice_str(t->folders[i]), name))
            return true;
    return t->n_folders == 0;
}

bool imap_folder_whole(const struct imap_terms *t, struct slice name)
{
    for (size_t i = 0; i < t->n_folders; i++)
        if (slice_ends(slice_str(t->folders[i]), SLICE("*")) &&
            pattern_matches(slice_str(t->folders[i]), name))
            return true;
    return t->n_folders == 0;
}

void policy_imap_decide(const struct policy *p, const struct authority *a, struct decision *ret)
{
    const struct policy_request r = {
        .authority = a, .method = SLICE("connect"), .path = SLICE("/")};
    policy_decide(p, &r, ret);
    if (ret->verdict != VERDICT_DENY && !(ret->rule->imap && ret->rule->credential))
        *ret = (struct decision){VERDICT_DENY, ret->rule, "no_rule", false};
}
