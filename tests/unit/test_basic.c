/* Basic credentials: the one canonical spelling, and nothing that another reader takes for more. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "basic.h"
#include "tap_main.h"

void suite_basic(void);

static void test_decode(void)
{
    static const struct {
        const char *value, *want; /* NULL: refused */
    } rows[] = {
        {"Basic YTpi", "a:b"},
        {"bAsIc YTpi", "a:b"},
        {"Basic \t YTpi  ", "a:b"},
        {"Basic YTpiYw==", "a:bc"},
        {"Basic YTpiYwo=", "a:bc\n"},
        {"Basic Og==", ":"},
        {"Basic +/8=", "\xfb\xff"},
        {"", NULL},
        {"Basic", NULL},
        {"Basic ", NULL},
        {"Basic    ", NULL},
        {"BasicYTpi", NULL},
        {"Bearer YTpi", NULL},
        {"Basic YTp", NULL},
        {"Basic YTpi=", NULL},
        {"Basic ====", NULL},
        {"Basic Y===", NULL},
        {"Basic YT=p", NULL},
        {"Basic YQ==YTpi", NULL},
        {"Basic YT pi", NULL},
        {"Basic YTpi, Basic YTpj", NULL},
        {"Basic -_8=", NULL},
        {"Basic YTp\xc3\xa9", NULL},
        {"Basic YTpi\n", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char out[64];
        struct slice pair = {"", 0};
        int r = basic_decode(slice_str(rows[i].value), out, sizeof out, &pair);
        if (r != (rows[i].want ? 0 : -1))
            printf("# %s: %d\n", rows[i].value, r);
        CU_ASSERT_EQUAL(r, rows[i].want ? 0 : -1);
        CU_ASSERT(r < 0 || slice_eq_str(pair, rows[i].want));
    }
}

static void test_room(void)
{
    char out[8];
    struct slice pair;
    CU_ASSERT_EQUAL(basic_decode(SLICE("Basic YTpiYTpi"), out, 6, &pair), 0);
    CU_ASSERT_EQUAL(basic_decode(SLICE("Basic YTpiYTpi"), out, 5, &pair), -1);
    CU_ASSERT_EQUAL(basic_decode(SLICE("Basic YTpiYQ=="), out, 4, &pair), 0);
    CU_ASSERT_EQUAL(basic_decode(SLICE("Basic YTpiYQ=="), out, 3, &pair), -1);
    CU_ASSERT_EQUAL(basic_decode(SLICE("Basic YTpi\0YTp"), out, sizeof out, &pair), -1);
}

static void test_split(void)
{
    struct slice user, password;
    CU_ASSERT_EQUAL(basic_split(SLICE("u:p:w"), &user, &password), 0);
    CU_ASSERT(slice_eq_str(user, "u") && slice_eq_str(password, "p:w"));
    CU_ASSERT_EQUAL(basic_split(SLICE(":"), &user, &password), 0);
    CU_ASSERT(user.n == 0 && password.n == 0);
    CU_ASSERT_EQUAL(basic_split(SLICE("up"), &user, &password), -1);
    CU_ASSERT_EQUAL(basic_split(SLICE(""), &user, &password), -1);
}

void suite_basic(void)
{
    CU_pSuite s = CU_add_suite("basic", NULL, NULL);
    CU_add_test(s, "values", test_decode);
    CU_add_test(s, "room", test_room);
    CU_add_test(s, "halves", test_split);
}

void tap_suites(void)
{
    suite_basic();
}
