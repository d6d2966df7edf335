/* SOCKS5 messages (RFC 1928, RFC 1929): whole, cut at every byte, and everything they may not be.
 */
#include <CUnit/CUnit.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "socks5.h"
#include "tap_main.h"

void suite_socks5(void);

static struct slice bytes(const void *p, size_t n)
{
    return (struct slice){p, n};
}

/* Every prefix of a message is not whole; read from memory of its own, so that a sanitizer sees
 * one byte too many. */
static void cut(struct slice whole, ssize_t (*read)(struct slice in))
{
    for (size_t n = 0; n < whole.n; n++) {
        char *copy = malloc(n ? n : 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
        memcpy(copy, whole.p, n);
        CU_ASSERT_EQUAL(read(bytes(copy, n)), SOCKS5_MORE);
        free(copy);
    }
    CU_ASSERT_EQUAL(read(whole), (ssize_t)whole.n);
}

static ssize_t read_greeting(struct slice in)
{
    struct socks5_greeting g;
    return socks5_greeting(in, &g);
}

static ssize_t read_login(struct slice in)
{
    struct socks5_login l;
    return socks5_login(in, &l);
}

static ssize_t read_request(struct slice in)
{
    struct socks5_request r;
    return socks5_request(in, &r);
}

static void test_greeting(void)
{
    struct socks5_greeting g;
    CU_ASSERT_EQUAL(socks5_greeting(SLICE("\5\1\0"), &g), 3);
    CU_ASSERT(g.none && !g.password);
    CU_ASSERT_EQUAL(socks5_greeting(SLICE("\5\3\1\2\x80"), &g), 5);
    CU_ASSERT(!g.none && g.password);
    CU_ASSERT_EQUAL(socks5_greeting(SLICE("\5\2\2\0more"), &g), 4);
    CU_ASSERT(g.none && g.password);
    CU_ASSERT_EQUAL(socks5_greeting(SLICE("\5\1\xff"), &g), 3);
    CU_ASSERT(!g.none && !g.password);
    CU_ASSERT_EQUAL(socks5_greeting(SLICE("\4\1\0"), &g), SOCKS5_BAD);
    CU_ASSERT_EQUAL(socks5_greeting(SLICE("\4"), &g), SOCKS5_BAD);
    CU_ASSERT_EQUAL(socks5_greeting(SLICE("\5\0"), &g), SOCKS5_BAD);
    cut(SLICE("\5\4\0\1\2\3"), read_greeting);
}

static void test_login(void)
{
    struct socks5_login l;
    CU_ASSERT_EQUAL(socks5_login(SLICE("\1\3abc\2xy"), &l), 8);
    CU_ASSERT(slice_eq_str(l.user, "abc") && slice_eq_str(l.password, "xy"));
    CU_ASSERT_EQUAL(socks5_login(SLICE("\1\0\0"), &l), 3);
    CU_ASSERT(l.user.n == 0 && l.password.n == 0);
    CU_ASSERT_EQUAL(socks5_login(SLICE("\5\1a\1b"), &l), SOCKS5_BAD);
    cut(SLICE("\1\3a\0c\4wxyz"), read_login);
    char longest[SOCKS5_MESSAGE_MAX];
    memset(longest, 'u', sizeof longest);
    longest[0] = 1;
    longest[1] = longest[257] = (char)255;
    CU_ASSERT_EQUAL(socks5_login(bytes(longest, sizeof longest), &l), SOCKS5_MESSAGE_MAX);
    CU_ASSERT_EQUAL(socks5_login(bytes(longest, sizeof longest - 1), &l), SOCKS5_MORE);
    CU_ASSERT(l.user.n == 0 && l.password.n == 0);
}

static void test_targets(void)
{
    static const char v6[] = "\5\1\0\4\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1\x01\xbb";
    static const char mapped[] = "\5\1\0\4\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\1\x01\xbb";
    struct socks5_request r;
    CU_ASSERT_EQUAL(socks5_request(SLICE("\5\1\0\3\xbhi.Ex4mple.\x01\xbb"), &r), 18);
    CU_ASSERT(r.reply == SOCKS5_GRANTED && r.code == NULL && r.named);
    CU_ASSERT_STRING_EQUAL(r.target.host, "hi.ex4mple");
    CU_ASSERT(r.target.port == 443 && r.target.scheme == SCHEME_HTTPS);
    CU_ASSERT_EQUAL(socks5_request(SLICE("\5\1\0\1\xc0\0\2\1\x1f\x90"), &r), 10);
    CU_ASSERT(r.reply == SOCKS5_GRANTED && !r.named && r.target.kind == HOST_IPV4);
    CU_ASSERT_STRING_EQUAL(r.target.host, "192.0.2.1");
    CU_ASSERT(r.target.port == 8080 && address_port(&r.address.sa) == 8080);
    CU_ASSERT_EQUAL(socks5_request(bytes(v6, 22), &r), 22);
    CU_ASSERT(r.reply == SOCKS5_GRANTED && !r.named && r.target.kind == HOST_IPV6);
    CU_ASSERT_STRING_EQUAL(r.target.host, "2001:db8::1");
    CU_ASSERT_EQUAL(socks5_request(bytes(mapped, 22), &r), 22);
    CU_ASSERT(r.target.kind == HOST_IPV4 && strcmp(r.target.host, "192.0.2.1") == 0);
    CU_ASSERT_EQUAL(socks5_request(SLICE("\5\1\0\3\x9"
                                         "192.0.2.1\0\x50"),
                                   &r),
                    16);
    CU_ASSERT(r.reply == SOCKS5_GRANTED && r.named && r.target.kind == HOST_IPV4);
    cut(SLICE("\5\1\0\1\xc0\0\2\1\x1f\x90"), read_request);
    cut(SLICE("\5\1\0\3\4host\x1f\x90"), read_request);
    cut(bytes(v6, 22), read_request);
}

static void malformed(struct slice name, uint16_t port)
{
    char text[300] = "\5\1\0\3";
    struct socks5_request r;
    text[4] = (char)name.n;
    memcpy(text + 5, name.p, name.n);
    text[5 + name.n] = (char)(port >> 8);
    text[6 + name.n] = (char)port;
    CU_ASSERT_EQUAL(socks5_request(bytes(text, name.n + 7), &r), (ssize_t)name.n + 7);
    CU_ASSERT_EQUAL(r.reply, SOCKS5_NOT_ALLOWED);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r.code);
    CU_ASSERT_STRING_EQUAL(r.code, "malformed_host");
    CU_ASSERT_STRING_EQUAL(r.target.host, "");
}

/* Each of the 256 values in front of, inside and behind a name: only those of names pass (A6). */
static void test_alphabet(void)
{
    unsigned passed = 0;
    for (unsigned v = 0; v < 256; v++) {
        static const size_t at[] = {0, 3, 7};
        for (size_t i = 0; i < ARRAY_LEN(at); i++) {
            char name[9] = "xxx.name";
            struct authority a;
            name[at[i]] = (char)v;
            if (authority_host(&a, bytes(name, 8)) == 0 && v != '[') {
                bool ours = ascii_is_alnum((char)v) || v == '-' || v == '_' || v == '.';
                CU_ASSERT(ours);
                passed++;
            } else {
                malformed(bytes(name, 8), 443);
            }
        }
    }
    CU_ASSERT(passed > 3 * 62);
}

static void test_not_names(void)
{
    char longest[255];
    memset(longest, 'a', sizeof longest);
    malformed(bytes(longest, 255), 443);
    malformed(SLICE(""), 443);
    malformed(SLICE("."), 443);
    malformed(SLICE("a..b"), 443);
    malformed(SLICE("[::1]"), 443);
    malformed(SLICE("[2001:db8::1]"), 443);
    malformed(SLICE("::1"), 443);
    malformed(SLICE("host:443"), 443);
    malformed(SLICE("0x7f.1"), 443);
    malformed(SLICE("2130706433"), 443);
    malformed(SLICE("127.1"), 443);
    malformed(SLICE("good.example\0.evil.example"), 443);
    malformed(SLICE("good.example"), 0);
}

static void test_refusals(void)
{
    struct socks5_request r;
    for (unsigned v = 0; v < 256; v++) {
        unsigned char text[10] = {5, (unsigned char)v, 0, 1, 192, 0, 2, 1, 0, 80};
        CU_ASSERT_EQUAL(socks5_request(bytes(text, 10), &r), 10);
        CU_ASSERT_EQUAL(r.reply, v == 1 ? SOCKS5_GRANTED : SOCKS5_BAD_COMMAND);
        CU_ASSERT(v == 1 || strcmp(r.code, "socks_command") == 0);
        CU_ASSERT_STRING_EQUAL(r.target.host, "192.0.2.1");
        text[1] = 1;
        text[3] = (unsigned char)v;
        if (v != 1 && v != 3 && v != 4) {
            CU_ASSERT_EQUAL(socks5_request(bytes(text, 10), &r), 10);
            CU_ASSERT_EQUAL(r.reply, SOCKS5_BAD_ADDRESS_TYPE);
            CU_ASSERT_STRING_EQUAL(r.code, "socks_address_type");
        }
        text[3] = 1;
        text[2] = (unsigned char)v;
        CU_ASSERT_EQUAL(socks5_request(bytes(text, 10), &r), v ? SOCKS5_BAD : 10);
        text[2] = 0;
        text[0] = (unsigned char)v;
        CU_ASSERT_EQUAL(socks5_request(bytes(text, 10), &r), v == 5 ? 10 : SOCKS5_BAD);
    }
    CU_ASSERT_EQUAL(socks5_request(SLICE("\5\1\0\1\xc0\0\2\1\0\0"), &r), 10);
    CU_ASSERT(r.reply == SOCKS5_NOT_ALLOWED && strcmp(r.code, "malformed_host") == 0);
}

void suite_socks5(void)
{
    CU_pSuite s = CU_add_suite("socks5", NULL, NULL);
    CU_add_test(s, "a greeting and its methods", test_greeting);
    CU_add_test(s, "a login, of any length", test_login);
    CU_add_test(s, "names and addresses become one canonical authority", test_targets);
    CU_add_test(s, "only the alphabet of names passes, of 256 values in 3 places", test_alphabet);
    CU_add_test(s, "what is no name is malformed_host", test_not_names);
    CU_add_test(s, "every other command, type, version and reserved byte", test_refusals);
}

void tap_suites(void);

void tap_suites(void)
{
    suite_socks5();
}
