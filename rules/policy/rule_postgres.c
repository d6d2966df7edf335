/* Reads a rule whose patterns are of postgres://: a database, what a session there may do, and as
 * whom. */
#include "rule.h"
#include "postgres_rule.h"

#include <stdio.h>
#include <string.h>

static const struct slice mark = SLICE_INIT("postgres://");
static const char *const own_keys[] = {"role", "statements", "rows", "megabytes", "seconds"};

bool rule_postgres_is(const struct node *patterns)
{
    size_t count;
    struct node item;
    const char *text;
    if (node_strings(patterns, &count, NULL) < 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (node_strings_at(patterns, i, &item, &text, NULL) == 0 &&
            slice_starts(slice_str(text), mark))
            return true;
    return false;
}

/* Of another rule: what only these have. */
int rule_postgres_absent(const struct node *rule, const struct rule *r, struct err *err)
{
    struct node n;
    for (size_t i = 0; i < ARRAY_LEN(own_keys); i++)
        if (node_get(rule, own_keys[i], &n))
            return node_fail(&n, err, "'%s' goes with patterns of postgres://", own_keys[i]);
    if (r->credential && r->credential->kind == CREDENTIAL_POSTGRES && node_get(rule, "with", &n))
        return node_fail(&n, err, "'postgres_login' goes with patterns of postgres://");
    return 0;
}

static int check_keys(const struct node *rule, bool deny, struct err *err)
{
    static const char *const fit[] = {"allow", "with", "access", "to"};
    for (void *it = json_object_iter(rule->value); it;
         it = json_object_iter_next(rule->value, it)) {
        const char *key = json_object_iter_key(it);
        struct node at;
        bool good = deny && strcmp(key, "deny") == 0;
        for (size_t i = 0; !deny && i < ARRAY_LEN(fit); i++)
            good = good || strcmp(key, fit[i]) == 0;
        for (size_t i = 0; !deny && i < ARRAY_LEN(own_keys); i++)
            good = good || strcmp(key, own_keys[i]) == 0;
        if (good)
            continue;
        node_get(rule, key, &at);
        if (strcmp(key, "ask") == 0)
            return node_fail(&at, err,
                             "nobody can be asked about postgres:// yet; 'allow' or 'deny'");
        return node_fail(&at, err, "'%s' has no meaning for postgres://", key);
    }
    return 0;
}

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

static int read_statements(const struct node *rule, struct postgres_terms *t, struct err *err)
{
    struct node n, item;
    size_t count;
    const char *text;
    t->statements = (1u << POSTGRES_STATEMENT_WORDS) - 1;
    if (!node_get(rule, "statements", &n))
        return 0;
    if (node_strings(&n, &count, err) < 0)
        return -1;
    t->statements = 0;
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        if (node_strings_at(&n, i, &item, &text, err) < 0)
            return -1;
        while (k < POSTGRES_STATEMENT_WORDS && strcmp(postgres_statement_words[k], text) != 0)
            k++;
        if (k == POSTGRES_STATEMENT_WORDS)
            return node_fail(&item, err,
                             "'%.40s' is not one of: read, write, define, transaction, session, "
                             "listen",
                             text);
        t->statements |= 1u << k;
    }
    return 0;
}

static int read_pattern(struct arena *a, const struct node *n, const char *text,
                        struct rule_entry *e, struct err *err)
{
    struct err inner = {0};
    struct slice rest = slice_str(text);
    struct rule_arm *arm = &e->arms[e->n_arms];
    if (!slice_starts(rest, mark))
        return node_fail(n, err, "'%.200s': a rule has either patterns of postgres:// or others",
                         text);
    rest = (struct slice){rest.p + mark.n, rest.n - mark.n};
    ssize_t slash = slice_find(rest, '/');
    struct slice database =
        slash < 0 ? SLICE("") : (struct slice){rest.p + slash + 1, rest.n - (size_t)slash - 1};
    bool any = slice_eq_str(database, "*");
    if (slice_find(rest, '@') >= 0)
        return node_fail(
            n, err, "'%.200s': whom to log in as says the secret: postgres://HOST/DATABASE", text);
    if (!(slash < 0 && e->deny) && !any && !postgres_name_ok(database))
        return node_fail(n, err,
                         "'%.200s': write postgres://HOST[:PORT]/DATABASE, or '*' for any database",
                         text);
    if (pattern_parse(a, text, &arm->pattern, &inner) < 0)
        return node_fail(n, err, "%s", inner.text);
    arm->pattern.text = arena_str(a, text);
    arm->methods = e->deny ? METHODS_ANY : verb_bit(SLICE("connect"));
    e->n_arms++;
    return 0;
}

static int read_credential(struct arena *a, const struct node *rule, const json_t *secrets,
                           struct rule_entry *ret, struct err *err)
{
    struct node n;
    if (!node_get(rule, "with", &n))
        return node_fail(rule, err,
                         "a rule of postgres:// needs 'with: { postgres_login: SECRET }'");
    if (rule_credential_read(a, &n, secrets, &ret->rule.credential, err) < 0)
        return -1;
    if (ret->rule.credential->kind != CREDENTIAL_POSTGRES)
        return node_fail(&n, err,
                         "what goes with postgres:// is 'with: { postgres_login: SECRET }'");
    return 0;
}

int rule_postgres_read(struct arena *a, const struct node *rule, const struct node *patterns,
                       const json_t *secrets, struct rule_entry *ret, struct err *err)
{
    struct postgres_terms *t = arena_zalloc(a, 1, sizeof *t);
    struct node n, item;
    size_t count, word;
    const char *text;
    ret->rule.postgres = t;
    if (check_keys(rule, ret->deny, err) < 0 || read_role(a, rule, t, err) < 0 ||
        read_statements(rule, t, err) < 0 ||
        node_key_word(rule, rule_keys, "access", &word, err) < 0 ||
        node_key_uint(rule, rule_keys, "rows", &t->rows, err) < 0 ||
        node_key_uint(rule, rule_keys, "megabytes", &t->megabytes, err) < 0 ||
        node_key_uint(rule, rule_keys, "seconds", &t->seconds, err) < 0 ||
        node_strings(patterns, &count, err) < 0)
        return -1;
    t->read_only = node_get(rule, "access", &n);
    ret->read_only = t->read_only;
    ret->arms = arena_zalloc(a, count + 1, sizeof *ret->arms);
    for (size_t i = 0; i < count; i++)
        if (node_strings_at(patterns, i, &item, &text, err) < 0 ||
            read_pattern(a, &item, text, ret, err) < 0)
            return -1;
    if (ret->deny)
        return 0;
    return read_credential(a, rule, secrets, ret, err) < 0 ? -1
                                                           : rule_to_read(a, rule, &ret->rule, err);
}
