/* Rules of smtp:// and smtps://: what they allow, and what is no rule. */
#include "smtp_rule.h"

#include <stdio.h>
#include <string.h>

#include "tap_main.h"

#define WITH "\"with\":{\"smtp_login\":\"k\"}"

static struct policy *parse(const char *rules, struct err *err)
{
    char json[4096];
    snprintf(json, sizeof json, "{\"policy\":\"p\",\"rules\":[%s]}", rules);
    err->text[0] = 0;
    return policy_parse(json, strlen(json), err);
}

static const char *decide(const struct policy *p, const char *at, const char *from, const char *to,
                          uint64_t size)
{
    struct authority a;
    struct decision d;
    struct smtp_envelope e = {.sender = slice_str(from), .n = to ? 1 : 0, .size = size};
    e.recipients[0] = slice_str(to);
    CU_ASSERT_FATAL(authority_parse(&a, SCHEME_SMTP, slice_str(at)) == 0);
    policy_smtp_decide(p, &a, &e, &d);
    return d.code;
}

static void test_messages(void)
{
    static const struct {
        const char *at, *from, *to;
        uint64_t size;
        const char *code;
    } rows[] = {
        {"mail.example.com", "agent@acme.example", "bob@acme.example", 0, "ok"},
        {"mail.example.com", "agent@acme.example", "bob@acme.example", 2000000, "ok"},
        {"mail.example.com", "agent@acme.example", "bob@acme.example", 2000001, "smtp_size"},
        {"mail.example.com", "agent@acme.example", "bob@evil.example", 0, "smtp_recipient"},
        {"mail.example.com", "ceo@acme.example", "bob@acme.example", 0, "smtp_sender"},
        {"mail.example.com", "", "bob@acme.example", 0, "smtp_sender"},
        {"mail.example.com", "agent@acme.example", NULL, 0, "smtp_recipients"},
        {"mail.example.com:465", "agent@acme.example", "bob@acme.example", 0, "no_rule"},
        {"other.example.com:465", "", "x@any.example", 25000000, "ok"},
        {"other.example.com:465", "", "x@any.example", 25000001, "smtp_size"},
        {"other.example.com", "", "x@any.example", 0, "no_rule"},
        {"gone.example.com", "", "x@any.example", 0, "denied_by_rule"},
    };
    struct err err;
    struct policy *p = parse(
        "{\"allow\":\"smtp://mail.example.com\",\"recipients\":\"*@acme.example\","
        "\"senders\":[\"agent@acme.example\"],\"message_megabytes\":2," WITH "},"
        "{\"deny\":\"smtp://gone.example.com\"},"
        "{\"allow\":[\"smtps://other.example.com\",\"smtps://gone.example.com:587\"]," WITH "}",
        &err);
    if (p == NULL)
        fprintf(stderr, "# %s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *code = decide(p, rows[i].at, rows[i].from, rows[i].to, rows[i].size);
        if (strcmp(code, rows[i].code) != 0)
            fprintf(stderr, "# row %zu: %s, not %s\n", i, code, rows[i].code);
        CU_ASSERT_STRING_EQUAL(code, rows[i].code);
    }
    policy_free(p);
}

static void test_recipients(void)
{
    struct err err;
    struct authority a;
    struct decision d;
    struct smtp_envelope e = {.n = 3};
    struct policy *p = parse("{\"allow\":\"smtp://m.example.com\",\"message_recipients\":2,"
                             "\"recipients\":[\"*@a.example\",\"b@b.example\"]," WITH "}",
                             &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    CU_ASSERT_FATAL(authority_parse(&a, SCHEME_SMTP, SLICE("m.example.com")) == 0);
    e.recipients[0] = e.recipients[2] = SLICE("x@a.example");
    e.recipients[1] = SLICE("b@b.example");
    policy_smtp_decide(p, &a, &e, &d);
    CU_ASSERT_STRING_EQUAL(d.code, "smtp_recipients");
    e.n = 2;
    policy_smtp_decide(p, &a, &e, &d);
    CU_ASSERT_STRING_EQUAL(d.code, "ok");
    e.recipients[1] = SLICE("c@b.example");
    policy_smtp_decide(p, &a, &e, &d);
    CU_ASSERT_STRING_EQUAL(d.code, "smtp_recipient");
    policy_free(p);
}

static void test_bad(void)
{
    static const struct {
        const char *rule, *why;
    } rows[] = {
        {"{\"allow\":\"smtp://m.example.com\"}", "smtp_login"},
        {"{\"allow\":\"smtp://m.example.com/x\"," WITH "}", "recipients"},
        {"{\"allow\":\"smtp://u@m.example.com\"," WITH "}", "whom to log in as"},
        {"{\"allow\":\"smtp://m.example.com:465\"," WITH "}", "smtps://"},
        {"{\"allow\":\"smtp://m.example.com\",\"access\":\"read-only\"," WITH "}", "no meaning"},
        {"{\"allow\":\"smtp://m.example.com\",\"recipients\":\"acme.example\"," WITH "}",
         "not an address"},
        {"{\"allow\":\"smtp://m.example.com\",\"recipients\":[]," WITH "}", "empty list"},
        {"{\"allow\":\"smtp://m.example.com\",\"message_recipients\":101," WITH "}", "100"},
        {"{\"allow\":\"smtps://m.example.com\",\"allow_plaintext\":true," WITH "}", "no meaning"},
        {"{\"allow\":[\"smtp://m.example.com\",\"smtps://m.example.com\"]," WITH "}", "either"},
        {"{\"allow\":\"https://m.example.com\",\"recipients\":\"*@a.example\"}", "smtp://"},
        {"{\"allow\":\"https://m.example.com\"," WITH "}", "smtp://"},
    };
    struct err err;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct policy *p = parse(rows[i].rule, &err);
        CU_ASSERT_PTR_NULL(p);
        if (p || strstr(err.text, rows[i].why) == NULL)
            fprintf(stderr, "# %s: %s\n", rows[i].rule, err.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, rows[i].why));
        policy_free(p);
    }
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("smtp_rule", NULL, NULL);
    CU_add_test(s, "messages", test_messages);
    CU_add_test(s, "recipients", test_recipients);
    CU_add_test(s, "bad rules", test_bad);
}
