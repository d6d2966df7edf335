/* Reads a rule whose patterns are of mysql://: a database, what a session there may do, and as
 * whom. */
#include "mysql_rule.h"
#include "rule_broker.h"

#include <string.h>

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
    return rule_broker_words(r->rule, "statements", mysql_statement_words, MYSQL_STATEMENT_WORDS,
                             &t->statements, err) < 0 ||
                   node_key_word(r->rule, rule_keys, "access", &word, err) < 0 ||
                   node_key_bool(r->rule, "multi_statements", &t->multi_statements, err) < 0 ||
                   node_key_bool(r->rule, "local_infile", &t->local_infile, err) < 0 ||
                   node_key_bool(r->rule, "activity", &t->activity, err) < 0 ||
                   node_key_uint(r->rule, rule_keys, "rows", &t->rows, err) < 0 ||
                   node_key_uint(r->rule, rule_keys, "megabytes", &t->megabytes, err) < 0 ||
                   node_key_uint(r->rule, rule_keys, "seconds", &t->seconds, err) < 0
               ? -1
               : 0;
}

static const char *const keys[] = {"statements", "multi_statements", "local_infile", "activity",
                                   "rows",       "megabytes",        "seconds"};

const struct rule_broker rule_mysql = {
    .mark = SLICE_INIT("mysql://"),
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .with = "mysql_login",
    .kind = CREDENTIAL_MYSQL,
    .certificates = CERTIFICATE_BESIDE,
    .arms = 1,
    .terms = read_terms,
    .pattern = read_pattern,
};
