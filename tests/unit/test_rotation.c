/* A change of the CA: what its files mean, and each state that a crash can leave. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rotation.h"
#include "tap_main.h"

void suite_rotation(void);

enum { SINCE = 1000, UNTIL = 2000 };

static char where[] = "/tmp/durward-rotation-XXXXXX";
static int dir;
static const char *const every[] = {"key.pem",     "cert.pem", "next-key.pem", "next-cert.pem",
                                    "old-key.pem", "rotation", ".rotation.new"};

static void put(const char *name, const char *text)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static bool holds(const char *name, const char *text)
{
    char got[64] = "";
    int fd = openat(dir, name, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, got, sizeof got - 1);
    if (fd >= 0)
        close(fd);
    return text == NULL ? n < 0 : n >= 0 && strcmp(got, text) == 0;
}

static void fresh(void)
{
    struct rotation r = {SINCE, UNTIL};
    for (size_t i = 0; i < ARRAY_LEN(every); i++)
        unlinkat(dir, every[i], 0);
    put("key.pem", "old key");
    put("cert.pem", "old cert");
    put("next-key.pem", "new key");
    put("next-cert.pem", "new cert");
    CU_ASSERT_EQUAL(rotation_commit(dir, &r, NULL), 0);
}

/* The steps of putting the new CA in place, in their order; the old key half overwritten is one. */
static void step(int i)
{
    switch (i) {
    case 0:
        CU_ASSERT_EQUAL(linkat(dir, "key.pem", dir, "old-key.pem", 0), 0);
        break;
    case 1:
        CU_ASSERT_EQUAL(renameat(dir, "next-key.pem", dir, "key.pem"), 0);
        break;
    case 2:
        CU_ASSERT_EQUAL(renameat(dir, "next-cert.pem", dir, "cert.pem"), 0);
        break;
    case 3:
        put("old-key.pem", "\1\1\1 key");
        break;
    case 4:
        CU_ASSERT_EQUAL(unlinkat(dir, "old-key.pem", 0), 0);
        break;
    default:
        CU_ASSERT_EQUAL(unlinkat(dir, "rotation", 0), 0);
    }
}

static bool is_new(void)
{
    return holds("key.pem", "new key") && holds("cert.pem", "new cert") &&
           holds("next-key.pem", NULL) && holds("next-cert.pem", NULL) &&
           holds("old-key.pem", NULL) && holds("rotation", NULL);
}

static void test_every_state_goes_on(void)
{
    for (int steps = 0; steps <= 6; steps++) {
        fresh();
        for (int i = 0; i < steps; i++)
            step(i);
        CU_ASSERT_EQUAL(rotation_due(dir, UNTIL, NULL), steps < 6);
        CU_ASSERT_EQUAL(rotation_settle(dir, UNTIL, NULL), 0);
        CU_ASSERT(is_new());
        CU_ASSERT_EQUAL(rotation_settle(dir, UNTIL, NULL), 0);
        CU_ASSERT(is_new());
    }
}

/* Once begun it goes on, also when the clock was put back; before that, a clock that says so makes
 * nothing of it. */
static void test_clock_put_back(void)
{
    for (int steps = 0; steps <= 5; steps++) {
        fresh();
        for (int i = 0; i < steps; i++)
            step(i);
        CU_ASSERT_EQUAL(rotation_settle(dir, SINCE, NULL), 0);
        if (steps >= 2) {
            CU_ASSERT(is_new());
            continue;
        }
        CU_ASSERT(holds("key.pem", "old key") && holds("cert.pem", "old cert"));
        CU_ASSERT(holds("next-key.pem", "new key") && holds("old-key.pem", NULL));
    }
}

static void test_not_committed(void)
{
    struct rotation r;
    int key, cert;
    fresh();
    step(5);
    CU_ASSERT_EQUAL(rotation_read(dir, &r, NULL), 0);
    CU_ASSERT_EQUAL(rotation_settle(dir, UNTIL, NULL), 0);
    CU_ASSERT(holds("key.pem", "old key") && holds("cert.pem", "old cert"));
    CU_ASSERT_EQUAL_FATAL(rotation_open_next(dir, &key, &cert, NULL), 0);
    CU_ASSERT(holds("next-key.pem", "") && holds("next-cert.pem", ""));
    close(key);
    close(cert);
}

static void test_damaged_plan(void)
{
    static const char *const bad[] = {"",
                                      "since 1\n",
                                      "since 1\nuntil 0\n",
                                      "since -1\nuntil 3\n",
                                      "since 1\nuntil 2\nmore\n",
                                      "since 1\nuntil 99999999999999999999\n"};
    struct rotation r;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        fresh();
        put("rotation", bad[i]);
        CU_ASSERT_EQUAL(rotation_read(dir, &r, NULL), -1);
        CU_ASSERT_EQUAL(rotation_settle(dir, UNTIL, NULL), -1);
        CU_ASSERT(holds("key.pem", "old key") && holds("cert.pem", "old cert"));
    }
    fresh();
    CU_ASSERT_EQUAL(rotation_read(dir, &r, NULL), 1);
    CU_ASSERT(r.since == SINCE && r.until == UNTIL);
}

static void test_links_are_left_alone(void)
{
    int key, cert;
    fresh();
    step(5);
    CU_ASSERT_EQUAL(renameat(dir, "key.pem", dir, "elsewhere.pem"), 0);
    CU_ASSERT_EQUAL(symlinkat("elsewhere.pem", dir, "key.pem"), 0);
    CU_ASSERT_EQUAL(rotation_open_next(dir, &key, &cert, NULL), -1);
    CU_ASSERT(holds("elsewhere.pem", "old key"));
    unlinkat(dir, "elsewhere.pem", 0);
}

static int begin(void)
{
    dir = mkdtemp(where) ? open(where, O_RDONLY | O_DIRECTORY) : -1;
    return dir < 0;
}

static int end(void)
{
    for (size_t i = 0; i < ARRAY_LEN(every); i++)
        unlinkat(dir, every[i], 0);
    close(dir);
    return rmdir(where);
}

void suite_rotation(void)
{
    CU_pSuite s = CU_add_suite("rotation", begin, end);
    CU_add_test(s, "every state that a crash leaves goes on to the new CA",
                test_every_state_goes_on);
    CU_add_test(s, "a clock that is put back", test_clock_put_back);
    CU_add_test(s, "what was not committed does not count", test_not_committed);
    CU_add_test(s, "a damaged plan is refused and changes nothing", test_damaged_plan);
    CU_add_test(s, "a key that is a link is not replaced", test_links_are_left_alone);
}

void tap_suites(void)
{
    suite_rotation();
}
