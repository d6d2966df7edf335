/* Decides about a session at a PostgreSQL server. */
#include "postgres_rule.h"

#include <string.h>

const char *const postgres_statement_words[POSTGRES_STATEMENT_WORDS] = {
    "read", "write", "define", "transaction", "session", "listen"};

bool postgres_name_ok(struct slice name)
{
    if (name.n == 0 || name.n > POSTGRES_DATABASE_MAX || name.p[0] == '-' || name.p[0] == '.')
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (!ascii_is_alnum(name.p[i]) && (name.p[i] == 0 || strchr("_-.$", name.p[i]) == NULL))
            return false;
    return true;
}

void policy_postgres_decide(const struct policy *p, const struct authority *a,
                            struct slice database, struct decision *ret)
{
    char path[1 + POSTGRES_DATABASE_MAX];
    *ret = (struct decision){VERDICT_DENY, NULL, "postgres_database", false};
    if (!postgres_name_ok(database))
        return;
    path[0] = '/';
    memcpy(path + 1, database.p, database.n);
    const struct policy_request r = {
        .authority = a, .method = SLICE("connect"), .path = {path, 1 + database.n}};
    policy_decide(p, &r, ret);
    if (ret->verdict != VERDICT_DENY &&
        (ret->rule->postgres == NULL || ret->rule->credential == NULL))
        *ret = (struct decision){VERDICT_DENY, ret->rule, "no_rule", false};
}
