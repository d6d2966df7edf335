/* Rules of mysql://: what they allow, and what is no rule. */
#include "mysql_rule.h"

#include <stdio.h>
#include <string.h>

#include "tap_main.h"

#define WITH "\"with\":{\"mysql_login\":\"k\"}"

static struct policy *parse(const char *rules, struct err *err)
{
    char json[4096];
    snprintf(json, sizeof json, "{\"policy\":\"p\",\"rules\":[%s]}", rules);
    err->text[0] = 0;
    return policy_parse(json, strlen(json), err);
}

static const char *decide(const struct policy *p, const char *at, const char *database,
                          struct decision *d)
{
    struct authority a;
    CU_ASSERT_FATAL(authority_parse(&a, SCHEME_MYSQL, slice_str(at)) == 0);
    policy_mysql_decide(p, &a, slice_str(database), d);
    return d->code;
}

static void test_databases(void)
{
    static const struct {
        const char *at, *database, *code;
    } rows[] = {
        {"db.example.com", "orders", "ok"},
        {"db.example.com:3306", "orders", "ok"},
        {"db.example.com", "ORDERS", "no_rule"},
        {"db.example.com", "orders2", "no_rule"},
        {"db.example.com", "", "no_rule"},
        {"db.example.com:3307", "orders", "no_rule"},
        {"any.example.com", "x", "ok"},
        {"any.example.com", "", "ok"},
        {"any.example.com", "mysql", "mysql_database"},
        {"any.example.com", "Information_Schema", "mysql_database"},
        {"any.example.com", "a/b", "mysql_database"},
        {"any.example.com", "..", "mysql_database"},
        {"any.example.com", "-", "mysql_database"},
        {"any.example.com", "a`b", "mysql_database"},
        {"gone.example.com", "x", "denied_by_rule"},
        {"gone.example.com", "", "denied_by_rule"},
    };
    struct err err;
    struct decision d;
    struct policy *p = parse("{\"allow\":\"mysql://db.example.com/orders\",\"rows\":5,"
                             "\"statements\":[\"read\",\"session\"]," WITH "},"
                             "{\"deny\":\"mysql://gone.example.com\"},"
                             "{\"allow\":[\"mysql://any.example.com/*\","
                             "\"mysql://gone.example.com/x\"],\"access\":\"read-only\","
                             "\"activity\":true," WITH "}",
                             &err);
    if (p == NULL)
        fprintf(stderr, "# %s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *code = decide(p, rows[i].at, rows[i].database, &d);
        if (strcmp(code, rows[i].code) != 0)
            fprintf(stderr, "# %s %s: %s\n", rows[i].at, rows[i].database, code);
        CU_ASSERT_STRING_EQUAL(code, rows[i].code);
    }
    decide(p, "db.example.com", "orders", &d);
    const struct mysql_terms *t = d.rule->mysql;
    CU_ASSERT(!t->read_only && !t->any_database && !t->activity && t->rows == 5 &&
              t->statements == (1 | 16));
    decide(p, "any.example.com", "x", &d);
    t = d.rule->mysql;
    CU_ASSERT(t->read_only && t->any_database && t->activity && t->statements == 31);
    CU_ASSERT(policy_speaks(p, SCHEME_MYSQL) && !policy_speaks(p, SCHEME_POSTGRES));
    policy_free(p);
}

/* The database of a client that names none. */
static void test_only(void)
{
    static const struct {
        const char *at, *only;
    } rows[] = {{"one.example.com", "orders"}, {"two.example.com", ""},
                {"all.example.com", ""},       {"asks.example.com", "books"},
                {"none.example.com", ""},      {"one.example.com:3307", ""},
                {"more.example.com", ""},      {"sub.one.example.com", ""}};
    struct err err;
    struct policy *p = parse(
        "{\"allow\":\"mysql://one.example.com/orders\"," WITH "},"
        "{\"ask\":\"mysql://asks.example.com/books\"," WITH "},"
        "{\"allow\":[\"mysql://two.example.com/a\",\"mysql://two.example.com/b\"]," WITH "},"
        "{\"allow\":\"mysql://all.example.com/*\"," WITH "},"
        "{\"allow\":[\"mysql://more.example.com/a\",\"mysql://more.example.com/*\"]," WITH "}",
        &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct authority a;
        CU_ASSERT_FATAL(authority_parse(&a, SCHEME_MYSQL, slice_str(rows[i].at)) == 0);
        CU_ASSERT(slice_eq_str(policy_only_segment(p, &a), rows[i].only));
    }
    policy_free(p);
}

static void test_no_rules(void)
{
    static const struct {
        const char *rule, *says;
    } rows[] = {
        {"{\"allow\":\"mysql://a.com/d\"}", "needs 'with"},
        {"{\"allow\":\"mysql://a.com/d\",\"with\":{\"bearer\":\"k\"}}", "mysql_login"},
        {"{\"allow\":\"mysql://a.com\"," WITH "}", "HOST[:PORT]/DATABASE"},
        {"{\"allow\":\"mysql://a.com/d/e\"," WITH "}", "HOST[:PORT]/DATABASE"},
        {"{\"allow\":\"mysql://a.com/mysql\"," WITH "}", "HOST[:PORT]/DATABASE"},
        {"{\"allow\":\"mysql://u@a.com/d\"," WITH "}", "says the secret"},
        {"{\"deny\":\"mysql://a.com/d\"}", "write mysql://HOST"},
        {"{\"allow\":[\"mysql://a.com/d\",\"a.com\"]," WITH "}", "or others"},
        {"{\"allow\":\"mysql://a.com/d\",\"methods\":[\"GET\"]," WITH "}", "no meaning"},
        {"{\"allow\":\"mysql://a.com/d\",\"statements\":[\"listen\"]," WITH "}",
         "'listen' is not one of: read, write, define, transaction, session"},
        {"{\"allow\":\"mysql://a.com/d\",\"rows\":0," WITH "}", "rows"},
        {"{\"allow\":\"a.com\",\"local_infile\":true}", "goes with patterns of mysql://"},
        {"{\"allow\":\"a.com\"," WITH "}", "goes with patterns of mysql://"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err;
        struct policy *p = parse(rows[i].rule, &err);
        if (p || strstr(err.text, rows[i].says) == NULL)
            fprintf(stderr, "# %s: %s\n", rows[i].rule, err.text);
        CU_ASSERT(p == NULL && strstr(err.text, rows[i].says) != NULL);
        policy_free(p);
    }
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("mysql_rule", NULL, NULL);
    CU_add_test(s, "databases", test_databases);
    CU_add_test(s, "mysql rules: the only database", test_only);
    CU_add_test(s, "what is no rule", test_no_rules);
}
