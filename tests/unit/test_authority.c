/* The canonical authority: rows A6 to A16 of the attack catalogue. */
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "authority.h"
#include "tap_main.h"

/* A copy of exactly n bytes on the heap, so that the sanitizer sees a read past the end. */
static int host_of(const char *p, size_t n, struct authority *a)
{
    char *copy = malloc(n ? n : 1);
    if (n)
        memcpy(copy, p, n);
    memset(a, 0x5a, sizeof *a);
    int r = authority_host(a, (struct slice){copy, n});
    free(copy);
    return r;
}

static bool is_host(const char *text, const char *want)
{
    struct authority a;
    return host_of(text, strlen(text), &a) == 0 && strcmp(a.host, want) == 0;
}

static bool no_host(const char *text)
{
    struct authority a;
    return host_of(text, strlen(text), &a) < 0;
}

#define YES(text, want) CU_ASSERT_TRUE(is_host(text, want))
#define NO(text)        CU_ASSERT_TRUE(no_host(text))

/* A6: each byte value at the start, in the middle, at the end. */
static void every_byte(void)
{
    static const char alphabet[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    for (int c = 0; c < 256; c++)
        for (int where = 0; where < 3; where++) {
            char text[] = "ok.example.com", want[sizeof text + 1];
            size_t at = where == 0 ? 0 : where == 1 ? 5 : sizeof text - 2;
            struct authority a;
            text[at] = (char)c;
            bool in = c != 0 && strchr(alphabet, c) != NULL;
            if (c == '-')
                in = where == 1; /* not at an edge of a label */
            if (c == '.')
                in = where != 0; /* "ok.e.ample.com"; at the end it is the trailing dot */
            if ((host_of(text, sizeof text - 1, &a) == 0) != in) {
                printf("# byte %02x at %zu\n", (unsigned)c, at);
                CU_FAIL("a byte");
            }
            if (!in)
                continue;
            size_t n = sizeof text - 1 - (c == '.' && where == 2);
            for (size_t i = 0; i < n; i++)
                want[i] = ascii_lower(text[i]);
            want[n] = 0;
            CU_ASSERT_STRING_EQUAL(a.host, want);
        }
}

static void nul_inside(void)
{
    static const char *const parts[] = {"evil.example\0.ok.com", "\0ok.com",           "ok.com\0",
                                        "127.0.0.1\0",           "127.0.0.1\0.ok.com", "[::1\0]"};
    static const size_t lengths[] = {20, 7, 7, 10, 17, 6};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        struct authority a;
        CU_ASSERT_EQUAL(host_of(parts[i], lengths[i], &a), -1);
    }
}

/* A7, A8, A9, A10 and the grammar of names */
static void names(void)
{
    YES("api.github.com", "api.github.com");
    YES("API.GitHub.COM", "api.github.com");
    YES("ok.com.", "ok.com");
    YES("localhost", "localhost");
    YES("localhost.", "localhost");
    YES("_srv.ok.com", "_srv.ok.com");
    YES("xn--bcher-kva.example", "xn--bcher-kva.example");
    YES("XN--Bcher-KVA.example", "xn--bcher-kva.example");
    YES("a-b.c--d.e", "a-b.c--d.e");
    NO("");
    NO(".");
    NO("..");
    NO("ok..com");
    NO("ok.com..");
    NO(".ok.com");
    NO("-ok.com");
    NO("ok-.com");
    NO("ok.-com");
    NO("ok.com-");
    NO("ok.com-.");
    NO("evil%2ecom");
    NO("ok.com%00");
    NO("ok.com%");
    NO("ok\xe3\x80\x82"
       "com"); /* U+3002 */
    NO("\xd0\xbe"
       "k.com"); /* a Cyrillic o */
    NO("ok.com\xc2\xad");
    NO("user@ok.com");
    NO("ok.com@evil.com");
    NO("ok.com/");
    NO("ok.com?");
    NO("ok.com#");
    NO("ok.com\\");
    NO("ok.com ");
    NO(" ok.com");
    NO("ok.com\t");
    NO("ok.com\r\n");
    NO("ok.com:443"); /* a host alone has no port */
    NO("*.ok.com");
    NO("ok.com,evil.com");
    NO("ok.com;x");
}

static void lengths(void)
{
    char label[66], name[300];
    memset(label, 'a', sizeof label);
    label[63] = 0;
    snprintf(name, sizeof name, "%s.com", label);
    YES(name, name);
    label[63] = 'a';
    label[64] = 0;
    snprintf(name, sizeof name, "%s.com", label);
    NO(name);
    snprintf(name, sizeof name, "ok.%s", label);
    NO(name);
    memset(name, 'a', sizeof name);
    for (size_t i = 49; i < sizeof name; i += 50)
        name[i] = '.';
    name[253] = 0; /* 253 bytes: as long as a name may be */
    YES(name, name);
    name[253] = 'a';
    name[254] = 0;
    NO(name);
    /* the trailing dot does not count */
    name[253] = '.';
    struct authority a;
    CU_ASSERT_EQUAL(host_of(name, 254, &a), 0);
    CU_ASSERT_EQUAL(strlen(a.host), 253);
    memset(name, '.', sizeof name);
    CU_ASSERT_EQUAL(host_of(name, sizeof name, &a), -1);
}

/* Refused, unless it is the plain spelling. Returns 1 when it was another one. */
static unsigned refused(const char *plain, const char *text)
{
    if (strcmp(text, plain) == 0)
        return 0;
    if (!no_host(text)) {
        printf("# %s\n", text);
        CU_FAIL("a spelling");
    }
    return 1;
}

enum { BASES = 6 };

static void in_base(unsigned base, unsigned v, char *to, size_t size)
{
    switch (base) {
    case 0:
        snprintf(to, size, "%u", v);
        return;
    case 1:
        snprintf(to, size, "0%o", v);
        return;
    case 2:
        snprintf(to, size, "0x%x", v);
        return;
    case 3:
        snprintf(to, size, "0X%X", v);
        return;
    case 4:
        snprintf(to, size, "00%u", v);
        return;
    default:
        snprintf(to, size, "0x0%x", v);
    }
}

/* One part of the quad, or all four, in each base, with and without a trailing dot. */
static unsigned quads(const char *plain, const unsigned *part)
{
    unsigned tried = 0;
    for (unsigned base = 0; base < BASES; base++)
        for (unsigned at = 0; at < 5; at++) {
            char p[4][24], text[120];
            for (unsigned j = 0; j < 4; j++)
                in_base(at == 4 || at == j ? base : 0, part[j], p[j], sizeof p[j]);
            snprintf(text, sizeof text, "%s.%s.%s.%s", p[0], p[1], p[2], p[3]);
            tried += refused(plain, text);
            snprintf(text, sizeof text, "%s.%s.%s.%s.", p[0], p[1], p[2], p[3]);
            tried += refused(plain, text);
        }
    return tried;
}

#define SPELL(...)                                \
    do {                                          \
        snprintf(text, sizeof text, __VA_ARGS__); \
        tried += refused(plain, text);            \
    } while (0)

/* Fewer parts, other frames, IPv6 spellings. */
static unsigned odd_ones(const char *plain, uint32_t v, const unsigned *part)
{
    unsigned tried = 0, a = part[0], b = part[1];
    char text[120];
    SPELL("%u", v);
    SPELL("%u.", v);
    SPELL("0x%x", v);
    SPELL("0%o", v);
    SPELL("%u.%u", a, v & 0xffffff);
    SPELL("%u.%u.%u", a, b, v & 0xffff);
    SPELL("0x%x.%u", a, v & 0xffffff);
    SPELL("%s.0", plain);
    SPELL("%u.%u.%u.", a, b, part[2]);
    SPELL("%u.%u.%u.%u", a + 256, b, part[2], part[3]);
    SPELL("+%s", plain);
    SPELL(" %s", plain);
    SPELL("%s ", plain);
    SPELL("[%s]", plain);
    SPELL("%s%%lo", plain);
    SPELL("%u,%u,%u,%u", a, b, part[2], part[3]);
    SPELL("[::ffff:%s]", plain);
    SPELL("[::ffff:%x:%x]", v >> 16, v & 0xffff);
    SPELL("[0:0:0:0:0:ffff:%x:%x]", v >> 16, v & 0xffff);
    SPELL("[::FFFF:%x:%x]", v >> 16, v & 0xffff);
    return tried;
}

/* A15: ten addresses in every spelling but the plain one. */
static void ipv4_spellings(void)
{
    static const uint32_t addresses[] = {0x7f000001, 0x0a000001, 0xc0a80101, 0xa9fea9fe,
                                         0x08080808, 0x00000000, 0xffffffff, 0xac100001,
                                         0x01020304, 0x7f7f7f7f};
    unsigned tried = 0;
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        uint32_t v = addresses[i];
        unsigned part[4] = {v >> 24, v >> 16 & 255, v >> 8 & 255, v & 255};
        char plain[20];
        snprintf(plain, sizeof plain, "%u.%u.%u.%u", part[0], part[1], part[2], part[3]);
        YES(plain, plain);
        tried += quads(plain, part) + odd_ones(plain, v, part);
    }
    CU_ASSERT(tried >= 500);
    /* a name that ends in a number is nobody's name */
    NO("ok.1");
    NO("ok.0x1");
    NO("ok.0x");
    NO("ok.1.");
    NO("1");
    NO("0xdeadbeef");
    NO("ok.0XFF");
    YES("1.ok", "1.ok");
    YES("127.0.0.1.ok.com", "127.0.0.1.ok.com");
    YES("0xg.x0x1", "0xg.x0x1");
    YES("ok.0xg", "ok.0xg");
    YES("ok.1a", "ok.1a");
}

/* A14 */
static void ipv6(void)
{
    YES("[::1]", "::1");
    YES("[2001:DB8::1]", "2001:db8::1");
    YES("[2001:db8:0:0:0:0:0:1]", "2001:db8::1");
    YES("[::]", "::");
    YES("[64:ff9b::7f00:1]", "64:ff9b::7f00:1");
    NO("::1");
    NO("[::1");
    NO("::1]");
    NO("[]");
    NO("[");
    NO("]");
    NO("[[::1]]");
    NO("[::1]]");
    NO("[fe80::1%25eth0]");
    NO("[fe80::1%lo]");
    NO("[fe80::1%]");
    NO("[:::1]");
    NO("[1::2::3]");
    NO("[12345::]");
    NO("[::1.2.3]");
    NO("[v1.x]");
    NO("[ok.com]");
    NO("[::1 ]");
    NO("[::1].");
    NO("[2001:db8::1]x");
    for (size_t n = 40; n < 60; n++) { /* about INET6_ADDRSTRLEN */
        char text[64];
        memset(text, '0', n);
        text[0] = '[';
        text[n - 1] = ']';
        text[n] = 0;
        NO(text);
    }
    NO("[0000000000000000000000000000000000000000000000000000000000000000::1]");
}

struct port_row {
    const char *text;
    int https, http; /* the port, or 0: refused */
};

/* A16 */
static void ports(void)
{
    static const struct port_row rows[] = {
        {"ok.com", 443, 80},
        {"ok.com:443", 443, 443},
        {"ok.com:80", 80, 80},
        {"ok.com:1", 1, 1},
        {"ok.com:65535", 65535, 65535},
        {"ok.com.:8443", 8443, 8443},
        {"[::1]:8443", 8443, 8443},
        {"[::1]", 443, 80},
        {"127.0.0.1:9", 9, 9},
        {"ok.com:", 0, 0},
        {"ok.com:0", 0, 0},
        {"ok.com:00", 0, 0},
        {"ok.com:65536", 0, 0},
        {"ok.com:99999", 0, 0},
        {"ok.com:100000", 0, 0},
        {"ok.com:18446744073709551617", 0, 0},
        {"ok.com:+443", 0, 0},
        {"ok.com:-443", 0, 0},
        {"ok.com: 443", 0, 0},
        {"ok.com:443 ", 0, 0},
        {"ok.com:0443", 0, 0},
        {"ok.com:0x1bb", 0, 0},
        {"ok.com:443:443", 0, 0},
        {"ok.com:443/", 0, 0},
        {"ok.com:https", 0, 0},
        {"ok.com:4\xd9\xa3", 0, 0},
        {":443", 0, 0},
        {":", 0, 0},
        {"", 0, 0},
        {"::1", 0, 0},
        {"::1:443", 0, 0},
        {"[::1]443", 0, 0},
        {"[::1]:", 0, 0},
        {"[::1]:0", 0, 0},
        {"[::1", 0, 0},
        {"[::1:443", 0, 0},
        {"user@ok.com:443", 0, 0},
        {"user:pass@ok.com:443", 0, 0},
        {"ok.com:443@evil.com", 0, 0},
        {"https://ok.com", 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int https = 0; https < 2; https++) {
            struct authority a;
            enum scheme s = https ? SCHEME_HTTPS : SCHEME_HTTP;
            int want = https ? rows[i].https : rows[i].http;
            int r = authority_parse(&a, s, slice_str(rows[i].text));
            if ((r == 0) != (want != 0) || (r == 0 && (a.port != want || a.scheme != s))) {
                printf("# %s\n", rows[i].text);
                CU_FAIL("a port");
            }
        }
}

/* canon(canon(x)) == canon(x), through both texts. */
static void idempotent(void)
{
    static const char *const texts[] = {
        "OK.com",
        "ok.com.",
        "ok.com.:8443",
        "[2001:DB8:0::1]:444",
        "127.0.0.1:80",
        "[::]:443",
        "A.B.C.D.E.F.example",
        "_x.-y",
        "ok.com:443",
        "[::1.2.3.4]:99",
        "10.0.0.1",
        "localhost:1",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct authority a, b, c;
        char text[300], again[300];
        if (authority_parse(&a, SCHEME_HTTPS, slice_str(texts[i])) < 0) {
            CU_ASSERT_STRING_EQUAL(texts[i], "_x.-y");
            continue;
        }
        authority_text(&a, text, sizeof text);
        CU_ASSERT_EQUAL_FATAL(authority_parse(&b, SCHEME_HTTPS, slice_str(text)), 0);
        CU_ASSERT_STRING_EQUAL(authority_text(&b, again, sizeof again), text);
        CU_ASSERT(authority_eq(&a, &b));
        authority_text_port(&a, text, sizeof text);
        CU_ASSERT_EQUAL_FATAL(authority_parse(&c, SCHEME_HTTP, slice_str(text)), 0);
        CU_ASSERT(authority_same_host(&a, &c));
        CU_ASSERT_EQUAL(a.port, c.port);
        CU_ASSERT_EQUAL(memcmp(a.ip, c.ip, sizeof a.ip), 0);
    }
}

static void texts(void)
{
    struct authority a, b;
    char text[300];
    CU_ASSERT_EQUAL(authority_parse(&a, SCHEME_HTTPS, SLICE("OK.com.:443")), 0);
    CU_ASSERT_STRING_EQUAL(authority_text(&a, text, sizeof text), "ok.com");
    CU_ASSERT_STRING_EQUAL(authority_text_port(&a, text, sizeof text), "ok.com:443");
    CU_ASSERT_EQUAL(authority_parse(&b, SCHEME_HTTP, SLICE("ok.com:443")), 0);
    CU_ASSERT_STRING_EQUAL(authority_text(&b, text, sizeof text), "ok.com:443");
    CU_ASSERT_FALSE(authority_eq(&a, &b)); /* A17: the scheme counts */
    CU_ASSERT(authority_same_host(&a, &b));
    CU_ASSERT_EQUAL(authority_parse(&b, SCHEME_HTTPS, SLICE("ok.com:444")), 0);
    CU_ASSERT_FALSE(authority_eq(&a, &b));
    CU_ASSERT_EQUAL(authority_parse(&b, SCHEME_HTTPS, SLICE("ok.co:443")), 0);
    CU_ASSERT_FALSE(authority_eq(&a, &b));
    CU_ASSERT_FALSE(authority_same_host(&a, &b));
    CU_ASSERT_EQUAL(authority_parse(&b, SCHEME_HTTPS, SLICE("[2001:DB8::1]:8443")), 0);
    CU_ASSERT_STRING_EQUAL(authority_text(&b, text, sizeof text), "[2001:db8::1]:8443");
    CU_ASSERT_EQUAL(b.kind, HOST_IPV6);
    CU_ASSERT_EQUAL(b.ip[0], 0x20);
    CU_ASSERT_EQUAL(b.ip[15], 1);
    CU_ASSERT_EQUAL(authority_parse(&b, SCHEME_HTTP, SLICE("192.0.2.7")), 0);
    CU_ASSERT_STRING_EQUAL(authority_text(&b, text, sizeof text), "192.0.2.7");
    CU_ASSERT_STRING_EQUAL(authority_text_port(&b, text, sizeof text), "192.0.2.7:80");
    CU_ASSERT_EQUAL(b.ip[0], 192);
    CU_ASSERT_EQUAL(b.ip[3], 7);
    CU_ASSERT_EQUAL(scheme_port(SCHEME_HTTP), 80);
    CU_ASSERT_EQUAL(scheme_port(SCHEME_HTTPS), 443);
    CU_ASSERT_STRING_EQUAL(scheme_name(SCHEME_HTTP), "http");
    CU_ASSERT_STRING_EQUAL(scheme_name(SCHEME_HTTPS), "https");
}

static void sockaddrs(void)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(8080)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(443)};
    struct sockaddr other = {.sa_family = AF_UNIX};
    struct authority a, b;
    inet_pton(AF_INET, "192.0.2.9", &in.sin_addr);
    CU_ASSERT_EQUAL(authority_from_sockaddr(&a, SCHEME_HTTP, (struct sockaddr *)&in), 0);
    CU_ASSERT_EQUAL(authority_parse(&b, SCHEME_HTTP, SLICE("192.0.2.9:8080")), 0);
    CU_ASSERT(authority_eq(&a, &b));
    inet_pton(AF_INET6, "2001:db8::9", &in6.sin6_addr);
    CU_ASSERT_EQUAL(authority_from_sockaddr(&a, SCHEME_HTTPS, (struct sockaddr *)&in6), 0);
    CU_ASSERT_EQUAL(authority_parse(&b, SCHEME_HTTPS, SLICE("[2001:db8::9]")), 0);
    CU_ASSERT(authority_eq(&a, &b));
    /* a mapped address is the IPv4 address, and no text spells it otherwise */
    inet_pton(AF_INET6, "::ffff:192.0.2.9", &in6.sin6_addr);
    CU_ASSERT_EQUAL(authority_from_sockaddr(&a, SCHEME_HTTPS, (struct sockaddr *)&in6), 0);
    CU_ASSERT_EQUAL(a.kind, HOST_IPV4);
    CU_ASSERT_STRING_EQUAL(a.host, "192.0.2.9");
    CU_ASSERT_EQUAL(authority_parse(&b, SCHEME_HTTPS, SLICE("192.0.2.9")), 0);
    CU_ASSERT(authority_eq(&a, &b));
    CU_ASSERT_EQUAL(authority_from_sockaddr(&a, SCHEME_HTTPS, &other), -1);
}

static void suite_authority_add(CU_pSuite s)
{
    CU_add_test(s, "A6: every byte at start, middle, end", every_byte);
    CU_add_test(s, "A6: NUL inside", nul_inside);
    CU_add_test(s, "A7-A11: names", names);
    CU_add_test(s, "lengths of labels and names", lengths);
    CU_add_test(s, "A15: IPv4 in other spellings", ipv4_spellings);
    CU_add_test(s, "A14: IPv6", ipv6);
    CU_add_test(s, "A16: ports", ports);
    CU_add_test(s, "A8: canonical form is a fixed point", idempotent);
    CU_add_test(s, "texts and equality", texts);
    CU_add_test(s, "from socket addresses", sockaddrs);
}

void suite_authority(void);

void suite_authority(void)
{
    suite_authority_add(CU_add_suite("authority", NULL, NULL));
}

void tap_suites(void)
{
    suite_authority();
}
