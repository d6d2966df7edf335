/* The address guard: attacks D5-D9, every spelling that reaches a forbidden place, and addresses
 * beside each range that must stay reachable. */
#include "address.h"
#include "tap_main.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

void suite_address(void);

static struct address make(const char *ip)
{
    struct address a;
    unsigned char raw[16];
    int family = strchr(ip, ':') ? AF_INET6 : AF_INET;
    CU_ASSERT_FATAL(inet_pton(family, ip, raw) == 1);
    address_set(&a, family, raw, 443);
    return a;
}

struct row {
    const char *ip;
    const char *why; /* NULL: may be dialled */
};

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct address a = make(rows[i].ip);
        const char *why = address_blocked(&a.sa);
        bool right = rows[i].why ? why && strcmp(why, rows[i].why) == 0 : why == NULL;
        if (!right)
            printf("# %s: %s, expected %s\n", rows[i].ip, why ? why : "allowed",
                   rows[i].why ? rows[i].why : "allowed");
        CU_ASSERT(right);
    }
}

static void test_v4(void)
{
    static const struct row rows[] = {
        {"0.0.0.0", "this-network"},
        {"0.255.255.255", "this-network"},
        {"1.0.0.0", NULL},
        {"9.255.255.255", NULL},
        {"10.0.0.0", "private"},
        {"10.255.255.255", "private"},
        {"11.0.0.0", NULL},
        {"100.63.255.255", NULL},
        {"100.64.0.0", "shared"},
        {"100.100.100.200", "shared"},
        {"100.127.255.255", "shared"},
        {"100.128.0.0", NULL},
        {"126.255.255.255", NULL},
        {"127.0.0.1", "loopback"},
        {"127.255.255.255", "loopback"},
        {"128.0.0.0", NULL},
        {"168.63.129.15", NULL},
        {"168.63.129.16", "metadata"},
        {"168.63.129.17", NULL},
        {"169.253.255.255", NULL},
        {"169.254.0.0", "link-local"},
        {"169.254.169.254", "link-local"},
        {"169.254.170.2", "link-local"},
        {"169.255.0.0", NULL},
        {"172.15.255.255", NULL},
        {"172.16.0.0", "private"},
        {"172.31.255.255", "private"},
        {"172.32.0.0", NULL},
        {"192.0.0.8", "protocol"},
        {"192.0.1.0", NULL},
        {"192.0.2.1", "documentation"},
        {"192.0.3.0", NULL},
        {"192.88.99.1", "6to4-relay"},
        {"192.167.255.255", NULL},
        {"192.168.0.0", "private"},
        {"192.168.255.255", "private"},
        {"192.169.0.0", NULL},
        {"198.17.255.255", NULL},
        {"198.18.0.1", "benchmark"},
        {"198.19.255.255", "benchmark"},
        {"198.20.0.0", NULL},
        {"198.51.100.9", "documentation"},
        {"203.0.113.255", "documentation"},
        {"203.0.114.0", NULL},
        {"223.255.255.255", NULL},
        {"224.0.0.1", "multicast"},
        {"239.255.255.255", "multicast"},
        {"240.0.0.0", "reserved"},
        {"255.255.255.255", "reserved"},
        {"8.8.8.8", NULL},
        {"93.184.216.34", NULL},
    };
    check_rows(rows, ARRAY_LEN(rows));
}

static void test_v6(void)
{
    static const struct row rows[] = {
        {"::", "unspecified"},
        {"::1", "loopback"},
        {"::2", "this-network"}, /* v4-compatible 0.0.0.2 */
        {"100::1", "discard"},
        {"100:0:0:1::1", NULL},
        {"2001:2::1", "benchmark"},
        {"2001:10::1", "orchid"},
        {"2001:2f:ffff::1", "orchid"},
        {"2001:30::1", NULL},
        {"2001:db8::1", "documentation"},
        {"2001:db9::1", NULL},
        {"3fff:fff::1", "documentation"},
        {"5f00::1", "segment-routing"},
        {"fbff::1", NULL},
        {"fc00::1", "private"},
        {"fd00:ec2::254", "private"}, /* metadata */
        {"fd64:7572:7761:7264::1", "private"},
        {"fe80::1", "link-local"},
        {"febf::1", "link-local"},
        {"fec0::1", "site-local"},
        {"ff02::1", "multicast"},
        {"2606:4700:4700::1111", NULL},
        {"2a00:1450:4001:81b::200e", NULL},
    };
    check_rows(rows, ARRAY_LEN(rows));
}

/* D7: an IPv4 address inside an IPv6 one is judged as what it is. */
static void test_unwrapped(void)
{
    static const struct row rows[] = {
        {"::ffff:169.254.169.254", "link-local"},
        {"::ffff:127.0.0.1", "loopback"},
        {"::ffff:10.1.2.3", "private"},
        {"::ffff:8.8.8.8", NULL},
        {"::ffff:0:169.254.169.254", "link-local"},
        {"::ffff:0:8.8.8.8", NULL},
        {"::169.254.169.254", "link-local"},
        {"::8.8.8.8", NULL},
        {"64:ff9b::a9fe:a9fe", "link-local"},
        {"64:ff9b::7f00:1", "loopback"},
        {"64:ff9b::808:808", NULL},
        {"64:ff9b:1::a9fe:a9fe", "nat64-local"},
        {"64:ff9b:1:ffff::808:808", "nat64-local"},
        {"64:ff9b:2::808:808", NULL},
        {"2002:a9fe:a9fe::1", "link-local"},
        {"2002:7f00:1::", "loopback"},
        {"2002:c0a8:101::1", "private"},
        {"2002:808:808::1", NULL},
        /* Teredo: server, client inverted */
        {"2001:0:7f00:1:0:0:f7f7:f7f7", "loopback"},
        {"2001:0:808:808:0:0:5601:5601", "link-local"},
        {"2001:0:808:808:0:0:f7f7:f7f7", NULL},
        /* ISATAP under a public prefix */
        {"2606:4700::5efe:a9fe:a9fe", "link-local"},
        {"2606:4700::200:5efe:a00:1", "private"},
        {"2606:4700::5efe:808:808", NULL},
    };
    check_rows(rows, ARRAY_LEN(rows));
}

static void test_other_family(void)
{
    struct sockaddr_storage s = {.ss_family = AF_UNIX};
    CU_ASSERT_PTR_NOT_NULL(address_blocked((struct sockaddr *)&s));
}

static bool guard_says(const struct address_guard *g, const char *ip, const char *why)
{
    struct address a = make(ip);
    const char *said = address_guard_check(g, &a.sa);
    return why ? said && strcmp(said, why) == 0 : said == NULL;
}

static void test_listed(void)
{
    struct err err;
    struct address_guard *g = address_guard_new();
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    CU_ASSERT(guard_says(g, "93.184.216.34", NULL));
    CU_ASSERT(address_guard_add(g, SLICE("93.184.216.0/25"), &err) == 0);
    CU_ASSERT(guard_says(g, "93.184.216.127", "listed"));
    CU_ASSERT(guard_says(g, "93.184.216.128", NULL));
    CU_ASSERT(guard_says(g, "::ffff:93.184.216.34", "listed"));
    CU_ASSERT(guard_says(g, "64:ff9b::5db8:d822", "listed"));
    CU_ASSERT(address_guard_add(g, SLICE("2606:4700::/32"), &err) == 0);
    CU_ASSERT(guard_says(g, "2606:4700:1::1", "listed"));
    CU_ASSERT(guard_says(g, "2606:4701::1", NULL));
    CU_ASSERT(address_guard_add(g, SLICE("1.1.1.1"), &err) == 0);
    CU_ASSERT(guard_says(g, "1.1.1.1", "listed"));
    CU_ASSERT(guard_says(g, "1.1.1.2", NULL));
    CU_ASSERT(address_guard_add(g, SLICE("8.0.0.0/0"), &err) == 0);
    CU_ASSERT(guard_says(g, "9.9.9.9", "listed"));
    address_guard_free(g);
}

/* Ports that the daemon listens on, on this host and nowhere else. */
static void test_ours(void)
{
    static const struct {
        const char *ip;
        bool here;
    } row[] = {{"127.0.0.1", true}, {"127.9.9.9", true},        {"0.0.0.0", true},
               {"::1", true},       {"::ffff:127.0.0.1", true}, {"10.1.2.3", false},
               {"8.8.8.8", false},  {"2606:4700::1", false}};
    struct err err;
    struct address_guard *g = address_guard_new();
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    CU_ASSERT(address_guard_port(g, 7443, &err) == 0);
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct address a = make(row[i].ip);
        CU_ASSERT_EQUAL(address_guard_ours(g, &a.sa, 7443), row[i].here);
        CU_ASSERT_FALSE(address_guard_ours(g, &a.sa, 7444));
    }
    /* those that are published for sandboxes come and go together; ours stays */
    static const uint16_t published[] = {8080, 1, 65535};
    struct address local = make("127.0.0.1"), far = make("8.8.8.8");
    address_guard_published(g, published, ARRAY_LEN(published));
    for (size_t i = 0; i < ARRAY_LEN(published); i++) {
        CU_ASSERT_TRUE(address_guard_ours(g, &local.sa, published[i]));
        CU_ASSERT_FALSE(address_guard_ours(g, &far.sa, published[i]));
    }
    CU_ASSERT_FALSE(address_guard_ours(g, &local.sa, 8081));
    address_guard_published(g, published + 1, 1);
    CU_ASSERT_FALSE(address_guard_ours(g, &local.sa, 8080));
    CU_ASSERT_TRUE(address_guard_ours(g, &local.sa, 1));
    address_guard_published(g, NULL, 0);
    CU_ASSERT_FALSE(address_guard_ours(g, &local.sa, 1));
    CU_ASSERT_TRUE(address_guard_ours(g, &local.sa, 7443));
    for (size_t i = 1; i < ADDRESS_PORTS_MAX; i++)
        CU_ASSERT(address_guard_port(g, 1, &err) == 0);
    CU_ASSERT(address_guard_port(g, 1, &err) < 0);
    address_guard_free(g);
}

static void test_listed_bad(void)
{
    static const char *const bad[] = {"",         "x",          "1.2.3",      "1.2.3.4/33",
                                      "1.2.3.4/", "1.2.3.4/-1", "::1/129",    "1.2.3.4/8/8",
                                      "1.2.3.4 ", "01.2.3.4",   "fe80::1%lo", "/8"};
    struct address_guard *g = address_guard_new();
    struct err err;
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT(address_guard_add(g, slice_str(bad[i]), &err) == -1);
    CU_ASSERT(address_guard_add(g, SLICE("8.8.8.8\0/8"), &err) == -1);
    CU_ASSERT(guard_says(g, "8.8.8.8", NULL));
    address_guard_free(g);
}

/* D8: this host's own addresses. What getifaddrs gives is mostly in the fixed table already, so the
 * reading itself is what is proved: it succeeds, and twice. */
static void test_own(void)
{
    struct address_guard *g = address_guard_new();
    struct err err = {0};
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    CU_ASSERT(address_guard_refresh(g, &err) == 0);
    CU_ASSERT(address_guard_refresh(g, &err) == 0);
    struct rlimit was, none;
    CU_ASSERT_FATAL(getrlimit(RLIMIT_NOFILE, &was) == 0);
    none = (struct rlimit){0, was.rlim_max};
    CU_ASSERT_FATAL(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CU_ASSERT(address_guard_refresh(g, &err) <
              0); /* nothing could be asked; it goes on as it was */
    CU_ASSERT_FATAL(setrlimit(RLIMIT_NOFILE, &was) == 0);
    CU_ASSERT(guard_says(g, "127.0.0.1", "loopback"));
    CU_ASSERT(guard_says(g, "8.8.8.8", NULL));
    address_guard_free(g);
}

static void test_text(void)
{
    static const struct {
        const char *text, *again; /* again NULL: refused */
    } rows[] = {
        {"192.0.2.1:443", "192.0.2.1:443"},
        {"[2001:DB8::1]:80", "[2001:db8::1]:80"},
        {"127.0.0.1:1", "127.0.0.1:1"},
        {"127.0.0.1:65535", "127.0.0.1:65535"},
        {"127.0.0.1", NULL},
        {"127.0.0.1:", NULL},
        {"127.0.0.1:0", NULL},
        {"127.0.0.1:65536", NULL},
        {"::1:80", NULL},
        {"[127.0.0.1]:80", NULL},
        {"[::1]", NULL},
        {"[::1:80", NULL},
        {"host:80", NULL},
        {":80", NULL},
        {"", NULL},
    };
    char buf[ADDRESS_TEXT_MAX];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct address a;
        int r = address_parse(&a, slice_str(rows[i].text));
        CU_ASSERT(r == (rows[i].again ? 0 : -1));
        if (r == 0 && rows[i].again)
            CU_ASSERT_STRING_EQUAL(address_text(&a.sa, buf, sizeof buf), rows[i].again);
    }
}

static void test_same_host(void)
{
    struct address a = make("8.8.8.8"), b = make("::ffff:8.8.8.8"), c = make("8.8.4.4"),
                   d = make("2606::1");
    CU_ASSERT(address_same_host(&a.sa, &b.sa));
    CU_ASSERT(!address_same_host(&a.sa, &c.sa));
    CU_ASSERT(!address_same_host(&b.sa, &d.sa));
    CU_ASSERT_EQUAL(address_port(&d.sa), 443);
}

void suite_address(void)
{
    CU_pSuite s = CU_add_suite("address", NULL, NULL);
    CU_add_test(s, "IPv4 ranges and what lies beside them", test_v4);
    CU_add_test(s, "IPv6 ranges and what lies beside them", test_v6);
    CU_add_test(s, "an IPv4 address inside an IPv6 one", test_unwrapped);
    CU_add_test(s, "another family", test_other_family);
    CU_add_test(s, "listed ranges", test_listed);
    CU_add_test(s, "listed ranges that are none", test_listed_bad);
    CU_add_test(s, "our own listeners", test_ours);
    CU_add_test(s, "own addresses", test_own);
    CU_add_test(s, "text and back", test_text);
    CU_add_test(s, "same host", test_same_host);
}

void tap_suites(void)
{
    suite_address();
}
