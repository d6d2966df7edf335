/* Reply heads as strictly as request heads: what an evil origin may say (B18, B19, B25). */
#include "http1_head.h"
#include "tap_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_http1_reply(void);

static const struct limits limits = {.head_bytes = 32768, .headers = 100, .target_bytes = 8192};

static int parse(struct slice text, const char *method, struct head *h, struct refusal *why)
{
    size_t scanned = 0;
    char *exact = malloc(text.n);
    memcpy(exact, text.p, text.n);
    http_head_init(h);
    *why = (struct refusal){502, "upstream_protocol"};
    ssize_t n = http1_head_end((struct slice){exact, text.n}, limits.head_bytes, &scanned);
    int r = n <= 0 ? -1
                   : http1_parse_reply(h, (struct slice){exact, (size_t)n}, slice_str(method), NULL,
                                       &limits, why);
    free(exact);
    return r;
}

struct bad {
    const char *name;
    struct slice text;
};

#define B(n, t)                 \
    {                           \
        n,                      \
        {                       \
            "" t, sizeof(t) - 1 \
        }                       \
    }
#define R(more) "HTTP/1.1 200 OK\r\n" more "\r\n"

static void test_refused(void)
{
    static const struct bad v[] = {
        B("length and coding", R("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")),
        B("two lengths that differ", R("Content-Length: 5\r\nContent-Length: 6\r\n")),
        B("a list that differs", R("Content-Length: 5, 6\r\n")),
        B("two lengths, one of them none", R("Content-Length: 5\r\nContent-Length: +5\r\n")),
        B("length and coding, a blank", R("Content-Length: 5\r\nTransfer-Encoding : chunked\r\n")),
        B("103 chunked", "HTTP/1.1 103 Early\r\nTransfer-Encoding: chunked\r\n\r\n"),
        B("length plus", R("Content-Length: +5\r\n")),
        B("length empty", R("Content-Length:\r\n")),
        B("length overflow", R("Content-Length: 18446744073709551616\r\n")),
        B("coding twice", R("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")),
        B("gzip", R("Transfer-Encoding: gzip, chunked\r\n")),
        B("xchunked", R("Transfer-Encoding: xchunked\r\n")),
        B("coding in 1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        B("fold", R("X-A: b\r\n c\r\n")),
        B("LF", "HTTP/1.1 200 OK\nContent-Length: 0\n\n"),
        B("LF field", R("X-A: b\nX-B: c\r\n")),
        B("CR in a value", R("X-A: b\rc\r\n")),
        B("CR in the reason", "HTTP/1.1 200 O\rK\r\n\r\n"),
        B("NUL", R("X-A: b\0c\r\n")),
        B("empty name", R(": x\r\n")),
        B("no colon", R("X\r\n")),
        B("101", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"),
        B("204 with a length", "HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n"),
        B("HTTP/2", "HTTP/2.0 200 OK\r\n\r\n"),
        B("HTTP/1.2", "HTTP/1.2 200 OK\r\n\r\n"),
        B("HTTP/0.9", "HTTP/0.9 200 OK\r\n\r\n"),
        B("HTTP/1.10", "HTTP/1.10 200 OK\r\n\r\n"),
        B("ICY", "ICY 200 OK\r\n\r\n"),
        B("lower case", "http/1.1 200 OK\r\n\r\n"),
        B("two digits", "HTTP/1.1 20 OK\r\n\r\n"),
        B("four digits", "HTTP/1.1 2000 OK\r\n\r\n"),
        B("099", "HTTP/1.1 099 OK\r\n\r\n"),
        B("000", "HTTP/1.1 000 OK\r\n\r\n"),
        B("+20", "HTTP/1.1 +20 OK\r\n\r\n"),
        B("no blank before reason", "HTTP/1.1 200OK\r\n\r\n"),
        B("two blanks", "HTTP/1.1  200 OK\r\n\r\n"),
        B("tab", "HTTP/1.1\t200 OK\r\n\r\n"),
        B("leading CRLF", "\r\nHTTP/1.1 200 OK\r\n\r\n"),
        B("leading blank", " HTTP/1.1 200 OK\r\n\r\n"),
        B("a request", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        B("garbage", "this is not HTTP\r\n\r\n"),
        B("escape in the reason", "HTTP/1.1 200 \x1b[2J\r\n\r\n"),
    };
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        struct head h;
        struct refusal why;
        int r = parse(v[i].text, "GET", &h, &why);
        if (r == 0 || why.status != 502)
            printf("# %s: %d %u %s\n", v[i].name, r, why.status, why.code);
        CU_ASSERT(r == -1 && why.status == 502);
        http_head_free(&h);
    }
}

struct good {
    struct slice text;
    const char *method;
    unsigned status;
    enum body_kind body;
    uint64_t length;
    bool keep_alive;
};

#define G(t, m, s, b, l, k)                  \
    {                                        \
        {"" t, sizeof(t) - 1}, m, s, b, l, k \
    }

static void test_accepted(void)
{
    static const struct good v[] = {
        G(R("Content-Length: 5\r\n"), "GET", 200, BODY_LENGTH, 5, true),
        G(R("Content-Length: 0\r\n"), "GET", 200, BODY_NONE, 0, true),
        G(R("Transfer-Encoding: chunked\r\n"), "GET", 200, BODY_CHUNKED, 0, true),
        G(R(""), "GET", 200, BODY_CLOSE, 0, false),
        G(R("Connection: close\r\nContent-Length: 5\r\n"), "GET", 200, BODY_LENGTH, 5, false),
        G(R("Content-Length: 5\r\n"), "HEAD", 200, BODY_NONE, 5, true),
        G(R("Transfer-Encoding: chunked\r\n"), "HEAD", 200, BODY_NONE, 0, true),
        /* mended, and the connection not used again */
        G(R("Content-Length: 5\r\nContent-Length: 5\r\n"), "GET", 200, BODY_LENGTH, 5, false),
        G(R("Content-Length: 5, 5\r\ncontent-length:5\r\n"), "GET", 200, BODY_LENGTH, 5, false),
        G(R("Content-Length : 5\r\nX\t: y\r\n"), "GET", 200, BODY_LENGTH, 5, false),
        G("HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n", "GET", 204, BODY_NONE, 0, false),
        G("HTTP/1.1 304 Not\r\nTransfer-Encoding: chunked\r\n\r\n", "GET", 304, BODY_NONE, 0,
          false),
        G("HTTP/1.1 204 No Content\r\n\r\n", "GET", 204, BODY_NONE, 0, true),
        G("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "GET", 304, BODY_NONE, 5, true),
        G("HTTP/1.1 304 Not Modified\r\n\r\n", "GET", 304, BODY_NONE, 0, true),
        G("HTTP/1.1 100 Continue\r\n\r\n", "POST", 100, BODY_NONE, 0, true),
        G("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", "GET", 103, BODY_NONE, 0, true),
        G("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", "GET", 200, BODY_LENGTH, 5, false),
        G("HTTP/1.0 200 OK\r\n\r\n", "GET", 200, BODY_CLOSE, 0, false),
        G("HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n", "GET", 200, BODY_LENGTH, 5, true),
        G("HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\n", "GET", 200, BODY_LENGTH, 5, true),
        G("HTTP/1.1 999 Odd\r\nContent-Length: 5\r\n\r\n", "GET", 999, BODY_LENGTH, 5, true),
        G("HTTP/1.1 200 caf\xc3\xa9\r\nX: \xe9\r\nContent-Length: 5\r\n\r\n", "GET", 200,
          BODY_LENGTH, 5, true),
    };
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        struct head h;
        struct refusal why;
        int r = parse(v[i].text, v[i].method, &h, &why);
        bool right = r == 0 && h.status == v[i].status && h.body == v[i].body &&
                     h.length == v[i].length && h.keep_alive == v[i].keep_alive;
        if (!right)
            printf("# %zu: %d %s, status %u body %d length %llu keep %d\n", i, r,
                   r ? why.code : "ok", h.status, h.body, (unsigned long long)h.length,
                   h.keep_alive);
        CU_ASSERT(right);
        http_head_free(&h);
    }
}

/* Every byte in the status line and in a name: the same grammar as a request's. */
static void test_bytes(void)
{
    for (unsigned c = 0; c < 256; c++) {
        struct head h;
        struct refusal why;
        char text[] = "HTTP/1.1 200 a?b\r\nContent-Length: 0\r\n\r\n";
        text[14] = (char)c;
        bool value = c == '\t' || (c >= 0x20 && c != 0x7f);
        CU_ASSERT_EQUAL(parse((struct slice){text, sizeof text - 1}, "GET", &h, &why),
                        value ? 0 : -1);
        http_head_free(&h);
        char name[] = "HTTP/1.1 200 OK\r\nx?y: 0\r\nContent-Length: 0\r\n\r\n";
        name[18] = (char)c;
        bool token = c && (ascii_is_alnum((char)c) || strchr("!#$%&'*+-.^_`|~:", (int)c));
        CU_ASSERT_EQUAL(parse((struct slice){name, sizeof name - 1}, "GET", &h, &why),
                        token ? 0 : -1);
        http_head_free(&h);
    }
}

static void test_sizes(void)
{
    static const unsigned counts[] = {101, 400, HEAD_FIELDS_MAX, HEAD_FIELDS_MAX + 1};
    for (size_t k = 0; k < ARRAY_LEN(counts); k++) {
        struct buf b;
        struct head h;
        struct refusal why;
        buf_init(&b, 1 << 20);
        CU_ASSERT_EQUAL(buf_append_str(&b, "HTTP/1.1 200 OK\r\n"), 0);
        for (unsigned i = 0; i < counts[k]; i++)
            CU_ASSERT_EQUAL(buf_printf(&b, "set-cookie: x%u=1\r\n", i), 0);
        CU_ASSERT_EQUAL(buf_append_str(&b, "\r\n"), 0);
        bool fits = counts[k] <= HEAD_FIELDS_MAX;
        CU_ASSERT_EQUAL(parse(buf_slice(&b), "GET", &h, &why), fits ? 0 : -1);
        CU_ASSERT(fits ? h.n == counts[k] : why.status == 502);
        http_head_free(&h);
        buf_free(&b);
    }
}

void suite_http1_reply(void)
{
    CU_pSuite s = CU_add_suite("http1_reply", NULL, NULL);
    CU_add_test(s, "refused with 502 (B18, B25)", test_refused);
    CU_add_test(s, "accepted, with its framing", test_accepted);
    CU_add_test(s, "all bytes", test_bytes);
    CU_add_test(s, "too many fields", test_sizes);
}

void tap_suites(void)
{
    suite_http1_reply();
}
