/* When a ClientHello can be whole: however it is cut into records, and byte by byte. */
#include "hello.h"
#include "tap_main.h"

#include <string.h>

enum { MESSAGE = 4 + 300 };

/* A message of that type in records of `each` bytes -> how long they are. */
static size_t make(unsigned char *to, unsigned type, size_t each)
{
    unsigned char m[MESSAGE] = {(unsigned char)type, 0, (MESSAGE - 4) >> 8, (MESSAGE - 4) & 255};
    size_t n = 0;
    for (size_t at = 0; at < MESSAGE; at += each) {
        size_t k = MESSAGE - at < each ? MESSAGE - at : each;
        const unsigned char head[5] = {22, 3, 1, (unsigned char)(k >> 8), (unsigned char)k};
        memcpy(to + n, head, sizeof head);
        memcpy(to + n + sizeof head, m + at, k);
        n += sizeof head + k;
    }
    return n;
}

/* How often somebody who waits for what is needed would look, byte by byte. */
static void test_when(void)
{
    static const size_t cuts[] = {MESSAGE, 200, 5, 4, 3, 1};
    static unsigned char text[6 * MESSAGE];
    for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
        size_t n = make(text, 1, cuts[i]), needs = 0, looks = 0;
        for (size_t have = 1; have <= n; have++) {
            if (have < needs)
                continue;
            needs = hello_needs((struct slice){(const char *)text, have});
            CU_ASSERT(have == n ? needs <= n : needs > have && needs <= n);
            looks += needs <= have;
        }
        CU_ASSERT_EQUAL(looks, 1);
    }
}

static void test_none(void)
{
    static unsigned char text[6 * MESSAGE];
    size_t n = make(text, 2, 1);
    CU_ASSERT(hello_needs((struct slice){(const char *)text, n}) <= n);
    CU_ASSERT_EQUAL(hello_needs((struct slice){"\x17\x03\x01\x00\x05", 5}), 0);
    CU_ASSERT_EQUAL(hello_needs((struct slice){"\x16\x03\x01\x00\x00", 5}), 0);
    CU_ASSERT_EQUAL(hello_needs((struct slice){"\x16", 1}), 5);
    CU_ASSERT_EQUAL(hello_needs((struct slice){"", 0}), 5);
    CU_ASSERT_EQUAL(hello_needs((struct slice){"\x16\x03\x01\xff\xff", 5}), 5 + 65535);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("hello", NULL, NULL);
    CU_add_test(s, "it is looked at once, when it is whole", test_when);
    CU_add_test(s, "what is none is looked at at once", test_none);
}
