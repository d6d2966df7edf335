/* Index to synthetic address and back. */
#include "address.h"
#include "synthetic.h"
#include "tap_main.h"

#include <arpa/inet.h>
#include <string.h>

void suite_synthetic(void);

static struct address make(const char *ip)
{
    struct address a;
    unsigned char raw[16];
    int family = strchr(ip, ':') ? AF_INET6 : AF_INET;
    CU_ASSERT_FATAL(inet_pton(family, ip, raw) == 1);
    address_set(&a, family, raw, 443);
    return a;
}

static void test_known(void)
{
    static const struct {
        uint32_t index;
        const char *v4, *v6;
    } rows[] = {
        {1, "198.18.0.1", "fd64:7572:7761:7264::1"},
        {256, "198.18.1.0", "fd64:7572:7761:7264::100"},
        {65536, "198.19.0.0", "fd64:7572:7761:7264::1:0"},
        {SYNTHETIC_MAX, "198.19.255.254", "fd64:7572:7761:7264::1:fffe"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        unsigned char v4[4], v6[16];
        char text[INET6_ADDRSTRLEN];
        CU_ASSERT(synthetic_v4(rows[i].index, v4) == 0);
        CU_ASSERT_STRING_EQUAL(inet_ntop(AF_INET, v4, text, sizeof text), rows[i].v4);
        CU_ASSERT(synthetic_v6(rows[i].index, v6) == 0);
        CU_ASSERT_STRING_EQUAL(inet_ntop(AF_INET6, v6, text, sizeof text), rows[i].v6);
    }
}

static void test_back(void)
{
    for (uint32_t i = 1; i <= SYNTHETIC_MAX; i += i < 70000 ? 97 : 1009) {
        unsigned char v4[4], v6[16];
        struct address a;
        CU_ASSERT_FATAL(synthetic_v4(i, v4) == 0 && synthetic_v6(i, v6) == 0);
        address_set(&a, AF_INET, v4, 1);
        CU_ASSERT_EQUAL(synthetic_index(&a.sa), i);
        CU_ASSERT(synthetic_contains(&a.sa));
        address_set(&a, AF_INET6, v6, 1);
        CU_ASSERT_EQUAL(synthetic_index(&a.sa), i);
        CU_ASSERT(synthetic_contains(&a.sa));
        CU_ASSERT_PTR_NOT_NULL(address_blocked(&a.sa)); /* the dialer never goes there */
    }
}

static void test_refused(void)
{
    unsigned char ip[16];
    CU_ASSERT(synthetic_v4(0, ip) == -1 && synthetic_v6(0, ip) == -1);
    CU_ASSERT(synthetic_v4(SYNTHETIC_MAX + 1, ip) == -1);
    CU_ASSERT(synthetic_v6(UINT32_MAX, ip) == -1);
}

static void test_strangers(void)
{
    static const struct {
        const char *ip;
        bool contained;
        uint32_t index;
    } rows[] = {
        {"198.17.255.255", false, 0},
        {"198.18.0.0", true, 0},
        {"198.19.255.255", true, 0},
        {"198.20.0.0", false, 0},
        {"8.8.8.8", false, 0},
        {"::ffff:198.18.0.7", true, 7},
        {"::198.18.0.7", false, 0},
        {"fd64:7572:7761:7264::", true, 0},
        {"fd64:7572:7761:7264::2:0", true, 0},
        {"fd64:7572:7761:7264:0:1::1", true, 0},
        {"fd64:7572:7761:7265::1", false, 0},
        {"::1", false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct address a = make(rows[i].ip);
        CU_ASSERT_EQUAL(synthetic_contains(&a.sa), rows[i].contained);
        CU_ASSERT_EQUAL(synthetic_index(&a.sa), rows[i].index);
    }
    struct sockaddr_storage s = {.ss_family = AF_UNIX};
    CU_ASSERT_EQUAL(synthetic_index((struct sockaddr *)&s), 0);
}

void suite_synthetic(void)
{
    CU_pSuite s = CU_add_suite("synthetic", NULL, NULL);
    CU_add_test(s, "known addresses", test_known);
    CU_add_test(s, "there and back", test_back);
    CU_add_test(s, "indexes that are none", test_refused);
    CU_add_test(s, "addresses that are none", test_strangers);
}

void tap_suites(void)
{
    suite_synthetic();
}
