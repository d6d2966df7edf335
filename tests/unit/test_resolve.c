/* The resolver's turns: who has its part of what is being asked waits, and is asked when there is
 * room; the name server is the test's. */
#include "resolve.h"
#include "dns_server.h"
#include "tap_main.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct bed {
    struct event_base *base;
    struct dns_server *names; /* NULL: it is asked, and answers nothing */
    struct resolver *resolver;
    int udp;
};

struct answer {
    unsigned n;
    size_t addresses;
};

static void lookup(void *arg UNUSED, struct slice host UNUSED, uint16_t type, struct dns_query *q)
{
    static const unsigned char at[4] = {192, 0, 2, 1};
    if (type == DNS_TYPE_A)
        dns_query_answer_addr(q, at, NULL);
    else
        dns_query_nodata(q);
}

static void bed_open(struct bed *b)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    char servers[32];
    struct err err = {0};
    memset(b, 0, sizeof *b);
    b->base = event_base_new();
    b->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CU_ASSERT_FATAL(b->udp >= 0 && bind(b->udp, (struct sockaddr *)&at, n) == 0 &&
                    getsockname(b->udp, (struct sockaddr *)&at, &n) == 0);
    snprintf(servers, sizeof servers, "127.0.0.1:%u", ntohs(at.sin_port));
    struct resolver_options o = {.servers = servers};
    b->resolver = resolver_new(b->base, &o, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->resolver);
}

static void bed_close(struct bed *b)
{
    resolver_free(b->resolver);
    if (b->names)
        dns_server_free(b->names);
    else
        close(b->udp);
    event_base_free(b->base);
}

static void turn(struct bed *b)
{
    event_base_loop(b->base, EVLOOP_NONBLOCK);
}

/* The name server answers from now on, what was asked before as well (or when it is asked again).
 */
static void let_go(struct bed *b)
{
    static const struct dns_server_ops ops = {lookup, NULL};
    struct err err = {0};
    b->names = dns_server_new(b->base, &ops, b);
    CU_ASSERT_FATAL(b->names && dns_server_add_udp(b->names, b->udp, &err) == 0);
}

static void heard(void *arg, const struct address *list UNUSED, size_t n, const char *why UNUSED)
{
    struct answer *a = arg;
    a->n++;
    a->addresses += n;
}

static struct resolve_query *get(struct bed *b, const char *payer, struct answer *a)
{
    struct resolve_query *q =
        resolver_get(b->resolver, slice_str(payer), "name.example", 443, heard, a);
    turn(b);
    return q;
}

static void run_until(struct bed *b, const struct answer *a, unsigned n)
{
    for (int i = 0; i < 6000 && a->n < n; i++) {
        turn(b);
        poll(NULL, 0, 1);
    }
    CU_ASSERT_EQUAL(a->n, n);
}

static void test_waits(void)
{
    struct bed bed, *b = &bed;
    struct answer asked = {0}, waits = {0}, other = {0}, gone = {0};
    bed_open(b);
    for (int i = 0; i < RESOLVE_QUERIES_EACH; i++) {
        struct resolve_query *q = get(b, "1|box", &asked);
        CU_ASSERT_FATAL(q && !resolve_waits(q));
    }
    struct resolve_query *q = get(b, "1|box", &waits), *left = get(b, "1|box", &gone);
    CU_ASSERT_FATAL(q && left);
    CU_ASSERT(resolve_waits(q) && resolve_waits(left));
    struct resolve_query *o = get(b, "2|box", &other);
    CU_ASSERT(o && !resolve_waits(o)); /* another's part is its own */
    resolve_cancel(left);
    CU_ASSERT_EQUAL(waits.n, 0);
    let_go(b);
    run_until(b, &asked, RESOLVE_QUERIES_EACH);
    run_until(b, &waits, 1);
    CU_ASSERT_EQUAL(waits.addresses, 1);
    CU_ASSERT_EQUAL(gone.n, 0);
    bed_close(b);
}

/* One channel has half of all at most, however many owners it names, and leaves with some waiting.
 */
static void test_channel(void)
{
    struct bed bed, *b = &bed;
    struct answer a = {0}, other = {0};
    char payer[32];
    unsigned waiting = 0;
    bed_open(b);
    for (int i = 0; i < RESOLVE_QUERIES_MAX; i++) {
        snprintf(payer, sizeof payer, "1|%d", i);
        struct resolve_query *q = get(b, payer, &a);
        CU_ASSERT_PTR_NOT_NULL_FATAL(q);
        waiting += resolve_waits(q);
    }
    CU_ASSERT_EQUAL(waiting, RESOLVE_QUERIES_MAX / 2);
    struct resolve_query *o = get(b, "2|box", &other);
    CU_ASSERT(o && !resolve_waits(o));
    bed_close(b);
    CU_ASSERT_EQUAL(a.n, 0);
}

static void test_bound(void)
{
    struct bed bed, *b = &bed;
    struct answer a = {0};
    bed_open(b);
    for (int i = 0; i < RESOLVE_QUERIES_EACH + RESOLVE_WAITING_EACH; i++)
        CU_ASSERT_PTR_NOT_NULL_FATAL(get(b, "1|box", &a));
    CU_ASSERT_PTR_NULL(get(b, "1|box", &a));
    CU_ASSERT_PTR_NOT_NULL(get(b, "2|box", &a));
    bed_close(b);
}

/* One channel fills what it may of those that wait, by as many names as it likes; another's wait.
 */
static void test_bound_channel(void)
{
    struct bed bed, *b = &bed;
    struct answer a = {0};
    char payer[32];
    bed_open(b);
    for (int channel = 1; channel <= 2; channel++) {
        unsigned waiting = 0;
        for (int i = 0; i <= RESOLVE_WAITING_MAX; i++) {
            snprintf(payer, sizeof payer, "%d|%d", channel, i / 64);
            struct resolve_query *q = get(b, payer, &a);
            if (q == NULL)
                break;
            waiting += resolve_waits(q);
        }
        CU_ASSERT_EQUAL(waiting, RESOLVE_WAITING_EACH);
    }
    for (int i = 0; i < RESOLVE_QUERIES_MAX; i++)
        CU_ASSERT_PTR_NOT_NULL_FATAL(get(b, "3|box", &a));
    bed_close(b);
    CU_ASSERT_EQUAL(a.n, 0);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("resolve", NULL, NULL);
    CU_add_test(s, "beyond its part a payer waits", test_waits);
    CU_add_test(s, "a channel that names many owners", test_channel);
    CU_add_test(s, "those that wait are bounded", test_bound);
    CU_add_test(s, "those of a channel that names many owners", test_bound_channel);
}
