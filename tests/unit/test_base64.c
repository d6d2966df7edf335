/* Base64: every spelling that is not the one of RFC 4648 is refused, and what is refused leaves
 * nothing behind. */
#include "base64.h"

#include <string.h>

#include "tap_main.h"

static ssize_t is(const char *text, char to[64])
{
    return base64_read(slice_str(text), to, 64);
}

static void test_vectors(void)
{
    static const struct {
        const char *text, *url, *plain;
    } rows[] = {{"", "", ""},
                {"Zg==", "Zg", "f"},
                {"Zm8=", "Zm8", "fo"},
                {"Zm9v", "Zm9v", "foo"},
                {"Zm9vYg==", "Zm9vYg", "foob"},
                {"Zm9vYmE=", "Zm9vYmE", "fooba"},
                {"Zm9vYmFy", "Zm9vYmFy", "foobar"},
                {"++//", "--__", "\xfb\xef\xff"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char to[64];
        struct buf out;
        size_t n = strlen(rows[i].plain);
        CU_ASSERT_EQUAL(is(rows[i].text, to), (ssize_t)n);
        CU_ASSERT(memcmp(to, rows[i].plain, n) == 0);
        buf_init(&out, 64);
        CU_ASSERT_EQUAL(base64_decode(&out, slice_str(rows[i].text)), 0);
        CU_ASSERT(slice_eq_str(buf_slice(&out), rows[i].plain));
        buf_clear(&out);
        CU_ASSERT_EQUAL(base64url_decode(&out, slice_str(rows[i].url)), 0);
        CU_ASSERT(slice_eq_str(buf_slice(&out), rows[i].plain));
        buf_clear(&out);
        CU_ASSERT_EQUAL(base64_append(&out, slice_str(rows[i].plain)), 0);
        CU_ASSERT(slice_eq_str(buf_slice(&out), rows[i].text));
        buf_free(&out);
    }
}

static void test_refused(void)
{
    static const char *const rows[] = {"Z", "Zg", "Zm8", "Zg=", "Zg===", "====", "=",
                                       "Zg==Zg==", "Zm=v", "Z===", " Zg==", "Zg== ", "Zm9v\n",
                                       "Zm 9", "Zm9-", "Zm9_", "Zm9*", "Zm\x80v",
                                       /* bits left over that are not zero */
                                       "Zh==", "Zm9=", "Zm9vYh==", "Z/==", "Zm+="};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char to[64];
        struct buf out;
        buf_init(&out, 64);
        CU_ASSERT_EQUAL(is(rows[i], to), -1);
        CU_ASSERT_EQUAL(buf_append_str(&out, "kept"), 0);
        CU_ASSERT_EQUAL(base64_decode(&out, slice_str(rows[i])), -1);
        CU_ASSERT(slice_eq_str(buf_slice(&out), "kept"));
        buf_free(&out);
    }
    static const char *const url[] = {"Z",    "A",    "Zm9vA", "Zg==",  "Zm9vZ",
                                      "Zm9+", "Zm9/", "Zh",    "Zm9vYh"};
    for (size_t i = 0; i < ARRAY_LEN(url); i++) {
        struct buf out;
        buf_init(&out, 64);
        CU_ASSERT_EQUAL(base64url_decode(&out, slice_str(url[i])), -1);
        CU_ASSERT_EQUAL(buf_len(&out), 0);
        buf_free(&out);
    }
}

static void test_bounds(void)
{
    char to[4] = "123";
    CU_ASSERT_EQUAL(base64_read(SLICE("Zm9v"), to, 2), -1);
    CU_ASSERT_STRING_EQUAL(to, "123");
    CU_ASSERT_EQUAL(base64_read(SLICE("Zm9v"), to, 3), 3);
    CU_ASSERT_EQUAL(base64_read(SLICE("Zm8="), to, 2), 2);
    CU_ASSERT_EQUAL(base64_read(SLICE("Zm8\0"), to, 3), -1);
    struct buf out;
    buf_init(&out, 3);
    CU_ASSERT_EQUAL(base64_decode(&out, SLICE("Zm9v")), 0);
    CU_ASSERT_EQUAL(base64_decode(&out, SLICE("Zg==")), -1);
    CU_ASSERT_EQUAL(base64_decode(&out, SLICE("")), 0);
    CU_ASSERT(slice_eq_str(buf_slice(&out), "foo"));
    buf_free(&out);
}

/* Each text of four characters of a small alphabet: what is read is written back as it was. */
static void test_one_spelling(void)
{
    static const char all[] = "AZgh8/+=-_ \n";
    unsigned read = 0;
    for (size_t n = 0; n < 12 * 12 * 12 * 12; n++) {
        const char text[4] = {all[n % 12], all[n / 12 % 12], all[n / 144 % 12], all[n / 1728]};
        const struct slice s = {text, sizeof text};
        char bytes[3];
        ssize_t got = base64_read(s, bytes, sizeof bytes);
        if (got < 0)
            continue;
        struct buf out;
        buf_init(&out, 16);
        CU_ASSERT_FATAL(base64_append(&out, (struct slice){bytes, (size_t)got}) == 0);
        CU_ASSERT_FATAL(slice_eq(buf_slice(&out), s));
        buf_free(&out);
        read++;
    }
    CU_ASSERT(read > 2401 && read < 4000);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("base64", NULL, NULL);
    CU_add_test(s, "the RFC's own examples", test_vectors);
    CU_add_test(s, "any other spelling is refused", test_refused);
    CU_add_test(s, "into no more than there is", test_bounds);
    CU_add_test(s, "one spelling for what is read", test_one_spelling);
}
