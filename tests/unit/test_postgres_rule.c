/* Rules of postgres://: what they allow, and what is no rule. */
#include "postgres_rule.h"

#include <stdio.h>
#include <string.h>

#include "tap_main.h"

#define WITH  "\"with\":{\"postgres_login\":\"k\"}"
#define ALONE "\"with\":{\"client_certificate\":\"c\"}"
#define BOTH  "\"with\":{\"postgres_login\":\"k\",\"client_certificate\":\"c\"}"
#define SIXTY "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefgh"

static struct policy *parse(const char *rules, struct err *err)
{
    char json[8192];
    snprintf(json, sizeof json, "{\"policy\":\"p\",\"rules\":[%s]}", rules);
    err->text[0] = 0;
    return policy_parse(json, strlen(json), err);
}

static const char *decide(const struct policy *p, const char *at, const char *database,
                          struct decision *d)
{
    struct authority a;
    CU_ASSERT_FATAL(authority_parse(&a, SCHEME_POSTGRES, slice_str(at)) == 0);
    policy_postgres_decide(p, &a, slice_str(database), d);
    CU_ASSERT((d->verdict == VERDICT_ALLOW) == (strcmp(d->code, "ok") == 0));
    return d->code;
}

static void test_databases(void)
{
    static const struct {
        const char *at, *database, *code;
    } rows[] = {
        {"db.example.com", "orders", "ok"},
        {"db.example.com:5432", "orders", "ok"},
        {"db.example.com", "payroll", "denied_by_rule"},
        {"db.example.com", "PAYROLL", "denied_by_rule"},
        {"db.example.com", "order", "no_rule"},
        {"db.example.com", "orders2", "no_rule"},
        {"db.example.com:5433", "orders", "no_rule"},
        {"other.example.com", "orders", "no_rule"},
        {"any.example.com", "x", "ok"},
        {"any.example.com", "payroll", "ok"},
        {"db.example.com", "", "postgres_database"},
        {"db.example.com", "a/b", "postgres_database"},
        {"db.example.com", "..", "postgres_database"},
        {"db.example.com", "-x", "postgres_database"},
        {"db.example.com", "a b", "postgres_database"},
        {"db.example.com", "a%62", "postgres_database"},
        {"gone.example.com", "x", "denied_by_rule"},
    };
    struct err err;
    struct decision d;
    struct policy *p =
        parse("{\"allow\":\"postgres://db.example.com/orders\",\"role\":\"r\",\"rows\":5,"
              "\"statements\":[\"read\",\"session\"]," WITH "},"
              "{\"deny\":\"postgres://db.example.com/payroll\"},"
              "{\"deny\":\"postgres://gone.example.com\"},"
              "{\"allow\":[\"postgres://any.example.com/*\","
              "\"postgres://gone.example.com/x\"],\"access\":\"read-only\"," WITH "}",
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
    CU_ASSERT_STRING_EQUAL(decide(p, "db.example.com", "orders", &d), "ok");
    const struct postgres_terms *t = d.rule->postgres;
    CU_ASSERT(!t->read_only && t->rows == 5 && t->statements == (1 | 16) && t->seconds == 0);
    CU_ASSERT_STRING_EQUAL(t->role, "r");
    CU_ASSERT_STRING_EQUAL(decide(p, "any.example.com", "x", &d), "ok");
    t = d.rule->postgres;
    CU_ASSERT(t->read_only && t->role == NULL && t->statements == 63);
    CU_ASSERT(policy_speaks(p, SCHEME_POSTGRES) && !policy_speaks(p, SCHEME_SSH));
    policy_free(p);
}

/* Which secret a connection shows, and as whom it logs in. */
static void test_certificates(void)
{
    struct err err;
    struct decision d;
    struct policy *p = parse("{\"allow\":\"postgres://a.com/with\"," WITH "},"
                             "{\"allow\":\"postgres://a.com/both\"," BOTH "},"
                             "{\"allow\":\"postgres://a.com/alone\"," ALONE "},"
                             "{\"allow\":\"postgres://a.com/as\",\"user\":\"an agent\"," ALONE "}",
                             &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    decide(p, "a.com", "with", &d);
    CU_ASSERT_PTR_NULL(rule_certificate(d.rule));
    decide(p, "a.com", "both", &d);
    CU_ASSERT_STRING_EQUAL(d.rule->credential->secret, "k");
    CU_ASSERT_STRING_EQUAL(rule_certificate(d.rule), "c");
    decide(p, "a.com", "alone", &d);
    CU_ASSERT(d.rule->postgres->user == NULL && d.rule->credential->other == NULL);
    CU_ASSERT_STRING_EQUAL(rule_certificate(d.rule), "c");
    decide(p, "a.com", "as", &d);
    CU_ASSERT_STRING_EQUAL(d.rule->postgres->user, "an agent");
    policy_free(p);
}

static void test_no_rules(void)
{
    static const struct {
        const char *rule, *says;
    } rows[] = {
        {"{\"allow\":\"postgres://a.com/d\"}", "needs 'with"},
        {"{\"allow\":\"postgres://a.com/d\",\"with\":{\"bearer\":\"k\"}}", "postgres_login"},
        {"{\"allow\":\"postgres://a.com\"," WITH "}", "HOST[:PORT]/DATABASE"},
        {"{\"allow\":\"postgres://a.com/\"," WITH "}", "HOST[:PORT]/DATABASE"},
        {"{\"allow\":\"postgres://a.com/d/e\"," WITH "}", "HOST[:PORT]/DATABASE"},
        {"{\"allow\":\"postgres://a.com/**\"," WITH "}", "HOST[:PORT]/DATABASE"},
        {"{\"allow\":\"postgres://u@a.com/d\"," WITH "}", "says the secret"},
        {"{\"allow\":[\"postgres://a.com/d\",\"a.com\"]," WITH "}", "or others"},
        {"{\"ask\":\"postgres://a.com/d\"}", "needs 'with"},
        {"{\"allow\":\"postgres://a.com/d\",\"budget\":{\"tokens\":\"2M/d\"}," WITH "}",
         "'tokens' and 'cost' have no meaning for postgres://"},
        {"{\"allow\":\"postgres://a.com/d\",\"budget\":{\"rows\":\"2/d\"}," WITH "}", "rows"},
        {"{\"allow\":\"postgres://a.com/d\",\"methods\":[\"GET\"]," WITH "}", "no meaning"},
        {"{\"deny\":\"postgres://a.com/d\",\"role\":\"r\"}", "no meaning"},
        {"{\"allow\":\"postgres://a.com/d\",\"role\":\"none\"," WITH "}", "not the name of a role"},
        {"{\"allow\":\"postgres://a.com/d\",\"role\":\"a b\"," WITH "}", "not the name of a role"},
        {"{\"allow\":\"postgres://a.com/d\",\"statements\":\"drop\"," WITH "}", "is not one of"},
        {"{\"allow\":\"postgres://a.com/d\",\"rows\":0," WITH "}", "rows"},
        {"{\"allow\":\"a.com\",\"role\":\"r\"}", "goes with patterns of postgres://"},
        {"{\"allow\":\"a.com\"," WITH "}", "goes with patterns of postgres://"},
        {"{\"allow\":\"ssh://git@github.com/a/b\"," WITH "}", "ssh_key"},
        {"{\"allow\":\"postgres://a.com/d\",\"user\":\"u\"," WITH "}", "names it already"},
        {"{\"allow\":\"postgres://a.com/d\",\"user\":\"\"," ALONE "}", "user"},
        {"{\"allow\":\"postgres://a.com/d\",\"user\":\"" SIXTY "abcd\"," ALONE "}", "1 to 63"},
        {"{\"allow\":\"a.com\",\"user\":\"u\"," ALONE "}", "goes with patterns of postgres://"},
        {"{\"allow\":\"postgres://a.com/d\"," BOTH "},"
         "{\"allow\":\"postgres://a.com/d\"," WITH "}",
         "credential"},
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
    CU_pSuite s = CU_add_suite("postgres_rule", NULL, NULL);
    CU_add_test(s, "databases", test_databases);
    CU_add_test(s, "certificates", test_certificates);
    CU_add_test(s, "what is no rule", test_no_rules);
}
