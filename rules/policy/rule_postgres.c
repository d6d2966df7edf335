/* Reads a rule whose patterns are of postgres://: a database, what a session there may do, and as
 * whom. */
#include "postgres_rule.h"
#include "rule_broker.h"

#include <string.h>

static int read_role(struct arena *a, const struct node *rule, struct postgres_terms *t,
                     struct err *err)
{
    struct node n;
    const char *role;
    if (!node_get(rule, "role", &n))
        return 0;
    if (node_string(&n, &role, err) < 0)
        return -1;
    if (!postgres_name_ok(slice_str(role)) || strcmp(role, "none") == 0)
        return node_fail(&n, err,
                         "'%.80s' is not the name of a role: 1 to 63 letters, digits, '_', '-', "
                         "'.' and '$', and not 'none'",
                         role);
    t->role = arena_str(a, role);
    return 0;
}

/* As whom a certificate logs in that the server maps to another name than its own. */
static int read_user(struct rule_broker_reading *r, struct err *err)
{
    struct node n;
    const char *user;
    if (!node_get(r->rule, "user", &n))
        return 0;
    if (node_string(&n, &user, err) < 0)
        return -1;
    if (r->entry->rule.credential->kind != CREDENTIAL_CERTIFICATE)
        return node_fail(&n, err, "'user' stands in 'postgres_login', which names it already");
    if (strlen(user) > POSTGRES_DATABASE_MAX)
        return node_fail(&n, err, "'user' is the name of a role: 1 to 63 bytes");
    ((struct postgres_terms *)r->terms)->user = arena_str(r->arena, user);
    return 0;
}

static int read_pattern(struct rule_broker_reading *r, const struct node *n, const char *text,
                        struct slice rest, struct err *err)
{
    ssize_t slash = slice_find(rest, '/');
    struct slice database =
        slash < 0 ? SLICE("") : (struct slice){rest.p + slash + 1, rest.n - (size_t)slash - 1};
    bool any = slice_eq_str(database, "*"), deny = r->entry->deny;
    if (slice_find(rest, '@') >= 0)
        return node_fail(
            n, err, "'%.200s': whom to log in as says the secret: postgres://HOST/DATABASE", text);
    if (!(slash < 0 && deny) && !any && !postgres_name_ok(database))
        return node_fail(n, err,
                         "'%.200s': write postgres://HOST[:PORT]/DATABASE, or '*' for any database",
                         text);
    return rule_broker_arm(r, n, text, text, deny ? METHODS_ANY : verb_bit(SLICE("connect")), err);
}

static int read_terms(struct rule_broker_reading *r, struct err *err)
{
    struct postgres_terms *t = arena_zalloc(r->arena, 1, sizeof *t);
    size_t word;
    r->terms = t;
    r->entry->rule.postgres = t;
    t->read_only = r->entry->read_only;
    return read_role(r->arena, r->rule, t, err) < 0 ||
                   rule_broker_words(r->rule, "statements", postgres_statement_words,
                                     POSTGRES_STATEMENT_WORDS, &t->statements, err) < 0 ||
                   node_key_word(r->rule, rule_keys, "access", &word, err) < 0 ||
                   node_key_bool(r->rule, "activity", &t->activity, err) < 0 ||
                   node_key_uint(r->rule, rule_keys, "rows", &t->rows, err) < 0 ||
                   node_key_uint(r->rule, rule_keys, "megabytes", &t->megabytes, err) < 0 ||
                   node_key_uint(r->rule, rule_keys, "seconds", &t->seconds, err) < 0
               ? -1
               : 0;
}

static const char *const keys[] = {"role", "user",      "statements", "activity",
                                   "rows", "megabytes", "seconds"};

const struct rule_broker rule_postgres = {
    .mark = SLICE_INIT("postgres://"),
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .with = "postgres_login",
    .kind = CREDENTIAL_POSTGRES,
    .certificates = CERTIFICATE_ALONE,
    .arms = 1,
    .terms = read_terms,
    .pattern = read_pattern,
    .server = read_user,
};
