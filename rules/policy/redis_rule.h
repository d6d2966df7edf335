/* Rules of redis:// and rediss://: what a session at a Redis server is, and the decision about it.
 * Front and back of the broker both decide, by this one function. */
#ifndef DURWARD_REDIS_RULE_H
#define DURWARD_REDIS_RULE_H

#include "policy.h"

enum { REDIS_PATTERNS_MAX = 64, REDIS_PATTERN_MAX = 256 };

struct redis_terms {
    bool tls; /* rediss:// */
    bool read_only;
    bool has_database;
    unsigned database; /* that the session has, and may not leave */
    /* "get", "config|get", "h*", "@read"; "!flushdb" takes away. n 0: all that need not be named.
     */
    const char *const *commands;
    size_t n_commands;
    const char *const *keys; /* n 0: any */
    size_t n_keys;
    unsigned megabytes; /* of replies, in a session; 0: any number */
    unsigned seconds;   /* a session; 0: as long as it likes */
};

void policy_redis_decide(const struct policy *p, const struct authority *a, struct decision *ret);
/* '*' is any bytes, none too; all else is itself. */
bool redis_pattern_match(struct slice pattern, struct slice text);

#endif
