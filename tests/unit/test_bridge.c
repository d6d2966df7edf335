/* Bytes between a stream and a descriptor: both directions, ends, bounds. */
#include "bridge.h"
#include "tap_main.h"

#include <event2/event.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

void tap_suites(void);

static struct event_base *base;
static struct bridges *all;

static int setup(void)
{
    base = event_base_new();
    all = base ? bridges_new(base) : NULL;
    return all ? 0 : -1;
}

static int teardown(void)
{
    bridges_free(all);
    event_base_free(base);
    return 0;
}

static void turn(unsigned n)
{
    while (n-- > 0)
        event_base_loop(base, EVLOOP_NONBLOCK);
}

/* far: our end of the stream; the result: the descriptor that is handed over. */
static int join_as(const char *payer, int *far)
{
    int fds[2], small = 4608;
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
                          0);
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small); /* the rest waits with us */
    struct io *io = io_new(base, fds[0], BRIDGE_BUFFER, BRIDGE_BUFFER, true);
    CU_ASSERT_PTR_NOT_NULL_FATAL(io);
    *far = fds[1];
    return bridges_join(all, io, slice_str(payer));
}

static int join(int *far)
{
    return join_as("7|box", far);
}

static void test_both_ways(void)
{
    char text[16];
    int far, near = join(&far);
    CU_ASSERT_FATAL(near >= 0);
    CU_ASSERT_EQUAL(bridges_count(all), 1);
    CU_ASSERT_EQUAL(send(near, "there", 5, 0), 5);
    CU_ASSERT_EQUAL(send(far, "back", 4, 0), 4);
    turn(10);
    CU_ASSERT(recv(far, text, sizeof text, 0) == 5 && memcmp(text, "there", 5) == 0);
    CU_ASSERT(recv(near, text, sizeof text, 0) == 4 && memcmp(text, "back", 4) == 0);
    /* one side ends, the other still answers */
    CU_ASSERT_EQUAL(shutdown(near, SHUT_WR), 0);
    turn(10);
    CU_ASSERT_EQUAL(recv(far, text, sizeof text, 0), 0);
    CU_ASSERT_EQUAL(send(far, "late", 4, 0), 4);
    turn(10);
    CU_ASSERT_EQUAL(recv(near, text, sizeof text, 0), 4);
    CU_ASSERT_EQUAL(bridges_count(all), 1);
    close(far);
    turn(10);
    CU_ASSERT_EQUAL(recv(near, text, sizeof text, 0), 0);
    CU_ASSERT_EQUAL(bridges_count(all), 0);
    close(near);
    turn(10);
    CU_ASSERT_EQUAL(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED), 0);
}

/* A reader that takes nothing: what waits is bounded, and none of it is lost. */
static void test_slow_reader(void)
{
    static char block[4096], got[65536];
    size_t sent = 0, taken = 0, quiet = 0;
    int far, near = join(&far);
    for (; quiet < 20; turn(1)) {
        memset(block, (int)(sent / sizeof block), sizeof block);
        ssize_t n = send(near, block, sizeof block, 0);
        quiet = n == (ssize_t)sizeof block ? 0 : quiet + 1;
        if (n > 0)
            sent += (size_t)n;
    }
    CU_ASSERT(sent > BRIDGE_BUFFER && sent < 16 * BRIDGE_BUFFER);
    shutdown(near, SHUT_WR);
    for (quiet = 0; quiet < 50; turn(2)) {
        ssize_t n = recv(far, got, sizeof got, 0);
        quiet = n > 0 ? 0 : quiet + 1;
        if (n > 0)
            taken += (size_t)n;
    }
    CU_ASSERT_EQUAL(taken, sent);
    close(far);
    close(near);
    turn(20);
    CU_ASSERT_EQUAL(bridges_count(all), 0);
}

/* What has ended at both sides still holds what its reader has not taken, and counts: else one who
 * makes many of them has more than its share. */
static void test_ending(void)
{
    static char block[BRIDGE_BUFFER / 2];
    int far, near = join(&far);
    CU_ASSERT_EQUAL(send(near, block, sizeof block, 0), (ssize_t)sizeof block);
    turn(20);
    shutdown(near, SHUT_WR);
    shutdown(far, SHUT_WR);
    turn(20);
    CU_ASSERT(recv(near, block, sizeof block, 0) == 0);
    CU_ASSERT_EQUAL(bridges_count(all), 1);
    close(far);
    turn(20);
    CU_ASSERT_EQUAL(bridges_count(all), 0);
    close(near);
    near = join(&far);
    CU_ASSERT_EQUAL(send(near, block, sizeof block, 0), (ssize_t)sizeof block);
    shutdown(near, SHUT_WR);
    shutdown(far, SHUT_WR);
    turn(20);
    bridges_free(all); /* one that still ends goes without them */
    close(far);
    close(near);
    turn(20);
    all = bridges_new(base);
    CU_ASSERT_PTR_NOT_NULL_FATAL(all);
}

/* Whoever leaves with bytes unread takes the other side along; freeing takes all. */
static void test_ends(void)
{
    char c;
    int far, near = join(&far);
    CU_ASSERT_EQUAL(send(far, "unread", 6, 0), 6);
    turn(10);
    close(near);
    turn(10);
    turn(10);
    CU_ASSERT_EQUAL(bridges_count(all), 0);
    CU_ASSERT(recv(far, &c, 1, 0) <= 0);
    close(far);
    near = join(&far);
    bridges_free(all);
    CU_ASSERT_EQUAL(recv(near, &c, 1, 0), 0);
    CU_ASSERT_EQUAL(recv(far, &c, 1, 0), 0);
    close(near);
    close(far);
    all = bridges_new(base);
    CU_ASSERT_PTR_NOT_NULL_FATAL(all);
}

/* Joins as this payer until it may no more; how often it might. */
static unsigned take(const char *payer, int *far, int *near)
{
    unsigned n = 0;
    while ((near[n] = join_as(payer, &far[n])) >= 0)
        n++;
    close(far[n]);
    return n;
}

static void leave(int *far, int *near, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        close(far[i]);
        close(near[i]);
    }
}

/* A sandbox does not take the room of others that have the same injector, nor an injector that
 * makes up sandboxes that of other wires. What they leave is free again. */
static void test_owners(void)
{
    static int far[BRIDGES_MAX], near[BRIDGES_MAX];
    unsigned n = take("7|box", far, near);
    CU_ASSERT_EQUAL(n, BRIDGES_PAYER_MAX);
    n += take("7|other", far + n, near + n);
    CU_ASSERT_EQUAL(n, 2 * BRIDGES_PAYER_MAX);
    for (char payer[] = "7|a"; n < BRIDGES_MAX - 64 && payer[2] <= 'z'; payer[2]++)
        n += take(payer, far + n, near + n);
    CU_ASSERT_EQUAL(n, BRIDGES_WIRE_MAX);
    CU_ASSERT_EQUAL(bridges_count(all), BRIDGES_WIRE_MAX);
    near[n] = join_as("8|box", &far[n]);
    CU_ASSERT(near[n] >= 0);
    leave(far, near, n + 1);
    turn(50);
    CU_ASSERT_EQUAL(bridges_count(all), 0);
    CU_ASSERT_EQUAL(take("7|box", far, near), BRIDGES_PAYER_MAX);
    leave(far, near, BRIDGES_PAYER_MAX);
    turn(50);
}

void tap_suites(void)
{
    struct rlimit many = {10000, 10000}; /* four descriptors a bridge */
    setrlimit(RLIMIT_NOFILE, &many);
    CU_pSuite s = CU_add_suite("bridge", setup, teardown);
    CU_add_test(s, "both ways, half closed, closed", test_both_ways);
    CU_add_test(s, "a slow reader bounds what waits", test_slow_reader);
    CU_add_test(s, "both ended, and one does not read", test_ending);
    CU_add_test(s, "one owner's share", test_owners);
    CU_add_test(s, "an end on either side, and of all", test_ends);
}
