/* What a volume holds: counted, kept from an older count where that takes too long, or full. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler.h"
#include "tap_main.h"
#include "volume.h"

enum { SIZE = 1 << 20 };

static const struct timespec never = {INT32_MAX, 0}, past = {0, 0};

static void make(int dir, const char *name, size_t n)
{
    char bytes[2 * VOLUME_BLOCK] = "";
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CU_ASSERT_EQUAL(write(fd, bytes, n), (ssize_t)n);
    close(fd);
}

static void test_count(void)
{
    char path[] = "/tmp/durward-volume-XXXXXX";
    struct stat st;
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(path));
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CU_ASSERT_EQUAL(volume_count(dir, SIZE, -1, &never), SIZE); /* there is nothing to count */
    CU_ASSERT_EQUAL(volume_count(dir, SIZE, 5, &never), SIZE);
    CU_ASSERT_EQUAL_FATAL(mkdirat(dir, "root", 0700), 0);
    make(dir, "root/a", 1);
    make(dir, "root/b", VOLUME_BLOCK + 1);
    CU_ASSERT_EQUAL(fstatat(dir, "root", &st, 0), 0);
    int64_t holds = volume_length(st.st_size) + (1 + 1 + 1 + 2) * (int64_t)VOLUME_BLOCK;
    CU_ASSERT_EQUAL(volume_count(dir, SIZE, -1, &never), holds);
    CU_ASSERT_EQUAL(volume_count(dir, SIZE, 5, &never), holds);
    CU_ASSERT_EQUAL(volume_count(dir, SIZE, holds + 7, &past), holds + 7);
    CU_ASSERT_EQUAL(volume_count(dir, SIZE, -1, &past), SIZE);
    CU_ASSERT_EQUAL(volume_count(dir, SIZE, 0, &past), 0);
    unlinkat(dir, "root/a", 0);
    unlinkat(dir, "root/b", 0);
    unlinkat(dir, "root", AT_REMOVEDIR);
    close(dir);
    CU_ASSERT_EQUAL(rmdir(path), 0);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("volume", NULL, NULL);
    CU_add_test(s, "counted, kept, or full", test_count);
}
