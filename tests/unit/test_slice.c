/* Slices, paths, errors: the smallest things that everything stands on. */
#include "err.h"
#include "paths.h"
#include "slice.h"
#include "tap_main.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void suite_slice(void);

static void test_compare(void)
{
    struct slice none = {NULL, 0};
    CU_ASSERT(slice_eq(none, SLICE("")) && slice_ieq(none, SLICE("")));
    CU_ASSERT(slice_eq(SLICE("a\0b"), SLICE("a\0b")) && !slice_eq(SLICE("a\0b"), SLICE("a\0c")));
    CU_ASSERT(!slice_eq_str(SLICE("a\0b"), "a") && !slice_ieq_str(SLICE("a\0"), "a"));
    CU_ASSERT(slice_ieq(SLICE("aZ-[@"), SLICE("Az-[@")) && !slice_ieq(SLICE("["), SLICE("{")));
    CU_ASSERT(!slice_ieq(SLICE("\xc3\x89"), SLICE("\xc3\xa9"))); /* ASCII alone is folded */
    CU_ASSERT(slice_starts(SLICE("abc"), SLICE("ab")) && !slice_starts(SLICE("a"), SLICE("ab")));
    CU_ASSERT(slice_ends(SLICE("abc"), SLICE("bc")) && !slice_ends(SLICE("c"), SLICE("bc")));
    CU_ASSERT(slice_istarts(SLICE("ABc"), SLICE("ab")) && slice_starts(none, none));
    CU_ASSERT_EQUAL(slice_find(none, 'a'), -1);
    CU_ASSERT_EQUAL(slice_find(SLICE("a\0b"), 'b'), 2);
    CU_ASSERT_EQUAL(slice_find_slice(SLICE("a\0bc"), SLICE("\0b")), 1);
    CU_ASSERT_EQUAL(slice_find_slice(none, none), 0);
    CU_ASSERT_EQUAL(slice_find_slice(SLICE("a"), SLICE("ab")), -1);
    CU_ASSERT(slice_eq(slice_trim(SLICE(" \t a b\t ")), SLICE("a b")));
    CU_ASSERT_EQUAL(slice_trim(SLICE(" \t ")).n, 0);
    CU_ASSERT(slice_eq(slice_trim(SLICE("\va\r")), SLICE("\va\r")));
    CU_ASSERT_PTR_NULL(slice_dup(SLICE("a\0b")));
    char *s = slice_dup(none);
    CU_ASSERT_STRING_EQUAL(s, "");
    free(s);
}

static void test_numbers(void)
{
    static const char *const bad[] = {"",
                                      "+1",
                                      "-1",
                                      " 1",
                                      "1 ",
                                      "0x1",
                                      "1_0",
                                      "1a",
                                      "18446744073709551616",
                                      "99999999999999999999",
                                      "000000000000000000001",
                                      "\xb2"};
    uint64_t v = 77;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CU_ASSERT_EQUAL(slice_u64(slice_str(bad[i]), UINT64_MAX, &v), -1);
        CU_ASSERT_EQUAL(v, 77);
    }
    CU_ASSERT(slice_u64(SLICE("18446744073709551615"), UINT64_MAX, &v) == 0 && v == UINT64_MAX);
    CU_ASSERT(slice_u64(SLICE("007"), 7, &v) == 0 && v == 7);
    CU_ASSERT_EQUAL(slice_u64(SLICE("8"), 7, &v), -1);
    CU_ASSERT_EQUAL(slice_u64(SLICE("1\0"), 7, &v), -1);
}

static void test_errors(void)
{
    struct err e = {0};
    char longer[1000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    CU_ASSERT_EQUAL(err_set(NULL, ERR_PARSE, "%d", 1), -1);
    CU_ASSERT_EQUAL(err_wrap(NULL, "x"), -1);
    errno = ENOENT;
    CU_ASSERT_EQUAL(err_sys(&e, "open %s", "f"), -1);
    CU_ASSERT(e.code == ERR_SYS && errno == ENOENT);
    CU_ASSERT_STRING_EQUAL(e.text, "open f: No such file or directory");
    CU_ASSERT_EQUAL(err_wrap(&e, "while %d", 1), -1);
    CU_ASSERT_STRING_EQUAL(e.text, "while 1: open f: No such file or directory");
    CU_ASSERT_EQUAL(e.code, ERR_SYS);
    err_set(&e, ERR_LIMIT, "%s", longer);
    CU_ASSERT_EQUAL(strlen(e.text), sizeof e.text - 1);
    err_wrap(&e, "%s", longer);
    CU_ASSERT_EQUAL(strlen(e.text), sizeof e.text - 1);
    err_sys(&e, "%s", longer);
    CU_ASSERT_EQUAL(strlen(e.text), sizeof e.text - 1);
}

static char dir[] = "/tmp/durward-test-XXXXXX";

static int below(const char *name, int (*fn)(const char *, struct err *))
{
    char *path = paths_join(dir, name);
    struct err e = {0};
    int r = fn(path, &e);
    CU_ASSERT_EQUAL(r == 0, e.code == ERR_NONE);
    free(path);
    return r;
}

static int check_file(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), r = paths_check_private_fd(fd, path, e);
    close(fd);
    return r;
}

static void test_private(void)
{
    struct stat st;
    umask(0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    CU_ASSERT_EQUAL(chdir(dir), 0);
    CU_ASSERT_EQUAL(below("a/b/c", paths_make_private), 0);
    CU_ASSERT(stat("a/b/c", &st) == 0 && (st.st_mode & 07777) == 0700);
    CU_ASSERT(stat("a", &st) == 0 && (st.st_mode & 07777) == 0700);
    CU_ASSERT_EQUAL(below("a/b/c", paths_make_private), 0);
    CU_ASSERT(mkdir("open", 0777) == 0 && below("open", paths_make_private) == -1);
    CU_ASSERT(mkdir("group", 0720) == 0 && below("group", paths_make_private) == -1);
    CU_ASSERT(symlink("a", "link") == 0 && below("link", paths_make_private) == -1);
    int fd = open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    close(fd);
    CU_ASSERT_EQUAL(below("file", paths_make_private), -1);
    CU_ASSERT_EQUAL(below("file/x", paths_make_private), -1);
    CU_ASSERT_EQUAL(below("file", check_file), 0);
    static const mode_t bad[] = {0640, 0604, 0620, 0602, 0610, 0601};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT(chmod("file", bad[i]) == 0 && below("file", check_file) == -1);
    CU_ASSERT_EQUAL(below("a", check_file), -1); /* no regular file */
    if (geteuid() == 0) {
        CU_ASSERT(chmod("file", 0600) == 0 && chown("file", 65534, 65534) == 0);
        CU_ASSERT_EQUAL(below("file", check_file), -1);
    }
    static const char *const made[] = {"a/b/c", "a/b", "a", "open", "group"};
    for (size_t i = 0; i < ARRAY_LEN(made); i++)
        CU_ASSERT_EQUAL(rmdir(made[i]), 0);
    CU_ASSERT(unlink("link") == 0 && unlink("file") == 0 && chdir("/") == 0 && rmdir(dir) == 0);
}

void suite_slice(void)
{
    CU_pSuite s = CU_add_suite("slice", NULL, NULL);
    CU_add_test(s, "comparing, finding, trimming", test_compare);
    CU_add_test(s, "numbers", test_numbers);
    CU_add_test(s, "errors", test_errors);
    CU_add_test(s, "private directories and files", test_private);
}

void tap_suites(void)
{
    suite_slice();
}
