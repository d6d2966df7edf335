/* How fast an owner may dial, and what a sandbox at fault uses up: both over all its connections,
 * by a clock that the test turns. */
#include "faults.h"
#include "pace.h"
#include "tap_main.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum { SECOND_US = 1000000, SECOND_MS = 1000 };

static void test_burst(void)
{
    struct pace p = {.n = 0};
    uint64_t now = SECOND_US;
    for (int i = 0; i < PACE_BURST; i++)
        CU_ASSERT_EQUAL(pace_begin(&p, SLICE("a"), now), 0);
    CU_ASSERT_EQUAL(pace_begin(&p, SLICE("a"), now), 1000 / PACE_SECOND);
    CU_ASSERT_EQUAL(pace_begin(&p, SLICE("a"), now), 1000 / PACE_SECOND); /* asking takes nothing */
    CU_ASSERT_EQUAL(pace_begin(&p, SLICE("b"), now), 0);                  /* another's is its own */
    pace_free(&p);
}

/* Whoever asks again when it was told to is let go, one at a time. */
static void test_again(void)
{
    struct pace p = {.n = 0};
    uint64_t now = SECOND_US;
    while (pace_begin(&p, SLICE("a"), now) == 0) {
    }
    for (int i = 0; i < 100; i++) {
        long ms = pace_begin(&p, SLICE("a"), now);
        CU_ASSERT_FATAL(ms > 0);
        CU_ASSERT(pace_begin(&p, SLICE("a"), now + (uint64_t)ms * 1000 - 1000) > 0);
        now += (uint64_t)ms * 1000;
        CU_ASSERT_EQUAL(pace_begin(&p, SLICE("a"), now), 0);
    }
    CU_ASSERT_EQUAL(now, SECOND_US + 100u * SECOND_US / PACE_SECOND);
    pace_free(&p);
}

static void test_rate(void)
{
    struct pace p = {.n = 0};
    int begun = 0;
    for (uint64_t now = 0; now < 60u * SECOND_US; now += 1000)
        begun += pace_begin(&p, SLICE("a"), now + SECOND_US) == 0;
    CU_ASSERT(begun >= PACE_BURST && begun <= PACE_BURST + 60 * PACE_SECOND + 1);
    pace_free(&p);
}

static void test_owners(void)
{
    struct pace p = {.n = 0};
    char name[16];
    for (int i = 0; i < PACE_OWNERS; i++) {
        snprintf(name, sizeof name, "%d", i);
        CU_ASSERT_EQUAL(pace_begin(&p, slice_str(name), SECOND_US), 0);
    }
    CU_ASSERT(pace_begin(&p, SLICE("more"), SECOND_US) > 0);
    CU_ASSERT_EQUAL(pace_begin(&p, SLICE("more"), 2 * SECOND_US), 0);
    CU_ASSERT_EQUAL(p.n, 1); /* whoever was paid for is forgotten */
    pace_free(&p);
}

static void test_faults(void)
{
    struct faults_book b = {.n = 0};
    struct faults *f = faults_join(&b, "a", 0), *g = faults_join(&b, "b", 0);
    int n = 0;
    while (!faults_take(f, FAULTS_FAULT, 0) && n < 10000)
        n++;
    CU_ASSERT_EQUAL(n, FAULTS_MAX / FAULTS_FAULT);
    CU_ASSERT(faults_slow(f, 0) && !faults_slow(g, 0));
    uint64_t calm = (FAULTS_MAX + FAULTS_FAULT - FAULTS_SLOW) * SECOND_MS / FAULTS_SECOND;
    CU_ASSERT(faults_slow(f, calm - 20) && !faults_slow(f, calm));
    CU_ASSERT(!faults_fresh(f, calm) && faults_fresh(f, calm + 60 * SECOND_MS));
    faults_leave(f);
    faults_leave(g);
    faults_book_free(&b);
}

/* A new connection finds what the one before it left. */
static void test_remembered(void)
{
    struct faults_book b = {.n = 0};
    struct faults *f = faults_join(&b, "a", 0);
    for (int i = 0; i < 150; i++)
        faults_take(f, FAULTS_FAULT, 0);
    faults_leave(f);
    faults_leave(faults_join(&b, "b", 10));
    f = faults_join(&b, "a", 10);
    CU_ASSERT(faults_slow(f, 10));
    faults_leave(f);
    faults_leave(faults_join(&b, "c", 60 * SECOND_MS));
    CU_ASSERT_EQUAL(b.n, 1); /* the others are forgiven, and forgotten */
    faults_book_free(&b);
}

/* Slowly: nothing is lost by looking often, nothing is won. */
static void test_slowly(void)
{
    struct faults_book b = {.n = 0};
    struct faults *f = faults_join(&b, "a", 0);
    for (uint64_t now = 0; now < 100 * SECOND_MS; now++) {
        if (now % 60 == 0)
            CU_ASSERT(!faults_take(f, FAULTS_FAULT, now));
        (void)faults_slow(f, now);
    }
    CU_ASSERT(!faults_slow(f, 100 * SECOND_MS));
    for (uint64_t now = 100 * SECOND_MS; now < 200 * SECOND_MS; now += 25)
        faults_take(f, FAULTS_FAULT, now);
    CU_ASSERT(faults_slow(f, 200 * SECOND_MS));
    faults_leave(f);
    faults_book_free(&b);
}

static bool same_key(int family, const char *a, const char *b)
{
    char key[2][FAULTS_KEY];
    const char *const text[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(1000 + i))};
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
                                   .sin6_port = htons((uint16_t)(1000 + i))};
        bool four = family == AF_INET;
        CU_ASSERT_EQUAL(
            inet_pton(family, text[i], four ? (void *)&in.sin_addr : (void *)&in6.sin6_addr), 1);
        faults_key_of(key[i], four ? (struct sockaddr *)&in : (struct sockaddr *)&in6);
        CU_ASSERT(key[i][0] != 0 && key[i][0] != '*');
    }
    return strcmp(key[0], key[1]) == 0;
}

static void test_addresses(void)
{
    struct sockaddr none = {.sa_family = AF_UNIX};
    char key[FAULTS_KEY] = "x";
    CU_ASSERT(same_key(AF_INET, "192.0.2.1", "192.0.2.1"));
    CU_ASSERT(!same_key(AF_INET, "192.0.2.1", "192.0.2.2"));
    CU_ASSERT(same_key(AF_INET6, "2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"));
    CU_ASSERT(!same_key(AF_INET6, "2001:db8:1:2::1", "2001:db8:1:3::1"));
    CU_ASSERT(!same_key(AF_INET6, "::ffff:192.0.2.1", "::ffff:192.0.2.2")); /* they are IPv4 */
    faults_key_of(key, &none);
    CU_ASSERT_STRING_EQUAL(key, "");
}

/* Newcomers to a full book pay together, and nobody who is in it pays for them. */
static void test_full(void)
{
    struct faults_book b = {.n = 0};
    static struct faults *in[FAULTS_OWNERS];
    char key[FAULTS_KEY];
    for (size_t i = 0; i < FAULTS_OWNERS; i++) {
        snprintf(key, sizeof key, "k%zu", i);
        in[i] = faults_join(&b, key, 0);
    }
    struct faults *f = faults_join(&b, "late", 0), *g = faults_join(&b, "later", 0);
    CU_ASSERT(f == g && b.n == FAULTS_OWNERS + 1);
    for (size_t i = 0; i < FAULTS_OWNERS; i++)
        CU_ASSERT_FATAL(in[i] != f);
    CU_ASSERT(faults_join(&b, "k7", 0) == in[7] && !faults_are_of(f, "k7"));
    faults_book_free(&b);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("pace", NULL, NULL);
    CU_add_test(s, "a burst, then at its pace; each its own", test_burst);
    CU_add_test(s, "too fast, and asked again in time", test_again);
    CU_add_test(s, "a minute of it", test_rate);
    CU_add_test(s, "owners are bounded, and forgotten", test_owners);
    CU_add_test(s, "faults: the two bounds, and what time gives back", test_faults);
    CU_add_test(s, "faults outlive their connection", test_remembered);
    CU_add_test(s, "faults at a bearable pace", test_slowly);
    CU_add_test(s, "faults by address: IPv6 by its /64", test_addresses);
    CU_add_test(s, "faults: a full book charges nobody who is in it", test_full);
}
