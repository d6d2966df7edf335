/* Ranges of addresses: one spelling, exact edges. */
#include "cidr.h"
#include "tap_main.h"

void tap_suites(void);

static bool in(const char *range, const char *host)
{
    struct cidr c;
    struct authority a;
    CU_ASSERT_EQUAL_FATAL(cidr_parse(&c, slice_str(range)), 0);
    CU_ASSERT_EQUAL_FATAL(authority_host(&a, slice_str(host)), 0);
    return cidr_contains(&c, &a);
}

static void test_contains(void)
{
    CU_ASSERT(in("10.0.0.0/8", "10.0.0.0") && in("10.0.0.0/8", "10.255.255.255"));
    CU_ASSERT(!in("10.0.0.0/8", "9.255.255.255") && !in("10.0.0.0/8", "11.0.0.0"));
    CU_ASSERT(in("192.168.16.0/20", "192.168.31.255") && !in("192.168.16.0/20", "192.168.32.0"));
    CU_ASSERT(in("192.0.2.1/32", "192.0.2.1") && !in("192.0.2.1/32", "192.0.2.0"));
    CU_ASSERT(in("0.0.0.0/0", "255.255.255.255") && !in("0.0.0.0/0", "[2001:db8::1]"));
    CU_ASSERT(in("2001:db8::/33", "[2001:db8:7fff::1]") &&
              !in("2001:db8::/33", "[2001:db8:8000::]"));
    CU_ASSERT(in("::/0", "[ffff::]") && !in("::/0", "192.0.2.1"));
    CU_ASSERT(in("2001:db8::1/128", "[2001:db8::1]") && !in("2001:db8::1/128", "[2001:db8::]"));
    CU_ASSERT(!in("0.0.0.0/0", "a.name"));
}

static void test_refused(void)
{
    static const char *const bad[] = {"",
                                      "/",
                                      "/8",
                                      "10.0.0.0",
                                      "10.0.0.0/",
                                      "10.0.0.0/33",
                                      "10.0.0.1/8",
                                      "10.0.0.0/08",
                                      "10.0.0.0/8/8",
                                      "10.0.0.0/+8",
                                      "10.0.0.0/ 8",
                                      "10.0.0/8",
                                      "10/8",
                                      "a.com/8",
                                      "[::]/0",
                                      "::/129",
                                      "2001:db8::1/64",
                                      "::ffff:0:0/-1",
                                      "010.0.0.0/8"};
    struct cidr c;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(cidr_parse(&c, slice_str(bad[i])), -1);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("cidr", NULL, NULL);
    CU_add_test(s, "what is within, at the edges", test_contains);
    CU_add_test(s, "other spellings are refused", test_refused);
}
