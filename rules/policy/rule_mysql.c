/* Reads a rule whose patterns are of mysql://: a database, what a session there may do, and as
 * whom. */
#include "mysql_rule.h"
#include "rule_broker.h"

#include <string.h>

static int read_statements(const struct node *rule, struct mysql_terms *t, struct err *err)
{
    struct node n, item;
    size_t count;
    const char *text;
    t->statements = (1u << MYSQL_STATEMENT_WORDS) - 1;
    if (!node_get(rule, "statements", &n))
        return 0;
    if (node_strings(&n, &count, err) < 0)
        return -1;
    t->statements = 0;
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        if (node_strings_at(&n, i, &item, &text, err) < 0)
            return -1;
        while (k < MYSQL_STATEMENT_WORDS && strcmp(mysql_statement_words[k], text) != 0)
            k++;
        if (k == MYSQL_STATEMENT_WORDS)
            return node_fail(&item, err,
                             "'%.40s' is not one of: read, write, define, transaction, session",
                             text);
        t->statements |= 1u << k;
    }
    return 0;
}

static int read_pattern(struct rule_broker_reading *r, const struct node *n, const char *text,
                        struct slice rest, struct err *err)
{
    struct mysql_terms *t = r->terms;
    ssize_t slash = slice_find(rest, '/');
    struct slice database =
        slash < 0 ? SLICE("") : (struct slice){rest.p + slash + 1, rest.n - (size_t)slash - 1};
    bool any = slice_eq_str(database, "*"), deny = r->entry->deny;
    if (slice_find(rest, '@') >= 0)
        return node_fail(
            n, err, "'%.200s': whom to log in as says the secret: mysql://HOST/DATABASE", text);
    if (deny && slash >= 0 && !any)
        return node_fail(n, err,
                         "'%.200s': a session of 'mysql://HOST/*' could go there all the same; "
                         "write mysql://HOST",
                         text);
    if (!deny && !any && !mysql_name_ok(database))
        return node_fail(
            n, err, "'%.200s': write mysql://HOST[:PORT]/DATABASE, or '*' for any database", text);
    t->any_database = t->any_database || any;
    return rule_broker_arm(r, n, text, text, deny ? METHODS_ANY : verb_bit(SLICE("connect")), err);
}

static int read_terms(struct rule_broker_reading *r, struct err *err)
{
    struct mysql_terms *t = arena_zalloc(r->arena, 1, sizeof *t);
    size_t word;
    r->terms = t;
    r->entry->rule.mysql = t;
    t->read_only = r->entry->read_only;
    return read_statements(r->rule, t, err) < 0 ||
                   node_key_word(r->rule, rule_keys, "access", &word, err) < 0 ||
                   node_key_bool(r->rule, "multi_statements", &t->multi_statements, err) < 0 ||
                   node_key_bool(r->rule, "local_infile", &t->local_infile, err) < 0 ||
                   node_key_uint(r->rule, rule_keys, "rows", &t->rows, err) < 0 ||
                   node_key_uint(r->rule, rule_keys, "megabytes", &t->megabytes, err) < 0 ||
                   node_key_uint(r->rule, rule_keys, "seconds", &t->seconds, err) < 0
               ? -1
               : 0;
}

static const char *const keys[] = {"statements", "multi_statements", "local_infile",
                                   "rows",       "megabytes",        "seconds"};

const struct rule_broker rule_mysql = {
    .mark = SLICE_INIT("mysql://"),
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .with = "mysql_login",
    .kind = CREDENTIAL_MYSQL,
    .arms = 1,
    .terms = read_terms,
    .pattern = read_pattern,
};
