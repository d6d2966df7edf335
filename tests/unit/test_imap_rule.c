/* Rules of imap:// and imaps://: what they allow, and what is no rule. */
#include "imap_rule.h"

#include <stdio.h>
#include <string.h>

#include "tap_main.h"

#define WITH "\"with\":{\"imap_login\":\"k\"}"

static struct policy *parse(const char *rules, struct err *err)
{
    char json[4096];
    snprintf(json, sizeof json, "{\"policy\":\"p\",\"rules\":[%s]}", rules);
    err->text[0] = 0;
    return policy_parse(json, strlen(json), err);
}

static const struct rule *decide(const struct policy *p, const char *at, const char *code)
{
    struct authority a;
    struct decision d;
    CU_ASSERT_FATAL(authority_parse(&a, SCHEME_IMAP, slice_str(at)) == 0);
    policy_imap_decide(p, &a, &d);
    CU_ASSERT_STRING_EQUAL(d.code, code);
    return d.rule;
}

static void test_sessions(void)
{
    struct err err;
    struct policy *p = parse(
        "{\"allow\":\"imap://mail.example.com\",\"folders\":[\"INBOX\",\"Archive/*\"],"
        "\"actions\":[\"flag\",\"delete\"],\"message_megabytes\":2,\"megabytes\":3,\"seconds\":4,"
        "\"session_commands\":5," WITH "},"
        "{\"deny\":\"imap://gone.example.com\"},"
        "{\"allow\":[\"imaps://other.example.com\",\"imaps://gone.example.com:143\"],"
        "\"access\":\"read-only\"," WITH "}",
        &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    const struct imap_terms *t = decide(p, "mail.example.com", "ok")->imap;
    CU_ASSERT_EQUAL(t->actions, IMAP_READ | IMAP_FLAG | IMAP_DELETE);
    CU_ASSERT(t->most_bytes == 2000000 && t->megabytes == 3 && t->seconds == 4);
    CU_ASSERT(t->commands == 5 && !t->implicit && t->n_folders == 2);
    t = decide(p, "other.example.com:993", "ok")->imap;
    CU_ASSERT(t->implicit && t->actions == IMAP_READ && t->n_folders == 0);
    CU_ASSERT_EQUAL(t->most_bytes, 25000000);
    decide(p, "other.example.com", "no_rule");
    decide(p, "mail.example.com:993", "no_rule");
    decide(p, "gone.example.com", "denied_by_rule");
    policy_free(p);
}

static bool allowed(const char *pattern, const char *name)
{
    const struct imap_terms t = {.folders = &pattern, .n_folders = 1};
    return imap_folder_allowed(&t, slice_str(name));
}

static bool whole(const char *pattern, const char *name)
{
    const struct imap_terms t = {.folders = &pattern, .n_folders = 1};
    return imap_folder_whole(&t, slice_str(name));
}

static void test_folders(void)
{
    static const struct imap_terms any = {.n_folders = 0};
    CU_ASSERT(imap_folder_allowed(&any, SLICE("x")) && imap_folder_whole(&any, SLICE("x")));
    CU_ASSERT(allowed("inbox", "INBOX") && allowed("INBOX", "INBOX") && !allowed("IN*x", "INBOX"));
    CU_ASSERT(allowed("Archive/*", "Archive/2026/a") && !allowed("Archive/*", "archive/2026"));
    CU_ASSERT(!allowed("Archive/*", "Archive/") && !allowed("Archive/*", "Archive"));
    CU_ASSERT(!allowed("Archive\\*", "Archive\\") && allowed("Archive\\*", "Archive\\a"));
    CU_ASSERT(!allowed("A.*", "A.") && allowed("A.*", "A.b") && allowed("A*", "A"));
    CU_ASSERT(allowed("*", "x") && allowed("a*b*c", "a/b/c") && !allowed("a*b*c", "a/b/d"));
    CU_ASSERT(allowed("*/x", "a/b/x") && !allowed("*/*/x", "a/x") && allowed("a/*b", "a/xbb"));
    CU_ASSERT(!allowed("Secret", "Secre") && !allowed("Secret", "Secrets"));
    CU_ASSERT(whole("A*", "A") && whole("*", "x") && whole("A/*", "A/b") && !whole("A/*", "A"));
    CU_ASSERT(!whole("A", "A") && !whole("A/*/c", "A/b/c"));
    CU_ASSERT(!imap_pattern_ok(SLICE("a%b")) && !imap_pattern_ok(SLICE("")));
    CU_ASSERT(!imap_pattern_ok(SLICE("a\n")) && imap_pattern_ok(SLICE("gr\xc3\xbc\xc3\x9f")));
}

static void test_bad(void)
{
    static const struct {
        const char *rule, *why;
    } rows[] = {
        {"{\"allow\":\"imap://m.example.com\"}", "imap_login"},
        {"{\"allow\":\"imap://m.example.com/x\"," WITH "}", "folders"},
        {"{\"allow\":\"imap://u@m.example.com\"," WITH "}", "whom to log in as"},
        {"{\"allow\":\"imap://m.example.com:993\"," WITH "}", "imaps://"},
        {"{\"allow\":\"imap://m.example.com\",\"folders\":\"a%\"," WITH "}",
         "pattern of mailboxes"},
        {"{\"allow\":\"imap://m.example.com\",\"folders\":[]," WITH "}", "empty list"},
        {"{\"allow\":\"imap://m.example.com\",\"actions\":\"write\"," WITH "}", "not one of"},
        {"{\"allow\":\"imap://m.example.com\",\"actions\":\"flag\",\"access\":\"read-only\"," WITH
         "}",
         "same thing"},
        {"{\"allow\":\"imap://m.example.com\",\"session_commands\":0," WITH "}", "1 to 1000000"},
        {"{\"allow\":\"imaps://m.example.com\",\"allow_plaintext\":true," WITH "}", "no meaning"},
        {"{\"allow\":[\"imap://m.example.com\",\"imaps://m.example.com\"]," WITH "}", "either"},
        {"{\"allow\":\"https://m.example.com\",\"folders\":\"INBOX\"}", "imap://"},
        {"{\"allow\":\"https://m.example.com\"," WITH "}", "imap://"},
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
    CU_pSuite s = CU_add_suite("imap_rule", NULL, NULL);
    CU_add_test(s, "sessions", test_sessions);
    CU_add_test(s, "folders", test_folders);
    CU_add_test(s, "bad rules", test_bad);
}
