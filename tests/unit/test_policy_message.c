/* Policies and limits in the parent's messages: read whole, or not at all. */
#include "tap_main.h"

#include "ipc.h"
#include "policy_message.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define POLICY "{\"policy\":\"p\",\"rules\":[{\"allow\":\"a.example\"}]}"

/* The image of POLICY in a file with these seals. */
static int image_fd(int seals)
{
    struct err err = {0};
    struct policy *p = policy_parse(POLICY, sizeof POLICY - 1, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    struct slice image = policy_image_bytes(p);
    int fd = memfd_create("policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, image.p, image.n), (ssize_t)image.n);
    CU_ASSERT_EQUAL(fcntl(fd, F_ADD_SEALS, seals), 0);
    policy_free(p);
    return fd;
}

enum { SEALS = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static void test_policy(void)
{
    struct policy_message told;
    struct err err = {0};
    struct msg m;
    msg_init(&m, 0);
    msg_put_str(&m, "p");
    msg_put_u32(&m, 7);
    msg_put_fd(&m, image_fd(SEALS));
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
    struct policy_message told = {.fd = ipc_memfd("policy", POLICY, sizeof POLICY - 1, NULL)};
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

/* What somebody could still write to, or cut off, is not mapped. */
static void test_unsealed(void)
{
    static const int one[] = {F_SEAL_WRITE, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL};
    for (size_t i = 0; i < ARRAY_LEN(one); i++) {
        struct policy_message told = {.fd = image_fd(SEALS & ~one[i])};
        struct err err = {0};
        CU_ASSERT_PTR_NULL(policy_message_load(&told, &err));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not sealed"));
        CU_ASSERT_EQUAL(fcntl(told.fd, F_GETFD), -1);
    }
    struct policy_message empty = {.fd = ipc_memfd("policy", "", 0, NULL)};
    struct err err = {0};
    CU_ASSERT_PTR_NULL(policy_message_load(&empty, &err));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "empty"));
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
    CU_add_test(s, "a policy is mapped", test_policy);
    CU_add_test(s, "a bad one is said, and its file is closed", test_bad_policy);
    CU_add_test(s, "one that is not sealed is refused", test_unsealed);
    CU_add_test(s, "limits of another size are refused", test_limits);
}
