/* DNS: the reader of queries and the writers of answers (attack D4), then the server over loopback.
 */
#include "dns.h"
#include "tap_main.h"

#include <stdio.h>
#include <string.h>

void suite_dns(void);

/* ---- queries as bytes ---- */

struct packet {
    unsigned char p[8192];
    size_t n;
};

static void put(struct packet *k, const void *p, size_t n)
{
    CU_ASSERT_FATAL(k->n + n <= sizeof k->p);
    memcpy(k->p + k->n, p, n);
    k->n += n;
}

static void put16(struct packet *k, unsigned v)
{
    unsigned char b[2] = {(unsigned char)(v >> 8), (unsigned char)v};
    put(k, b, 2);
}

static void put_name(struct packet *k, const char *name)
{
    while (*name) {
        size_t n = strcspn(name, ".");
        unsigned char len = (unsigned char)n;
        put(k, &len, 1);
        put(k, name, n);
        name += n + (name[n] == '.');
    }
    put(k, "", 1);
}

static void header(struct packet *k, unsigned flags, unsigned qd, unsigned an, unsigned ns,
                   unsigned ar)
{
    k->n = 0;
    put16(k, 0x1234);
    put16(k, flags);
    put16(k, qd);
    put16(k, an);
    put16(k, ns);
    put16(k, ar);
}

static void query(struct packet *k, const char *name, unsigned type)
{
    header(k, 0x0100, 1, 0, 0, 0);
    put_name(k, name);
    put16(k, type);
    put16(k, 1);
}

static void put_opt(struct packet *k, unsigned version, const void *options, size_t n)
{
    put(k, "", 1);
    put16(k, 41);
    put16(k, 4096);
    put16(k, version);
    put16(k, 0x8000);
    put16(k, (unsigned)n);
    put(k, options, n);
}

static unsigned get16(const unsigned char *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

/* The answer's code, extended by its OPT if there is one. */
static unsigned answer_code(const unsigned char *p, size_t n)
{
    unsigned code = p[3] & 15;
    if (get16(p + 10) == 1)
        code |= (unsigned)p[n - 6] << 4;
    return code;
}

static void expect(const struct packet *k, enum dns_parse what, enum dns_code code)
{
    struct dns_question q;
    enum dns_code c;
    unsigned char out[DNS_UDP_MAX];
    enum dns_parse w = dns_parse(k->p, k->n, &q, &c);
    CU_ASSERT_EQUAL(w, what);
    if (w != DNS_ANSWER_NOW || what != DNS_ANSWER_NOW)
        return;
    CU_ASSERT_EQUAL(c, code);
    size_t n = dns_write_code(&q, c, out, sizeof out);
    CU_ASSERT_FATAL(n >= 12);
    CU_ASSERT_EQUAL(answer_code(out, n), (unsigned)code);
    CU_ASSERT_EQUAL(get16(out), get16(k->p));
    CU_ASSERT_EQUAL(get16(out + 6), 0);
}

static void test_good(void)
{
    static const unsigned char v4[4] = {198, 18, 0, 9};
    struct packet k;
    struct dns_question q;
    enum dns_code code;
    unsigned char out[DNS_UDP_MAX];
    query(&k, "aPi.GitHub.com", DNS_TYPE_A);
    CU_ASSERT_FATAL(dns_parse(k.p, k.n, &q, &code) == DNS_PARSED);
    CU_ASSERT_STRING_EQUAL(q.host, "api.github.com");
    CU_ASSERT_EQUAL(q.type, DNS_TYPE_A);
    size_t n = dns_write_address(&q, v4, out, sizeof out);
    CU_ASSERT_EQUAL(n, k.n + 16);
    CU_ASSERT_EQUAL(get16(out + 2), 0x8180);              /* QR RD RA, no error */
    CU_ASSERT(memcmp(out + 12, k.p + 12, k.n - 12) == 0); /* the question, its case kept */
    static const unsigned char record[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 0, 9};
    CU_ASSERT(memcmp(out + k.n, record, sizeof record) == 0);
}

static void test_aaaa_edns(void)
{
    static const unsigned char v6[16] = {0xfd, 0x64, [15] = 9};
    struct packet k;
    struct dns_question q;
    enum dns_code code;
    unsigned char out[DNS_UDP_MAX];
    query(&k, "a.example", DNS_TYPE_AAAA);
    size_t question_end = k.n;
    k.p[11] = 1;
    put_opt(&k, 0, "\0\x0a\0\2ab", 6);
    CU_ASSERT_FATAL(dns_parse(k.p, k.n, &q, &code) == DNS_PARSED);
    size_t n = dns_write_address(&q, v6, out, sizeof out);
    CU_ASSERT_EQUAL(n, question_end + 28 + 11);
    CU_ASSERT(memcmp(out + question_end + 12, v6, 16) == 0);
    CU_ASSERT_EQUAL(get16(out + 10), 1);
    CU_ASSERT_EQUAL(get16(out + n - 10), 41);
    CU_ASSERT_EQUAL(dns_write_address(&q, NULL, out, sizeof out), question_end + 11);
    CU_ASSERT_EQUAL(get16(out + 6), 0); /* no data */
    CU_ASSERT_EQUAL(dns_write_address(&q, v6, out, 511), 0);
}

static void test_names(void)
{
    char name[300], label[64];
    struct packet k;
    memset(label, 'a', 63);
    label[63] = 0;
    snprintf(name, sizeof name, "%s.%s.%s.%.61s", label, label, label, label); /* 253 */
    query(&k, name, 1);
    expect(&k, DNS_PARSED, DNS_NOERROR);
    struct dns_question q;
    enum dns_code code;
    unsigned char out[DNS_UDP_MAX];
    (void)dns_parse(k.p, k.n, &q, &code);
    size_t n = dns_write_address(&q, (const unsigned char *)"abcd", out, sizeof out);
    CU_ASSERT(n > 0 && n <= DNS_UDP_MAX);
    snprintf(name, sizeof name, "%s.%s.%s.%.62s", label, label, label, label);
    query(&k, name, 1);
    expect(&k, DNS_ANSWER_NOW, DNS_FORMERR);
    static const char *const good[] = {"a", "localhost", "_dmarc.a-b.example", "x--y.e",
                                       "1.0.0.127.in-addr.arpa"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        query(&k, good[i], 16);
        expect(&k, DNS_PARSED, DNS_NOERROR);
    }
    static const char *const bad[] = {"",           "a b.example",  "a*.example",  "-a.example",
                                      "a-.example", "1.2.3.4",      "0x7f.1",      "a.example\xff",
                                      "[::1]",      "a%00.example", "a@b.example", "\x01.example"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        query(&k, bad[i], 1);
        expect(&k, DNS_ANSWER_NOW, DNS_FORMERR);
    }
    query(&k, "aXb.example", 1);
    k.p[14] = 0; /* a NUL inside a label */
    expect(&k, DNS_ANSWER_NOW, DNS_FORMERR);
    query(&k, "aXb.example", 1);
    k.p[14] = '.';
    expect(&k, DNS_ANSWER_NOW, DNS_FORMERR);
}

/* D4 and its relatives. */
static void test_odd(void)
{
    struct packet k;
    query(&k, "a.example", 1);
    size_t whole = k.n;
    for (size_t n = 0; n < whole; n++) {
        k.n = n;
        expect(&k, n < 12 ? DNS_IGNORE : DNS_ANSWER_NOW, DNS_FORMERR);
    }
    query(&k, "a.example", 1);
    put(&k, "x", 1);
    expect(&k, DNS_ANSWER_NOW, DNS_FORMERR);
    query(&k, "a.example", 1);
    k.p[2] |= 0x80; /* an answer: never answered */
    expect(&k, DNS_IGNORE, DNS_FORMERR);
    query(&k, "a.example", 1);
    k.p[2] |= 0x02; /* TC */
    expect(&k, DNS_ANSWER_NOW, DNS_FORMERR);
    for (unsigned opcode = 1; opcode < 16; opcode++) {
        query(&k, "a.example", 1);
        k.p[2] = (unsigned char)(opcode << 3);
        expect(&k, DNS_ANSWER_NOW, DNS_NOTIMP);
    }
    for (unsigned at = 4; at < 12; at += 2) /* 0 or 2 questions; any answer; two additionals */
        for (unsigned v = 0; v < 4; v++) {
            query(&k, "a.example", 1);
            if (v == (at == 4 ? 1u : 0u))
                continue;
            k.p[at + 1] = (unsigned char)v;
            expect(&k, DNS_ANSWER_NOW, DNS_FORMERR);
        }
    query(&k, "a.example", 1); /* two questions that are both there */
    k.p[5] = 2;
    put_name(&k, "b.example");
    put16(&k, 1);
    put16(&k, 1);
    expect(&k, DNS_ANSWER_NOW, DNS_FORMERR);
    static const unsigned classes[] = {0, 2, 3, 4, 254, 255, 0x8001};
    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
        query(&k, "a.example", 1);
        k.n -= 2;
        put16(&k, classes[i]);
        expect(&k, DNS_ANSWER_NOW, DNS_NOTIMP);
    }
    query(&k, "a.example", 252);
    expect(&k, DNS_ANSWER_NOW, DNS_REFUSED);
    query(&k, "a.example", 0);
    expect(&k, DNS_ANSWER_NOW, DNS_FORMERR);
}

static void test_compression(void)
{
    struct packet k;
    static const unsigned char loops[][4] = {
        {0xc0, 12}, {0xc0, 0}, {1, 'a', 0xc0, 12}, {0x40, 'a', 0}, {0x80, 'a', 0}};
    static const size_t n[] = {2, 2, 4, 3, 3};
    for (size_t i = 0; i < ARRAY_LEN(n); i++) {
        header(&k, 0x0100, 1, 0, 0, 0);
        put(&k, loops[i], n[i]);
        put16(&k, 1);
        put16(&k, 1);
        expect(&k, DNS_ANSWER_NOW, DNS_FORMERR);
    }
}

static void test_edns_odd(void)
{
    struct packet k;
    unsigned char big[5000] = {0, 10, 0x13, 0x80};
    query(&k, "a.example", 1);
    k.p[11] = 1;
    size_t n = k.n;
    put_opt(&k, 1, "", 0);
    expect(&k, DNS_ANSWER_NOW, DNS_BADVERS);
    k.n = n;
    put_opt(&k, 0, "\0\1\0\5ab", 6); /* an option longer than its record */
    expect(&k, DNS_ANSWER_NOW, DNS_FORMERR);
    k.n = n;
    put_opt(&k, 0, "", 0);
    k.p[k.n - 1] = 9; /* a record longer than the message */
    expect(&k, DNS_ANSWER_NOW, DNS_FORMERR);
    k.n = n;
    put_name(&k, "x"); /* OPT belongs to the root */
    put16(&k, 41);
    put(&k, "\x10\0\0\0\0\0\0\0", 8);
    expect(&k, DNS_ANSWER_NOW, DNS_FORMERR);
    k.n = n;
    put_opt(&k, 0, big, sizeof big);
    expect(&k, DNS_ANSWER_NOW, DNS_FORMERR); /* over DNS_QUERY_MAX */
    k.n = n;
    put_name(&k, "x"); /* another record than OPT */
    put16(&k, 1);
    put(&k, "\0\1\0\0\0\0\0\0", 8);
    expect(&k, DNS_ANSWER_NOW, DNS_FORMERR);
}

void suite_dns(void)
{
    CU_pSuite s = CU_add_suite("dns", NULL, NULL);
    CU_add_test(s, "a question and its answer", test_good);
    CU_add_test(s, "AAAA, EDNS", test_aaaa_edns);
    CU_add_test(s, "names", test_names);
    CU_add_test(s, "odd messages", test_odd);
    CU_add_test(s, "compression in a question", test_compression);
    CU_add_test(s, "odd EDNS", test_edns_odd);
}

void tap_suites(void)
{
    suite_dns();
}
