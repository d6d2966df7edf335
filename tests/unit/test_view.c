/* What a sandbox wrote itself. The view as a whole: tests/adversary/masks.t. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tap_main.h"
#include "view_own.h"

static struct owns owns;

static int make(void)
{
    int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    return fd;
}

static bool holds(int fd, const char *text)
{
    char got[64];
    ssize_t n = own_read(&owns, fd, got, sizeof got, 0);
    return n == (ssize_t)strlen(text) && memcmp(got, text, strlen(text)) == 0;
}

static void test_kept(void)
{
    char one[2];
    own_init(&owns);
    int fd = make(), other = make();
    CU_ASSERT_EQUAL(own_read(&owns, fd, one, 1, 0), -1);
    CU_ASSERT_EQUAL(own_add(&owns, fd, -1, OWN_HELD), 0);
    CU_ASSERT_TRUE(holds(fd, ""));
    CU_ASSERT_EQUAL(own_write(&owns, fd, "hello", 5, 0), 5);
    CU_ASSERT_EQUAL(own_write(&owns, fd, "J", 1, 0), 1);
    CU_ASSERT_TRUE(holds(fd, "Jello"));
    CU_ASSERT_EQUAL(own_cut(&owns, fd, 2), 0);
    CU_ASSERT_TRUE(holds(fd, "Je"));
    CU_ASSERT_EQUAL(own_cut(&owns, fd, 3), 0);
    CU_ASSERT_EQUAL(own_read(&owns, fd, one, sizeof one, 2), 1);
    CU_ASSERT_EQUAL(one[0], '\0'); /* and not what was cut off before */
    CU_ASSERT_EQUAL(own_compare(&owns, fd), OWN_HELD);
    CU_ASSERT_EQUAL(own_state(&owns, other), OWN_NOT);
    own_drop(&owns, fd);
    CU_ASSERT_EQUAL(own_state(&owns, fd), OWN_NOT);
    close(fd);
    close(other);
}

/* Another writes to it: no byte of that is read, and at the next look it is no longer ours. */
static void test_others_bytes(void)
{
    own_init(&owns);
    int fd = make();
    CU_ASSERT_EQUAL(own_add(&owns, fd, -1, OWN_HELD), 0);
    CU_ASSERT_EQUAL(own_write(&owns, fd, "mine", 4, 0), 4);
    CU_ASSERT_EQUAL(pwrite(fd, "secret", 6, 0), 6);
    CU_ASSERT_TRUE(holds(fd, "mine"));
    CU_ASSERT_EQUAL(own_compare(&owns, fd), OWN_NOT);
    CU_ASSERT_FALSE(holds(fd, "mine"));
    close(fd);
}

static void test_bounds(void)
{
    static char big[OWN_BYTES_MAX];
    static int fds[OWN_FILES_MAX + 1];
    own_init(&owns);
    for (int i = 0; i <= OWN_FILES_MAX; i++) {
        fds[i] = make();
        CU_ASSERT_EQUAL(own_add(&owns, fds[i], -1, OWN_HELD), i < OWN_FILES_MAX ? 0 : -1);
    }
    CU_ASSERT_EQUAL(own_write(&owns, fds[0], big, sizeof big, 0), (ssize_t)sizeof big);
    CU_ASSERT_EQUAL(own_state(&owns, fds[0]), OWN_HELD);
    CU_ASSERT_EQUAL(own_write(&owns, fds[0], big, 1, sizeof big), 1);
    CU_ASSERT_EQUAL(own_state(&owns, fds[0]), OWN_NOT);
    CU_ASSERT_EQUAL(own_write(&owns, fds[1], "x", 1, (off_t)1 << 40), 1);
    CU_ASSERT_EQUAL(own_state(&owns, fds[1]), OWN_NOT);
    CU_ASSERT_EQUAL(own_add(&owns, fds[OWN_FILES_MAX], -1, OWN_HELD), 0); /* room again */
    for (int i = 0; i <= OWN_FILES_MAX; i++)
        close(fds[i]);
}

static void suite_own(void)
{
    CU_pSuite s = CU_add_suite("own", NULL, NULL);
    CU_add_test(s, "a copy follows what is written", test_kept);
    CU_add_test(s, "what another writes", test_others_bytes);
    CU_add_test(s, "bounds", test_bounds);
}

void tap_suites(void)
{
    suite_own();
}
