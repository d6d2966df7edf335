/* Byte queues and slices: bounds, content over many sizes, wiping. */
#include "tap_main.h"

#include "buf.h"

#include <stdlib.h>
#include <string.h>

static void test_bounds(void)
{
    struct buf b;
    buf_init(&b, 10);
    CU_ASSERT_EQUAL(buf_room(&b), 10);
    CU_ASSERT_EQUAL(buf_append(&b, "0123456789", 10), 0);
    CU_ASSERT_EQUAL(buf_append(&b, "x", 1), -1);
    CU_ASSERT(slice_eq_str(buf_slice(&b), "0123456789"));
    buf_drain(&b, 4);
    CU_ASSERT_EQUAL(buf_room(&b), 4);
    CU_ASSERT_EQUAL(buf_append(&b, "abcde", 5), -1);
    CU_ASSERT_EQUAL(buf_append(&b, "abcd", 4), 0);
    CU_ASSERT(slice_eq_str(buf_slice(&b), "456789abcd"));
    CU_ASSERT_PTR_NULL(buf_reserve(&b, SIZE_MAX));
    CU_ASSERT_EQUAL(buf_printf(&b, "%s", "more"), -1);
    CU_ASSERT(slice_eq_str(buf_slice(&b), "456789abcd"));
    buf_free(&b);
    CU_ASSERT_EQUAL(buf_len(&b), 0);
    CU_ASSERT_EQUAL(buf_append(&b, "again", 5), 0);
    buf_free(&b);
}

/* Against a plain array, with appends and drains of pseudo-random sizes. */
static void test_as_a_queue(void)
{
    enum { TOTAL = 40000, MAX = 3000 };
    struct buf b;
    unsigned seed = 1;
    size_t in = 0, out = 0;
    bool right = true;
    buf_init(&b, MAX);
    while (out < TOTAL) {
        seed = seed * 1103515245 + 12345;
        size_t n = (seed >> 16) % 700;
        if ((seed & 0x10000) && in < TOTAL) {
            if (n > TOTAL - in)
                n = TOTAL - in;
            unsigned char *p = buf_reserve(&b, n ? n : 1);
            if (p == NULL) {
                right &= n > buf_room(&b);
                continue;
            }
            for (size_t i = 0; i < n; i++)
                p[i] = (unsigned char)((in + i) * 7 >> 3);
            buf_commit(&b, n);
            in += n;
        } else {
            if (n > buf_len(&b))
                n = buf_len(&b);
            for (size_t i = 0; i < n; i++)
                right &= buf_data(&b)[i] == (unsigned char)((out + i) * 7 >> 3);
            buf_drain(&b, n);
            out += n;
            buf_shrink(&b);
        }
        right &= buf_len(&b) == in - out && buf_len(&b) <= MAX;
    }
    CU_ASSERT(right);
    buf_free(&b);
}

static void test_wiping(void)
{
    struct buf b;
    buf_init_wiped(&b, 100);
    CU_ASSERT_EQUAL(buf_append(&b, "hunter2hunter2", 14), 0);
    unsigned char *at = buf_data(&b);
    buf_clear(&b);
    CU_ASSERT_EQUAL(buf_len(&b), 0);
    CU_ASSERT_NOT_EQUAL(memcmp(at, "hunter2hunter2", 14), 0);
    buf_free(&b);
}

static size_t wiped; /* by the last explicit_bzero */

static void wipe(void *p, size_t n)
{
    volatile unsigned char *at = p;
    wiped = n;
    for (size_t i = 0; i < n; i++)
        at[i] = 0;
}

void explicit_bzero(void *p, size_t n)
{
    wipe(p, n);
}

void __explicit_bzero_chk(void *p, size_t n, size_t room);

void __explicit_bzero_chk(void *p, size_t n, size_t room UNUSED)
{
    wipe(p, n);
}

/* What is released is wiped as far as anything was put there, committed or not, and no further. */
static void test_wiped(void)
{
    struct buf b;
    buf_init_wiped(&b, 1 << 20);
    unsigned char *p = buf_space(&b, 16000);
    memcpy(p, "hunter2", 7);
    buf_commit(&b, 7);
    buf_drain(&b, 7);
    CU_ASSERT_EQUAL(wiped, 7);
    buf_free(&b);
    CU_ASSERT_EQUAL(wiped, 0); /* not a second time */
    p = buf_reserve(&b, 3000);
    memcpy(p, "hunter2", 7);
    buf_commit(&b, 1);
    CU_ASSERT_TRUE(buf_append(&b, "x", 1) == 0);
    buf_free(&b);
    CU_ASSERT_EQUAL(wiped, 3000);
    CU_ASSERT_EQUAL(buf_append(&b, "0123456789", 10), 0);
    buf_cut(&b, 8);
    buf_free(&b);
    CU_ASSERT_EQUAL(wiped, 10);
    CU_ASSERT_EQUAL(buf_append(&b, "0", 1), 0);
    wiped = 0;
    char long_text[2000];
    memset(long_text, 'a', sizeof long_text);
    CU_ASSERT_EQUAL(buf_printf(&b, "%.*s", (int)sizeof long_text, long_text), 0); /* it moves */
    CU_ASSERT_EQUAL(wiped, 512); /* all that the first try had filled */
    buf_free(&b);
    CU_ASSERT_TRUE(wiped >= 2001);
}

/* Whatever a buffer did with it, in the memory that it gave back is nothing of what it held. */
static void test_forgets(void)
{
    static unsigned char seen[1 << 17];
    uint64_t x = 88172645463325252u;
    bool clean = true;
    for (int round = 0; round < 2000; round++) {
        struct buf b, next;
        buf_init_wiped(&b, sizeof seen);
        for (int i = 0; i < 12; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            size_t n = (size_t)(x >> 20) % 30000;
            unsigned char *to;
            if (x % 3 == 0) {
                buf_drain(&b, n < buf_len(&b) ? n : buf_len(&b));
            } else if (x % 3 == 1 && (to = buf_reserve(&b, n)) != NULL) {
                memset(to, 'S', n);
                buf_commit(&b, n / 2);
            } else if (x % 3 == 2 && buf_append(&b, "SSSSSSSSSSSSSSSS", n % 17) < 0) {
                buf_clear(&b);
            }
        }
        size_t cap = b.cap;
        const unsigned char *was = b.base;
        buf_free(&b);
        buf_init(&next, sizeof seen);
        unsigned char *p = cap ? buf_space(&next, cap) : NULL;
        if (p == was && p) /* the same memory again */
            clean &= memchr(p, 'S', cap) == NULL;
        buf_free(&next);
    }
    CU_ASSERT_TRUE(clean);
}

static void test_numbers(void)
{
    uint64_t v;
    CU_ASSERT(slice_u64(SLICE("0"), 10, &v) == 0 && v == 0);
    CU_ASSERT(slice_u64(SLICE("18446744073709551615"), UINT64_MAX, &v) == 0 && v == UINT64_MAX);
    static const char *const bad[] = {"",   "-1",  "+1",  " 1",
                                      "1 ", "1_0", "0x1", "18446744073709551616",
                                      "11", "1.",  "1e1", "99999999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(slice_u64(slice_str(bad[i]), i == 8 ? 10 : UINT64_MAX, &v), -1);
    CU_ASSERT_EQUAL(slice_u64((struct slice){"1\0", 2}, 100, &v), -1);
}

static void test_slices(void)
{
    CU_ASSERT(slice_eq(slice_str(NULL), SLICE("")));
    CU_ASSERT(slice_ieq_str(SLICE("HoSt"), "host"));
    CU_ASSERT_FALSE(slice_ieq_str(SLICE("h\xd6st"), "h\xf6st"));
    CU_ASSERT(slice_eq_str(slice_trim(SLICE(" \ta b\t ")), "a b"));
    CU_ASSERT_EQUAL(slice_find(SLICE("a:b:c"), ':'), 1);
    CU_ASSERT_EQUAL(slice_find(SLICE(""), ':'), -1);
    CU_ASSERT_EQUAL(slice_find_slice(SLICE("aab"), SLICE("ab")), 1);
    CU_ASSERT_EQUAL(slice_find_slice(SLICE("a"), SLICE("ab")), -1);
    CU_ASSERT_PTR_NULL(slice_dup((struct slice){"a\0b", 3}));
    char *copy = slice_dup(SLICE("copy"));
    CU_ASSERT(copy && strcmp(copy, "copy") == 0);
    free(copy);
    CU_ASSERT(slice_starts(SLICE("abc"), SLICE("ab")));
    CU_ASSERT_FALSE(slice_starts(SLICE("a"), SLICE("ab")));
    CU_ASSERT(slice_ends(SLICE("x.com"), SLICE(".com")));
    CU_ASSERT_FALSE(slice_ends(SLICE("com"), SLICE(".com")));
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("buf", NULL, NULL);
    CU_add_test(s, "its maximum", test_bounds);
    CU_add_test(s, "as a queue", test_as_a_queue);
    CU_add_test(s, "wiping", test_wiping);
    s = CU_add_suite("slice", NULL, NULL);
    CU_add_test(s, "wiped as far as it was used", test_wiped);
    CU_add_test(s, "memory that is given back", test_forgets);
    CU_add_test(s, "numbers", test_numbers);
    CU_add_test(s, "comparing and finding", test_slices);
}
