/* Two bounded tables that a sandbox can try to fill (F8): denials and synthetic names. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "denials.h"
#include "name_table.h"
#include "tap_main.h"

void suite_denials(void);

static void test_counts(void)
{
    static struct denials d;
    memset(&d, 0, sizeof d);
    CU_ASSERT_EQUAL(denials_add(&d, "no_rule", "a.example", 1), 0);
    CU_ASSERT_EQUAL(denials_add(&d, "no_rule", "a.example", 2), 0);
    CU_ASSERT_EQUAL(denials_add(&d, "method", "a.example", 1), 0);
    CU_ASSERT_EQUAL_FATAL(d.n, 2);
    CU_ASSERT_EQUAL(d.list[0].count, 3);
    CU_ASSERT_EQUAL(denials_add(&d, "no_rule", "a.example", UINT32_MAX), 0);
    CU_ASSERT_EQUAL(d.list[0].count, UINT32_MAX);
}

static void test_what_is_refused(void)
{
    static struct denials d;
    static const char *const codes[] = {"",        "No_rule", "no rule",
                                        "no-rule", "x\n",     "012345678901234567890123456789012"};
    memset(&d, 0, sizeof d);
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        CU_ASSERT_EQUAL(denials_add(&d, codes[i], "t", 1), -1);
    CU_ASSERT_EQUAL(denials_add(&d, "no_rule", "t", 0), -1);
    CU_ASSERT_EQUAL(d.n, 0);
}

static void test_targets_are_cleaned(void)
{
    static struct denials d;
    char longest[400];
    memset(&d, 0, sizeof d);
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    CU_ASSERT_EQUAL(denials_add(&d, "no_rule", "x\033]0;\xc3\xa4\n", 1), 0);
    CU_ASSERT_STRING_EQUAL(d.list[0].target, "x?]0;???");
    CU_ASSERT_EQUAL(denials_add(&d, "no_rule", longest, 1), 0);
    CU_ASSERT_EQUAL(denials_add(&d, "no_rule", longest, 1), 0);
    CU_ASSERT_EQUAL_FATAL(d.n, 2); /* cut alike, so counted alike */
    CU_ASSERT_EQUAL(strlen(d.list[1].target), DENIAL_TARGET_MAX);
}

static void fill(struct denials *d, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char t[32];
        snprintf(t, sizeof t, "h%u.example", i);
        CU_ASSERT_EQUAL(denials_add(d, "no_rule", t, 1), 0);
    }
}

static void test_bound_and_message(void)
{
    static struct denials d, back;
    struct msg m;
    memset(&d, 0, sizeof d);
    memset(&back, 0, sizeof back);
    fill(&d, 1000);
    CU_ASSERT_EQUAL_FATAL(d.n, DENIALS_MAX + 1);
    CU_ASSERT_STRING_EQUAL(d.list[DENIALS_MAX].target, "other");
    CU_ASSERT_EQUAL(d.list[DENIALS_MAX].count, 1000 - DENIALS_MAX);
    CU_ASSERT_EQUAL(denials_add(&d, "no_rule", "h3.example", 1), 0);
    CU_ASSERT_EQUAL(d.list[3].count, 2);
    msg_init(&m, 1);
    denials_put(&d, &m);
    CU_ASSERT_EQUAL(denials_get(&back, &m), 0);
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    CU_ASSERT_EQUAL(memcmp(&d, &back, sizeof d), 0);
    msg_done(&m);
    msg_init(&m, 1);
    msg_put_u32(&m, DENIALS_MAX + 2);
    CU_ASSERT_EQUAL(denials_get(&back, &m), -1);
    msg_done(&m);
}

static void test_names(void)
{
    struct name_table *t = name_table_new(1000000);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    for (uint32_t i = NAME_TABLE_FIRST; i <= NAME_TABLE_LAST; i++) {
        char h[32];
        snprintf(h, sizeof h, "n%u.example", i);
        if (name_table_index(t, h) != i)
            CU_FAIL("indexes are given in order");
    }
    CU_ASSERT_EQUAL(name_table_index(t, "one.more"), 0);
    CU_ASSERT_EQUAL(name_table_index(t, "n7.example"), 7);
    CU_ASSERT_EQUAL(name_table_count(t), NAME_TABLE_LAST - NAME_TABLE_FIRST + 1);
    name_table_free(t);
}

static void sum(void *arg, const char *host, uint32_t index)
{
    CU_ASSERT_TRUE(host[0] != 0);
    *(uint32_t *)arg += index;
}

static void test_names_each(void)
{
    struct name_table *t = name_table_new(3);
    uint32_t total = 0;
    CU_ASSERT_EQUAL(name_table_index(t, "b"), 2);
    CU_ASSERT_EQUAL(name_table_index(t, "a"), 3);
    CU_ASSERT_EQUAL(name_table_index(t, "c"), 4);
    CU_ASSERT_EQUAL(name_table_index(t, "d"), 0);
    name_table_each(t, sum, &total);
    CU_ASSERT_EQUAL(total, 9);
    name_table_free(t);
    name_table_free(NULL);
}

void suite_denials(void)
{
    CU_pSuite s = CU_add_suite("denials", NULL, NULL);
    CU_add_test(s, "counts", test_counts);
    CU_add_test(s, "what is refused", test_what_is_refused);
    CU_add_test(s, "targets are cleaned", test_targets_are_cleaned);
    CU_add_test(s, "bound and message", test_bound_and_message);
    s = CU_add_suite("names", NULL, NULL);
    CU_add_test(s, "in order and bounded", test_names);
    CU_add_test(s, "each once", test_names_each);
}

void tap_suites(void)
{
    suite_denials();
}
