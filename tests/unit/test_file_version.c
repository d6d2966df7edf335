/* Versions of files, and changing a file only if it is still the version that was looked at. */
#define _GNU_SOURCE 1
#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file_version.h"
#include "tap_main.h"

static char folder[] = "/tmp/test_file_version.XXXXXX";
static int dir = -1;

static int begin(void)
{
    (void)signal(SIGIO, SIG_IGN);
    dir = mkdtemp(folder) ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    return dir < 0;
}

static int end(void)
{
    close(dir);
    return rmdir(folder) < 0;
}

static void put(const char *name, const char *text)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static struct file_version version(const char *name)
{
    struct stat st;
    CU_ASSERT_EQUAL(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return file_version_of(&st);
}

/* Its bytes; "": there is none. */
static const char *get(const char *name)
{
    static char text[64];
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
    return text;
}

static void test_text(void)
{
    static const char *const bad[] = {"",
                                      "1.2.3",
                                      "1.2.3.4.5",
                                      "1.2.3.",
                                      ".1.2.3",
                                      "1.2.3.4 ",
                                      "1.2.3.G",
                                      "-",
                                      "1..2.3",
                                      "A.1.1.1",
                                      "none",
                                      "1.2.3.4\n5",
                                      "12345678901234567.1.1.1"};
    struct file_version v = {1, UINT64_MAX, -5, INT64_MAX}, w;
    char text[FILE_VERSION_TEXT];
    file_version_text(&v, text);
    CU_ASSERT_EQUAL(file_version_read(text, &w), 0);
    CU_ASSERT_TRUE(file_version_same(&v, &w));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(file_version_read(bad[i], &w), -1);
}

static void test_still(void)
{
    put("a", "x");
    struct file_version v = version("a");
    CU_ASSERT_FALSE(file_version_still(&v));
    v.changed -= 2 * FILE_VERSION_STILL_MS * INT64_C(1000000);
    CU_ASSERT_TRUE(file_version_still(&v));
    v.changed += INT64_C(100) * 1000000000; /* the clock was set back */
    CU_ASSERT_TRUE(file_version_still(&v));
    unlinkat(dir, "a", 0);
}

static void test_replace(void)
{
    put("a", "old");
    put("b", "new");
    struct file_version was = version("a");
    CU_ASSERT_EQUAL(file_replace(dir, "b", "a", &was), 0);
    CU_ASSERT_STRING_EQUAL(get("a"), "new");
    CU_ASSERT_STRING_EQUAL(get("b"), "");
    put("b", "newer");
    CU_ASSERT_EQUAL(file_replace(dir, "b", "a", &was), ESTALE);
    CU_ASSERT_STRING_EQUAL(get("a"), "new");
    CU_ASSERT_STRING_EQUAL(get("b"), "");
    put("b", "newer");
    CU_ASSERT_EQUAL(file_replace(dir, "b", "a", NULL), ESTALE);
    CU_ASSERT_STRING_EQUAL(get("a"), "new");
    unlinkat(dir, "a", 0);
    put("b", "first");
    CU_ASSERT_EQUAL(file_replace(dir, "b", "a", &was), ESTALE);
    CU_ASSERT_STRING_EQUAL(get("a"), "");
    put("b", "first");
    CU_ASSERT_EQUAL(file_replace(dir, "b", "a", NULL), 0);
    CU_ASSERT_STRING_EQUAL(get("a"), "first");
    unlinkat(dir, "a", 0);
}

static void test_links(void)
{
    put("a", "old");
    put("b", "new");
    struct file_version was = version("a");
    CU_ASSERT_EQUAL(renameat(dir, "a", dir, "c"), 0);
    CU_ASSERT_EQUAL(symlinkat("c", dir, "a"), 0);
    CU_ASSERT_EQUAL(file_replace(dir, "b", "a", &was), ESTALE);
    CU_ASSERT_EQUAL(file_remove(dir, "a", "d", &was), ESTALE);
    CU_ASSERT_STRING_EQUAL(get("a"), "old");
    unlinkat(dir, "a", 0);
    unlinkat(dir, "c", 0);
}

/* Who has it open would write to what is no longer there. */
static void test_writer(void)
{
    put("a", "old");
    put("b", "new");
    struct file_version was = version("a");
    int fd = openat(dir, "a", O_RDONLY | O_CLOEXEC), w;
    bool leases = fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
    close(fd);
    w = openat(dir, "a", O_WRONLY | O_CLOEXEC);
    if (leases) {
        CU_ASSERT_EQUAL(file_replace(dir, "b", "a", &was), ETXTBSY);
        CU_ASSERT_EQUAL(file_remove(dir, "a", "d", &was), ETXTBSY);
        CU_ASSERT_STRING_EQUAL(get("a"), "old");
    } else {
        fprintf(stderr, "# no leases on this file system: a writer is not seen\n");
    }
    close(w);
    unlinkat(dir, "a", 0);
    (void)unlinkat(dir, "b", 0);
}

static void test_remove(void)
{
    put("a", "old");
    struct file_version was = version("a"), other = was;
    other.changed++;
    CU_ASSERT_EQUAL(file_remove(dir, "a", "d", &other), ESTALE);
    CU_ASSERT_STRING_EQUAL(get("a"), "old");
    CU_ASSERT_EQUAL(file_remove(dir, "a", "d", &was), 0);
    CU_ASSERT_STRING_EQUAL(get("a"), "");
    CU_ASSERT_STRING_EQUAL(get("d"), "");
    CU_ASSERT_EQUAL(file_remove(dir, "a", "d", &was), ESTALE);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("file_version", begin, end);
    CU_add_test(s, "as text", test_text);
    CU_add_test(s, "still", test_still);
    CU_add_test(s, "replaced, if it is the version", test_replace);
    CU_add_test(s, "a link is no version of it", test_links);
    CU_add_test(s, "not while somebody has it open", test_writer);
    CU_add_test(s, "removed, if it is the version", test_remove);
}
