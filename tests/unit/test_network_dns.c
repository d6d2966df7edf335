/* Questions that are taken for a name's, and what is answered. */
#include "network_dns.h"

#include <string.h>

#include "tap_main.h"

#define HEAD "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
#define WEB  HEAD "\x03WeB\x03pod\x00"
#define A_IN "\x00\x01\x00\x01"

static struct network_question q;

static bool ask(const char *p, size_t n)
{
    memset(&q, 0, sizeof q);
    return network_dns_question((const unsigned char *)p, n, &q);
}

#define ASK(text) ask(text, sizeof(text) - 1)

static void test_question(void)
{
    CU_ASSERT_TRUE(ASK(WEB A_IN));
    CU_ASSERT_STRING_EQUAL(q.name, "web.pod");
    CU_ASSERT_TRUE(q.type == 1 && q.end == 12 + 9 + 4);
    /* what stands behind it, as EDNS, is the resolver's affair */
    CU_ASSERT_TRUE(ASK(WEB "\x00\x1c\x00\x01\x00\x00\x29\x10\x00"));
    CU_ASSERT_EQUAL(q.type, 28);
}

static void test_none(void)
{
    CU_ASSERT_FALSE(ASK(""));
    CU_ASSERT_FALSE(ASK(HEAD));
    CU_ASSERT_FALSE(ASK(HEAD "\x00" A_IN)); /* the root */
    CU_ASSERT_FALSE(ASK(HEAD "\x03we"));
    CU_ASSERT_FALSE(ASK(HEAD "\x03web"));
    CU_ASSERT_FALSE(ASK(HEAD "\x03web\x00\x00\x01"));
    CU_ASSERT_FALSE(ASK(HEAD "\x03web\x00\x00\x01\x00\x03")); /* another class */
    CU_ASSERT_FALSE(ASK(HEAD "\xc0\x0c" A_IN));               /* a pointer to itself */
    CU_ASSERT_FALSE(ASK(HEAD "\x03w.b\x00" A_IN));
    CU_ASSERT_FALSE(ASK(HEAD "\x03w\x00"
                             "b\x00" A_IN));
    /* an answer, another kind of question, two questions */
    CU_ASSERT_FALSE(ASK("\x12\x34\x81\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03web\x00" A_IN));
    CU_ASSERT_FALSE(ASK("\x12\x34\x28\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03web\x00" A_IN));
    CU_ASSERT_FALSE(ASK("\x12\x34\x01\x00\x00\x02\x00\x00\x00\x00\x00\x00\x03web\x00" A_IN));
}

static void test_long(void)
{
    char p[600] = HEAD;
    size_t n = NETWORK_DNS_HEAD;
    for (int labels = 1; labels <= 5; labels++) {
        p[n] = 63;
        memset(p + n + 1, 'a', 63);
        n += 64;
        memcpy(p + n, "\0" A_IN, 5);
        CU_ASSERT_EQUAL(ask(p, n + 5), labels * 64 - 1 <= NETWORK_DNS_NAME);
    }
}

/* What begins with more than 63 is no label: a pointer, or what nobody has said yet. */
static void test_labels(void)
{
    char p[300] = HEAD;
    memset(p + NETWORK_DNS_HEAD, 'a', sizeof p - NETWORK_DNS_HEAD);
    for (unsigned n = 62; n < 200; n++) {
        p[NETWORK_DNS_HEAD] = (char)n;
        memcpy(p + NETWORK_DNS_HEAD + 1 + n, "\0" A_IN, 5);
        CU_ASSERT_EQUAL(ask(p, NETWORK_DNS_HEAD + 1 + n + 5), n <= 63);
        memset(p + NETWORK_DNS_HEAD + 1 + n, 'a', 5);
    }
}

static void test_answer(void)
{
    static const unsigned char ips[NETWORK_DNS_ANSWERS][4] = {{10, 0, 0, 1}, {10, 0, 0, 2}};
    unsigned char to[NETWORK_DNS_MESSAGE];
    const unsigned char *query = (const unsigned char *)WEB A_IN "\x00\x00\x29";
    CU_ASSERT_TRUE_FATAL(ASK(WEB A_IN "\x00\x00\x29"));
    size_t n = network_dns_answer(query, &q, ips, 2, to, sizeof to);
    CU_ASSERT_EQUAL(n, q.end + 2 * 16);
    CU_ASSERT_EQUAL(memcmp(to, "\x12\x34\x81\x80\x00\x01\x00\x02\x00\x00\x00\x00", 12), 0);
    CU_ASSERT_EQUAL(memcmp(to + 12, query + 12, q.end - 12), 0);
    CU_ASSERT_EQUAL(memcmp(to + q.end + 16,
                           "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04\x0a\x00\x00\x02", 16),
                    0);
    CU_ASSERT_EQUAL(network_dns_answer(query, &q, ips, 2, to, q.end + 31), 0);
    q.type = 28; /* it has no such address, and is there */
    CU_ASSERT_EQUAL(network_dns_answer(query, &q, ips, 2, to, sizeof to), q.end);
    CU_ASSERT_EQUAL(to[7], 0);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("network_dns", NULL, NULL);
    CU_add_test(s, "a question", test_question);
    CU_add_test(s, "what is none", test_none);
    CU_add_test(s, "names that are too long", test_long);
    CU_add_test(s, "labels", test_labels);
    CU_add_test(s, "the answer", test_answer);
}
