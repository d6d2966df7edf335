/* Shares of the log: what each sandbox may write of it. */
#include "tap_main.h"

#include "audit_fixture.h"
#include "shares.h"

#include <CUnit/CUnit.h>

enum { BURST = 1000000, RATE = 10000 };

static void test_rate(void)
{
    struct shares *s = shares_new(BURST, RATE);
    struct share *x = shares_get(s, "coder/a", 1, 5000);
    CU_ASSERT_EQUAL(share_left(x, UINT64_MAX, 5000), BURST);
    share_charge(x, 400000, 5000);
    CU_ASSERT_EQUAL(share_left(x, UINT64_MAX, 5000), 600000);
    CU_ASSERT_EQUAL(share_left(x, UINT64_MAX, 6000), 610000);
    CU_ASSERT_EQUAL(share_left(x, UINT64_MAX, 5500), 610000); /* time does not go back */
    share_charge(x, 700000, 6000);
    CU_ASSERT_EQUAL(share_left(x, UINT64_MAX, 6000), 0); /* and 90,000 are owed */
    CU_ASSERT_EQUAL(share_left(x, UINT64_MAX, 15000), 0);
    CU_ASSERT_EQUAL(share_left(x, UINT64_MAX, 15100), 1000);
    CU_ASSERT_EQUAL(share_left(x, UINT64_MAX, 1000000000), BURST);
    CU_ASSERT_EQUAL(share_left(shares_get(s, "coder/b", 1, 6000), UINT64_MAX, 6000), BURST);
    CU_ASSERT_PTR_EQUAL(shares_get(s, "coder/a", 1, 6000), x);
    shares_free(s);
}

/* A short record costs as one of SHARE_RECORD bytes: so many a second at most. */
static void test_records(void)
{
    struct shares *s = shares_new(BURST, RATE);
    struct share *x = shares_get(s, "a", 1, 1);
    for (int i = 0; i < 1000; i++)
        share_charge(x, 1, 1);
    CU_ASSERT_EQUAL(share_left(x, UINT64_MAX, 1), BURST - 1000 * SHARE_RECORD);
    shares_free(s);
}

/* With little room on the disk whoever used most is refused first. */
static void test_scarce(void)
{
    struct shares *s = shares_new(BURST, RATE);
    struct share *much = shares_get(s, "much", 1, 1), *little = shares_get(s, "little", 1, 1);
    share_charge(much, 600000, 1);
    share_charge(little, 10000, 1);
    CU_ASSERT_EQUAL(share_left(much, 700000, 1), 100000);
    CU_ASSERT_EQUAL(share_left(much, 600000, 1), 0);
    CU_ASSERT_EQUAL(share_left(little, 600000, 1), 590000);
    CU_ASSERT_EQUAL(share_left(little, 20000, 1), 10000);
    CU_ASSERT_EQUAL(share_left(little, 0, 1), 0);
    shares_free(s);
}

/* Of a writer for several: more of it, at once where there are more of them. */
static void test_times(void)
{
    struct shares *s = shares_new(BURST, RATE);
    struct share *x = shares_get(s, "injector#1", 16, 1);
    CU_ASSERT_EQUAL(share_left(x, UINT64_MAX, 1), 16 * BURST);
    share_charge(x, 16 * BURST, 1);
    CU_ASSERT_EQUAL(share_left(x, UINT64_MAX, 1001), 16 * RATE);
    share_times(x, 17, 1001);
    CU_ASSERT_EQUAL(share_left(x, UINT64_MAX, 1001), BURST + 16 * RATE);
    share_times(x, 1, 1001);
    CU_ASSERT_EQUAL(share_left(x, UINT64_MAX, 1001), BURST);
    shares_free(s);
}

/* Whatever names a writer makes up: memory is bounded, nobody who used some gets it back by being
 * forgotten, and who is held stays. */
static void test_bounded(void)
{
    char name[64];
    struct shares *s = shares_new(BURST, RATE);
    struct share *held = shares_get(s, "held", 1, 1), *used = shares_get(s, "used", 1, 1);
    share_hold(held);
    share_charge(used, 900000, 1);
    for (int i = 0; i < 3 * SHARES_MAX; i++) {
        snprintf(name, sizeof name, "invented%d", i);
        share_charge(shares_get(s, name, 1, 1), 1000, 1);
    }
    CU_ASSERT_PTR_EQUAL(shares_get(s, "held", 1, 1), held);
    CU_ASSERT_EQUAL(share_left(shares_get(s, "used", 1, 1), UINT64_MAX, 1), 100000);
    CU_ASSERT_EQUAL(shares_count(s), SHARES_MAX);
    share_drop(held);
    shares_free(s);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("shares", NULL, NULL);
    CU_add_test(s, "a rate, and what is owed", test_rate);
    CU_add_test(s, "records cost so much at least", test_records);
    CU_add_test(s, "little room on the disk", test_scarce);
    CU_add_test(s, "a writer for several", test_times);
    CU_add_test(s, "bounded", test_bounded);
}
