/* `budget`: what it says, what is refused, its key. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy.h"
#include "tap_main.h"

static struct policy *policy_of(const char *text, struct err *err)
{
    char *json = strdup(text);
    for (char *c = json; c && *c; c++)
        if (*c == '\'')
            *c = '"';
    struct policy *p = json ? policy_parse(json, strlen(json), err) : NULL;
    free(json);
    return p;
}

#define RULE(budget) "{'policy':'p','rules':[{'allow':'a.com','budget':" budget "}]}"

static void test_read(void)
{
    char text[200];
    struct err err = {0};
    struct policy *p =
        policy_of("{'policy':'p','budget':{'requests':'5/s'},'rules':[{'allow':'a.com','budget':"
                  "{'requests':['10/10s','1000/d'],'upload':'50MB/h','download':'1500KB/m'}}]}",
                  &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    const struct budget *b = policy_rule(p, 0)->budget, *whole = policy_budget(p);
    CU_ASSERT_EQUAL(b->n, 4);
    CU_ASSERT(b->limits[0].kind == BUDGET_REQUESTS && b->limits[0].amount == 10 &&
              b->limits[0].seconds == 10);
    CU_ASSERT(b->limits[1].seconds == 86400 && b->limits[1].amount == 1000);
    CU_ASSERT(b->limits[2].kind == BUDGET_UPLOAD && b->limits[2].amount == 50000000 &&
              b->limits[2].seconds == 3600);
    CU_ASSERT(b->limits[3].kind == BUDGET_DOWNLOAD && b->limits[3].amount == 1500000);
    CU_ASSERT_STRING_EQUAL(budget_text(b, text, sizeof text),
                           "requests 10/10s, requests 1000/d, upload 50MB/h, download 1500KB/m");
    CU_ASSERT(whole->n == 1 && whole->key == 1 && b->key != 1);
    CU_ASSERT(budget_has(b, BUDGET_UPLOAD) && !budget_has(whole, BUDGET_UPLOAD) &&
              !budget_has(NULL, BUDGET_REQUESTS));
    policy_free(p);
}

static void test_refused(void)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {RULE("{}"), "an empty budget"},
        {RULE("{'request':'1/s'}"), "did you mean 'requests'?"},
        {RULE("{'requests':5}"), "requests"},
        {RULE("{'requests':'0/s'}"), "no such limit"},
        {RULE("{'requests':'5'}"), "no such limit"},
        {RULE("{'requests':'5/w'}"), "no such limit"},
        {RULE("{'requests':'5/2d'}"), "at most a day"},
        {RULE("{'requests':'5/0s'}"), "no such limit"},
        {RULE("{'requests':'5MB/s'}"), "no such limit"},
        {RULE("{'requests':'-5/s'}"), "no such limit"},
        {RULE("{'requests':'99999999999999999999/s'}"), "no such limit"},
        {RULE("{'upload':'5/s'}"), "with B, KB, MB or GB"},
        {RULE("{'upload':'9999999999GB/s'}"), "no such limit"},
        {RULE("{'requests':['1/s','2/s']}"), "two limits for the same time"},
        {RULE("{'requests':['1/60s','2/m']}"), "two limits for the same time"},
        {"{'policy':'p','rules':[{'deny':'a.com','budget':{'requests':'1/s'}}]}", "no meaning"},
        {"{'policy':'p','rules':[{'allow':'a.com','tunnel':true,'budget':{'requests':'1/s'}}]}",
         "cannot hold in a tunnel"},
        {"{'policy':'p','budget':{'requests':'1/s'},'rules':[{'allow':'a.com','tunnel':true}]}",
         "would not be counted"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = {0};
        struct policy *p = policy_of(rows[i].text, &err);
        CU_ASSERT_PTR_NULL(p);
        if (strstr(err.text, rows[i].says) == NULL) {
            printf("# %s: %s\n", rows[i].text, err.text);
            CU_FAIL("the message");
        }
        policy_free(p);
    }
}

/* The count goes on when an amount is changed, and begins anew with another rule. */
static void test_key(void)
{
    struct err err = {0};
    struct policy *a = policy_of(RULE("{'requests':'5/s'}"), &err),
                  *b = policy_of(RULE("{'requests':'9/h','upload':'1B/d'}"), &err),
                  *c = policy_of("{'policy':'p','rules':[{'allow':'b.com','budget':{'requests':"
                                 "'5/s'}}]}",
                                 &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(a && b && c ? a : NULL);
    CU_ASSERT_EQUAL(policy_rule(a, 0)->budget->key, policy_rule(b, 0)->budget->key);
    CU_ASSERT_NOT_EQUAL(policy_rule(a, 0)->budget->key, policy_rule(c, 0)->budget->key);
    policy_free(a);
    policy_free(b);
    policy_free(c);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("budget", NULL, NULL);
    CU_add_test(s, "what is read", test_read);
    CU_add_test(s, "what is refused", test_refused);
    CU_add_test(s, "which one it is", test_key);
}
