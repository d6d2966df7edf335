/* What is shown of shares in the fleet's budgets: never more than the limit, whatever the dialer
 * still held when it was lowered and whatever the database answers. */
#include "held_shares.h"
#include "tap_main.h"
#include "wire.h"

#include <string.h>

/* -> what is held of the only one that is shown; UINT64_MAX: none is, or more than one */
static uint64_t shown(const struct held_shares *s, uint64_t amount)
{
    struct msg m;
    uint32_t n = 0, seconds;
    uint8_t kind;
    uint64_t most, held = UINT64_MAX;
    char policy[SHARE_POLICY_MAX];
    msg_init(&m, W_SHARES);
    held_shares_put(s, &m);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &n), 0);
    if (n == 1) {
        CU_ASSERT_EQUAL(msg_get_str(&m, policy, sizeof policy) | msg_get_u8(&m, &kind) |
                            msg_get_u32(&m, &seconds) | msg_get_u64(&m, &most) |
                            msg_get_u64(&m, &held) | msg_end(&m),
                        0);
        CU_ASSERT(strcmp(policy, "coder") == 0 && kind == 2 && seconds == 60 && most == amount);
    }
    msg_done(&m);
    return held;
}

static void test_limit(void)
{
    static const struct share_name name = {
        .policy = "coder", .text = "coder/1", .kind = 2, .seconds = 60};
    struct held_shares *s = held_shares_new();
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    CU_ASSERT_EQUAL(shown(s, 0), UINT64_MAX);
    held_shares_asked(s, &name, 100, 36, 1);
    CU_ASSERT_EQUAL(shown(s, 100), 36);
    held_shares_answered(s, 1, 46);
    CU_ASSERT_EQUAL(shown(s, 100), 46);
    held_shares_asked(s, &name, 10, 46, 2); /* it was lowered meanwhile */
    CU_ASSERT_EQUAL(shown(s, 10), 10);
    held_shares_answered(s, 2, UINT64_C(1) << 50); /* by a database that lies */
    CU_ASSERT_EQUAL(shown(s, 10), 10);
    held_shares_asked(s, &name, 10, 3, 3);
    held_shares_answered(s, 3, 0);
    CU_ASSERT_EQUAL(shown(s, 10), UINT64_MAX);
    held_shares_free(s);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("held_shares", NULL, NULL);
    CU_add_test(s, "no more than the limit is shown", test_limit);
}
