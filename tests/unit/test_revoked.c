/* The list of revoked tokens: what is on it, what is forgotten, and that its bound fails closed. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "revoked.h"
#include <time.h>
#include "tap_main.h"

static void test_list(void)
{
    struct revoked *r = revoked_new();
    CU_ASSERT_FALSE(revoked_has(NULL, "rt-a", 5));
    CU_ASSERT_FALSE(revoked_has(r, "rt-a", 2000));
    revoked_add(r, "rt-b", 2000, 1000);
    revoked_add(r, "rt-a", 2000, 1000);
    revoked_add(r, "rt-c", 1500, 1000);
    revoked_add(r, "rt-a", 1800, 1000);
    CU_ASSERT_EQUAL(revoked_count(r), 3);
    CU_ASSERT_TRUE(revoked_has(r, "rt-a", 2000));
    CU_ASSERT_TRUE(revoked_has(r, "rt-b", 1));
    CU_ASSERT_FALSE(revoked_has(r, "rt-", 2000));
    CU_ASSERT_FALSE(revoked_has(r, "rt-d", 2000));
    revoked_free(r);
}

static void test_bound(void)
{
    struct revoked *r = revoked_new();
    char id[32];
    for (unsigned i = 0; i < REVOKED_MAX; i++) {
        snprintf(id, sizeof id, "rt-%u", i);
        revoked_add(r, id, 2000 + i % 7, 1000);
    }
    CU_ASSERT_EQUAL(revoked_count(r), REVOKED_MAX);
    CU_ASSERT_FALSE(revoked_has(r, "rt-x", 2500));
    revoked_add(r, "rt-x", 2500, 1000); /* one too many: all that may be meant are refused */
    CU_ASSERT_EQUAL(revoked_count(r), REVOKED_MAX);
    CU_ASSERT_TRUE(revoked_has(r, "rt-x", 2500));
    CU_ASSERT_TRUE(revoked_has(r, "rt-innocent", 2400));
    CU_ASSERT_FALSE(revoked_has(r, "rt-later", 2501));
    revoked_add(r, "rt-y", 4000, 2003); /* room again: the expired are gone */
    CU_ASSERT_TRUE(revoked_count(r) < REVOKED_MAX);
    CU_ASSERT_TRUE(revoked_has(r, "rt-y", 4000));
    CU_ASSERT_FALSE(revoked_has(r, "rt-z", 4000));
    revoked_free(r);
}

/* A clock that is put forward and back makes no token good again. */
static void test_clock(void)
{
    struct revoked *r = revoked_new();
    char id[32];
    revoked_add(r, "rt-a", 2000, 1000);
    for (unsigned i = 0; i < REVOKED_REMEMBERED - 2; i++) {
        snprintf(id, sizeof id, "rt-%u", i);
        revoked_add(r, id, 9000, 8000);
    }
    CU_ASSERT_TRUE(revoked_has(r, "rt-a", 2000));
    CU_ASSERT_FALSE(revoked_has(r, "rt-innocent", 2000));
    for (unsigned i = 0; i < 2; i++) {
        snprintf(id, sizeof id, "rt-last%u", i);
        revoked_add(r, id, 9000, 8000);
    }
    CU_ASSERT_EQUAL(revoked_count(r), REVOKED_REMEMBERED); /* it had to go */
    CU_ASSERT_TRUE(revoked_has(r, "rt-a", 2000));
    CU_ASSERT_FALSE(revoked_has(r, "rt-innocent", 2001));
    revoked_free(r);
}

static void test_messages(void)
{
    struct revoked *r = revoked_new(), *copy = revoked_new();
    char id[32];
    size_t n, from = 0, messages = 0;
    for (unsigned i = 0; i < REVOKED_IN_MESSAGE + 3; i++) {
        snprintf(id, sizeof id, "rt-%u", i);
        revoked_add(r, id, 2000, 1000);
    }
    do {
        struct msg m;
        msg_init(&m, 1);
        n = revoked_put(r, from, &m);
        CU_ASSERT_EQUAL(revoked_get(copy, &m, 1000), 0);
        msg_done(&m);
        from += n;
        messages++;
    } while (n == REVOKED_IN_MESSAGE);
    CU_ASSERT_EQUAL(messages, 2);
    CU_ASSERT_EQUAL(revoked_count(copy), REVOKED_IN_MESSAGE + 3);
    CU_ASSERT_TRUE(revoked_has(copy, "rt-514", 2000));
    struct msg bad;
    msg_init(&bad, 1);
    msg_put_u64(&bad, 0);
    msg_put_u32(&bad, REVOKED_IN_MESSAGE + 1);
    CU_ASSERT_EQUAL(revoked_get(copy, &bad, 1000), -1);
    msg_done(&bad);
    revoked_free(r);
    revoked_free(copy);
}

static uint64_t now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* In a fleet: what is not known is refused. */
static void test_until(void)
{
    struct revoked *r = NULL;
    struct msg m;
    CU_ASSERT_PTR_NULL(revoked_why(r, "rt-a", 2000));
    for (int i = 0; i < 3; i++) {
        msg_init(&m, 1);
        msg_put_u64(&m, i == 0 ? 0 : i == 1 ? 1 : now_us() + 60000000);
        CU_ASSERT_EQUAL(revoked_take_until(&r, &m), i == 0 ? -1 : 0);
        msg_done(&m);
        if (i == 1)
            CU_ASSERT_STRING_EQUAL(revoked_why(r, "rt-a", 2000), "fleet_unread");
    }
    CU_ASSERT_PTR_NULL(revoked_why(r, "rt-a", 2000));
    revoked_add(r, "rt-a", 2000, 1000);
    CU_ASSERT_STRING_EQUAL(revoked_why(r, "rt-a", 2000), "token_revoked");
    revoked_until(r, now_us());
    CU_ASSERT_TRUE(revoked_stale(r));
    CU_ASSERT_STRING_EQUAL(revoked_why(r, "rt-a", 2000), "token_revoked");
    CU_ASSERT_STRING_EQUAL(revoked_why(r, "rt-b", 2000), "fleet_unread");
    msg_init(&m, 1);
    msg_put_u64(&m, 1);
    msg_put_u64(&m, 1);
    CU_ASSERT_EQUAL(revoked_take_until(&r, &m), -1); /* more behind */
    msg_done(&m);
    revoked_free(r);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("revoked", NULL, NULL);
    CU_add_test(s, "what is on the list", test_list);
    CU_add_test(s, "its bound fails closed", test_bound);
    CU_add_test(s, "the clock", test_clock);
    CU_add_test(s, "in messages", test_messages);
    CU_add_test(s, "up to when it is known", test_until);
}
