/* Decides about a session at a MySQL server. */
#include "mysql_rule.h"

#include <string.h>

const char *const mysql_statement_words[MYSQL_STATEMENT_WORDS] = {"read", "write", "define",
                                                                  "transaction", "session"};

bool mysql_name_ok(struct slice name)
{
    static const char *const own[] = {"mysql", "sys", "performance_schema", "information_schema"};
    if (name.n == 0 || name.n > MYSQL_DATABASE_MAX || name.p[0] == '-')
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (!ascii_is_alnum(name.p[i]) && (name.p[i] == 0 || strchr("_-$", name.p[i]) == NULL))
            return false;
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (slice_ieq_str(name, own[i]))
            return false;
    return true;
}

void policy_mysql_decide(const struct policy *p, const struct authority *a, struct slice database,
                         struct decision *ret)
{
    char path[1 + MYSQL_DATABASE_MAX] = "/-";
    size_t n = 2;
    *ret = (struct decision){VERDICT_DENY, NULL, "mysql_database", false};
    if (database.n > 0 && !mysql_name_ok(database))
        return;
    if (database.n > 0) {
        memcpy(path + 1, database.p, database.n);
        n = 1 + database.n;
    }
    const struct policy_request r = {.authority = a, .method = SLICE("connect"), .path = {path, n}};
    policy_decide(p, &r, ret);
    if (ret->verdict != VERDICT_DENY && (ret->rule->mysql == NULL || ret->rule->credential == NULL))
        *ret = (struct decision){VERDICT_DENY, ret->rule, "no_rule", false};
}
