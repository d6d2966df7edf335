/* Shares of a bound: what one owner, several and a newcomer get, and that all is given back. */
#include "quota.h"
#include "tap_main.h"

#include <stdio.h>
#include <string.h>

enum { OWNERS = 24, TOTAL = 4096, EACH = 256 };

static size_t take_all(struct quota *q, struct quota_part *p, struct slice owner)
{
    size_t n = 0;
    while (quota_take(q, p, owner, 1) == QUOTA_TAKEN)
        n++;
    return n;
}

static void test_half(void)
{
    struct quota q = {.total = 100, .each = 100};
    struct quota_part a = {.n = 0}, b = {.n = 0}, c = {.n = 0};
    CU_ASSERT_EQUAL(take_all(&q, &a, SLICE("a")), 50);
    CU_ASSERT_EQUAL(quota_take(&q, &a, SLICE("a"), 1), QUOTA_SHARE);
    CU_ASSERT_EQUAL(take_all(&q, &b, SLICE("b")), 25);
    CU_ASSERT_EQUAL(quota_take(&q, &c, SLICE("c"), 1), QUOTA_TAKEN);
    CU_ASSERT_EQUAL(quota_of(&q, SLICE("a")), 50);
    /* what one gives back is not its alone */
    quota_give(&a, 20);
    CU_ASSERT_EQUAL(quota_take(&q, &b, SLICE("b"), 1), QUOTA_TAKEN);
    CU_ASSERT_EQUAL(take_all(&q, &a, SLICE("a")), 6);
    quota_leave(&a);
    quota_leave(&b);
    quota_leave(&c);
    CU_ASSERT_EQUAL(q.used, 0);
    CU_ASSERT_TRUE(LIST_EMPTY(&q.owners));
}

/* Each of many takes all it can, one after the other: the next still finds room. */
static void test_newcomer(void)
{
    struct quota q = {.total = TOTAL, .each = EACH};
    struct quota_part p[OWNERS], late = {.n = 0};
    memset(p, 0, sizeof p);
    for (int i = 0; i < OWNERS - 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        size_t n = take_all(&q, &p[i], slice_str(name));
        CU_ASSERT(n > 0 && n <= EACH);
    }
    CU_ASSERT_EQUAL(quota_take(&q, &late, SLICE("late"), 1), QUOTA_TAKEN);
    quota_leave(&late);
    for (int i = 0; i < OWNERS; i++)
        quota_leave(&p[i]);
    CU_ASSERT_EQUAL(q.used, 0);
}

static void test_parts(void)
{
    struct quota q = {.total = 1000, .each = 200};
    struct quota_part one = {.n = 0}, two = {.n = 0}, other = {.n = 0};
    CU_ASSERT_EQUAL(quota_take(&q, &one, SLICE("a"), 150), QUOTA_TAKEN);
    CU_ASSERT_EQUAL(quota_take(&q, &two, SLICE("a"), 51), QUOTA_SHARE); /* both are a's */
    CU_ASSERT_EQUAL(two.n, 0);
    CU_ASSERT_EQUAL(quota_take(&q, &two, SLICE("a"), 50), QUOTA_TAKEN);
    CU_ASSERT_EQUAL(quota_take(&q, &other, SLICE("b"), 200), QUOTA_TAKEN);
    quota_leave(&one);
    quota_leave(&one); /* nothing is given twice */
    quota_give(&one, 7);
    CU_ASSERT_EQUAL(quota_of(&q, SLICE("a")), 50);
    quota_give(&two, 1000); /* no more than it has */
    CU_ASSERT_EQUAL(q.used, 200);
    quota_leave(&other);
    CU_ASSERT_EQUAL(q.used, 0);
}

static void test_out(void)
{
    struct quota q = {.total = 2, .each = 2};
    struct quota_part a = {.n = 0}, b = {.n = 0}, c = {.n = 0}, d = {.n = 0};
    CU_ASSERT_EQUAL(quota_take(&q, &d, SLICE("d"), 0), QUOTA_TAKEN);
    CU_ASSERT_EQUAL(quota_take(&q, &d, SLICE("d"), SIZE_MAX), QUOTA_OUT);
    CU_ASSERT_EQUAL(quota_take(&q, &a, SLICE("a"), 1), QUOTA_TAKEN);
    CU_ASSERT_EQUAL(quota_take(&q, &b, SLICE("b"), 1), QUOTA_TAKEN);
    CU_ASSERT_EQUAL(quota_take(&q, &c, SLICE("c"), 1), QUOTA_OUT);
    CU_ASSERT_EQUAL(quota_take(&q, &a, SLICE("a"), 1), QUOTA_SHARE);
    quota_leave(&b);
    CU_ASSERT_EQUAL(quota_take(&q, &c, SLICE("c"), 1), QUOTA_TAKEN);
    quota_leave(&a);
    quota_leave(&c);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("quota", NULL, NULL);
    CU_add_test(s, "one leaves half, two a third", test_half);
    CU_add_test(s, "after many there is room for one more", test_newcomer);
    CU_add_test(s, "all parts of an owner are its", test_parts);
    CU_add_test(s, "nothing is left", test_out);
}
