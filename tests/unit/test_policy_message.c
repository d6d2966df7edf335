/* Policies and limits in the parent's messages: read whole, or not at all. */
#include "tap_main.h"

#include "ipc.h"
#include "policy_message.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define POLICY "{\"policy\":\"p\",\"rules\":[{\"allow\":\"a.example\"}]}"

static int text_fd(const char *text)
{
    int fd = ipc_memfd("policy", text, strlen(text), NULL);
    CU_ASSERT_FATAL(fd >= 0);
    return fd;
}

static void test_policy(void)
{
    struct policy_message told;
    struct err err = {0};
    struct msg m;
    msg_init(&m, 0);
    msg_put_str(&m, "p");
    msg_put_u32(&m, 7);
    msg_put_fd(&m, text_fd(POLICY));
    CU_ASSERT_EQUAL_FATAL(policy_message_get(&m, &told), 0);
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    CU_ASSERT_STRING_EQUAL(told.name, "p");
    CU_ASSERT_EQUAL(told.generation, 7);
    struct policy *p = policy_message_load(&told, &err);
    CU_ASSERT_PTR_NOT_NULL(p);
    policy_free(p);
    CU_ASSERT_EQUAL(fcntl(told.fd, F_GETFD), -1); /* it was closed */
    msg_done(&m);
}

static void test_bad_policy(void)
{
    struct policy_message told = {.fd = text_fd("{\"policy\":\"p\",\"rules\":[{\"allow\":1}]}")};
    struct err err = {0};
    struct msg m;
    CU_ASSERT_PTR_NULL(policy_message_load(&told, &err));
    CU_ASSERT(err.text[0] != 0);
    CU_ASSERT_EQUAL(fcntl(told.fd, F_GETFD), -1);
    msg_init(&m, 0);
    msg_put_str(&m, "p");
    msg_put_u32(&m, 7); /* and no descriptor */
    CU_ASSERT_EQUAL(policy_message_get(&m, &told), -1);
    msg_done(&m);
}

static void test_limits(void)
{
    struct limits said, got;
    memset(&said, 0x5a, sizeof said);
    for (int less = 0; less <= 1; less++) {
        struct msg m;
        msg_init(&m, 0);
        msg_put_bytes(&m, &said, sizeof said - (size_t)less);
        CU_ASSERT_EQUAL(limits_get(&m, &got), less ? -1 : 0);
        CU_ASSERT(less || memcmp(&said, &got, sizeof said) == 0);
        msg_done(&m);
    }
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("policy_message", NULL, NULL);
    CU_add_test(s, "a policy is read and compiled", test_policy);
    CU_add_test(s, "a bad one is said, and its file is closed", test_bad_policy);
    CU_add_test(s, "limits of another size are refused", test_limits);
}
