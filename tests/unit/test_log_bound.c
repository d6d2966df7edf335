/* What a role has the parent write: so many lines a second, the rest counted and told. */
#include <CUnit/CUnit.h>

#include "log_bound.h"
#include "tap_main.h"

static void test_bound(void)
{
    struct log_bound b = {.second = 0};
    uint64_t told;
    unsigned lines = 0;
    for (int i = 0; i < 1000; i++) {
        lines += log_bound_take(&b, 100, &told);
        CU_ASSERT_EQUAL(told, 0);
    }
    CU_ASSERT_EQUAL(lines, LOG_LINES_A_SECOND);
    CU_ASSERT(log_bound_take(&b, 101, &told));
    CU_ASSERT_EQUAL(told, 1000 - LOG_LINES_A_SECOND);
    for (int i = 0; i < LOG_LINES_A_SECOND - 1; i++)
        CU_ASSERT(log_bound_take(&b, 101, &told) && told == 0);
    CU_ASSERT_FALSE(log_bound_take(&b, 101, &told));
    CU_ASSERT(log_bound_take(&b, 500, &told) && told == 1);
    CU_ASSERT(log_bound_take(&b, 501, &told) && told == 0);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("log_bound", NULL, NULL);
    CU_add_test(s, "lines a second", test_bound);
}
