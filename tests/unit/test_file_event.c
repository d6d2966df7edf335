/* Entries of watched directories, as a sandbox may write them. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "compiler.h"
#include "file_event.h"
#include "tap_main.h"

static void test_good(void)
{
    static const struct {
        const char *entry, *path, *name;
        bool directory;
    } rows[] = {{"c 0 a", "a", "created", false},
                {"m 0 a/b", "a/b", "modified", false},
                {"d 1 a b/..c", "a b/..c", "deleted", true},
                {"a 0 \xff\n", "\xff\n", "attributes", false},
                {"r 0 ", "", NULL, false},
                {"o 0 ", "", NULL, false},
                {"w 0 ", "", NULL, false},
                {"c 0 ...", "...", "created", false},
                {"c 0 .a", ".a", "created", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct file_event e;
        CU_ASSERT_EQUAL_FATAL(file_event_read(rows[i].entry, &e), 0);
        CU_ASSERT_STRING_EQUAL(e.path, rows[i].path);
        CU_ASSERT_EQUAL(e.directory, rows[i].directory);
        const char *name = file_event_name(e.kind);
        CU_ASSERT_TRUE(name == rows[i].name || (name && strcmp(name, rows[i].name) == 0));
    }
}

static void test_nonsense(void)
{
    static const char *const rows[] = {
        "",         "c",         "c 0",           "c 0 ",  "c 2 a",  "x 0 a",
        "c0 a",     "c  0 a",    "c 0a",          "r 0 a", "o 0 a",  "w 1 a",
        "c 0 /a",   "c 0 a/",    "c 0 a//b",      "c 0 .", "c 0 ..", "c 0 ../a",
        "c 0 a/..", "c 0 a/./b", "c 0 a/../../b", "c 0 /", "c\t0 a", "x 0 ",
    };
    struct file_event e;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CU_ASSERT_EQUAL(file_event_read(rows[i], &e), -1);
    char long_one[FILE_EVENT_MAX + 1];
    memset(long_one, 'a', sizeof long_one);
    memcpy(long_one, "c 0 ", 4);
    long_one[4 + INSIDE_PATH - 1] = '\0';
    CU_ASSERT_EQUAL(file_event_read(long_one, &e), 0);
    long_one[4 + INSIDE_PATH - 1] = 'a';
    long_one[4 + INSIDE_PATH] = '\0';
    CU_ASSERT_EQUAL(file_event_read(long_one, &e), -1);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("file_event", NULL, NULL);
    CU_add_test(s, "what happened, and to what", test_good);
    CU_add_test(s, "what is no event, or leads elsewhere", test_nonsense);
}
