/* Lists of strings: bounds, and an environment in which the last setting of a name wins. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "strlist.h"
#include "tap_main.h"

void suite_strlist(void);

static void test_last_setting_wins(void)
{
    struct strlist l = {0};
    CU_ASSERT_EQUAL(strlist_put_env(&l, "A=1"), 0);
    CU_ASSERT_EQUAL(strlist_put_env(&l, "AB=2"), 0);
    CU_ASSERT_EQUAL(strlist_set_env(&l, "A", "3=4"), 0);
    CU_ASSERT_EQUAL(l.n, 2);
    CU_ASSERT_STRING_EQUAL(strlist_get_env(&l, "A"), "3=4");
    CU_ASSERT_STRING_EQUAL(strlist_get_env(&l, "AB"), "2");
    CU_ASSERT_PTR_NULL(strlist_get_env(&l, "B"));
    CU_ASSERT_PTR_NULL(l.v[l.n]);
    CU_ASSERT_EQUAL(l.bytes, strlen("A=3=4") + strlen("AB=2") + 2);
    CU_ASSERT_EQUAL(strlist_put_env(&l, "noequals"), -1);
    CU_ASSERT_EQUAL(strlist_put_env(&l, "=x"), -1);
    strlist_done(&l);
    CU_ASSERT_EQUAL(l.n, 0);
}

static void test_bounds(void)
{
    struct strlist l = {0};
    char *big = malloc(STRLIST_BYTES + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(big);
    memset(big, 'x', STRLIST_BYTES);
    big[STRLIST_BYTES] = 0;
    CU_ASSERT_EQUAL(strlist_add(&l, big), -1);
    big[STRLIST_BYTES - 1] = 0;
    CU_ASSERT_EQUAL(strlist_add(&l, big), 0);
    CU_ASSERT_EQUAL(strlist_add(&l, ""), -1); /* one byte too many */
    strlist_done(&l);
    for (int i = 0; i < STRLIST_MAX; i++)
        CU_ASSERT_EQUAL(strlist_add(&l, "y"), 0);
    CU_ASSERT_EQUAL(strlist_add(&l, "y"), -1);
    strlist_done(&l);
    free(big);
}

static void test_through_a_message(void)
{
    struct strlist l = {0}, back = {0};
    struct msg m;
    CU_ASSERT_EQUAL(strlist_add(&l, ""), 0);
    CU_ASSERT_EQUAL(strlist_add(&l, "two words"), 0);
    msg_init(&m, 1);
    strlist_put(&l, &m);
    CU_ASSERT_EQUAL(strlist_get(&back, &m), 0);
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    CU_ASSERT_EQUAL_FATAL(back.n, 2);
    CU_ASSERT_STRING_EQUAL(back.v[0], "");
    CU_ASSERT_STRING_EQUAL(back.v[1], "two words");
    msg_done(&m);
    strlist_done(&l);
    strlist_done(&back);
}

static void test_bad_messages(void)
{
    struct strlist l = {0};
    struct msg m;
    msg_init(&m, 1);
    msg_put_u32(&m, STRLIST_MAX + 1); /* a count that no list has */
    CU_ASSERT_EQUAL(strlist_get(&l, &m), -1);
    msg_done(&m);
    msg_init(&m, 1);
    msg_put_u32(&m, 2); /* more than there is */
    msg_put_str(&m, "one");
    CU_ASSERT_EQUAL(strlist_get(&l, &m), -1);
    msg_done(&m);
    strlist_done(&l);
    msg_init(&m, 1);
    msg_put_u32(&m, 1);
    msg_put_bytes(&m, "a\0b", 3); /* a C string would end early */
    CU_ASSERT_EQUAL(strlist_get(&l, &m), -1);
    msg_done(&m);
    strlist_done(&l);
}

void suite_strlist(void)
{
    CU_pSuite s = CU_add_suite("strlist", NULL, NULL);
    CU_add_test(s, "the last setting wins", test_last_setting_wins);
    CU_add_test(s, "bounds", test_bounds);
    CU_add_test(s, "through a message", test_through_a_message);
    CU_add_test(s, "bad messages", test_bad_messages);
}

void tap_suites(void)
{
    suite_strlist();
}
