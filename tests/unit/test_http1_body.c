/* Body framing: every chunk vector of group B (B11 to B14), at every split. */
#include "http1_body.h"
#include "tap_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_http1_body(void);

struct result {
    bool failed, done;
    size_t used; /* input bytes of the message */
    struct buf out;
};

/* Feed in pieces: the first `split` bytes, then the rest, or single bytes when split is 0. Each
 * piece is a copy of its exact size. `max` bounds what one call may give. */
static struct result feed(struct slice in, size_t split, size_t max, enum body_kind kind,
                          uint64_t length)
{
    struct result r = {false, false, 0, {0}};
    struct http1_body b;
    struct buf pending;
    size_t given = 0;
    http1_body_init(&b, kind, length);
    buf_init(&r.out, 1 << 20);
    buf_init(&pending, 1 << 20);
    while (given < in.n && !r.failed && !b.done) {
        size_t n = split == 0 ? 1 : given == 0 && split < in.n ? split : in.n - given;
        CU_ASSERT_EQUAL(buf_append(&pending, in.p + given, n), 0);
        given += n;
        for (;;) {
            struct slice out;
            char *exact = malloc(buf_len(&pending) + 1);
            memcpy(exact, buf_data(&pending), buf_len(&pending));
            ssize_t used = http1_body_read(&b, (struct slice){exact, buf_len(&pending)}, max, &out);
            if (used > 0) {
                CU_ASSERT(out.n <= max && (size_t)used <= buf_len(&pending));
                CU_ASSERT(out.p >= exact && out.p + out.n <= exact + used);
                CU_ASSERT_EQUAL(buf_append_slice(&r.out, out), 0);
                r.used += (size_t)used;
            }
            free(exact);
            r.failed = used < 0;
            if (used <= 0 || b.done)
                break;
            buf_drain(&pending, (size_t)used);
        }
    }
    r.done = b.done && !r.failed;
    http1_body_free(&b);
    buf_free(&pending);
    return r;
}

static bool whole(struct slice in, size_t split, size_t max, struct slice want, size_t used)
{
    struct result r = feed(in, split, max, BODY_CHUNKED, 0);
    bool ok = r.done && slice_eq(buf_slice(&r.out), want) && r.used == used;
    buf_free(&r.out);
    return ok;
}

static void test_splits(void)
{
    static const struct {
        struct slice text, body;
        size_t extra; /* bytes of what follows */
    } v[] = {
        {SLICE("5\r\nhello\r\n0\r\n\r\nGET /next"), SLICE("hello"), 9},
        {SLICE("0\r\n\r\n0\r\n\r\n"), SLICE(""), 5},
        {SLICE("1\r\na\r\n01\r\nb\r\n00000001\r\nc\r\n00000000\r\n\r\n"), SLICE("abc"), 0},
        {SLICE("aB\r\n"
               "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
               "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
               "0123456789abcdef0123456789abcdef0123456789A\r\n0\r\n\r\n"),
         SLICE("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
               "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
               "0123456789abcdef0123456789abcdef0123456789A"),
         0},
        {SLICE("2;a=b;c=\"d e\"\r\n\r\n\r\n1;e\r\nx\r\n0;last\r\nX-T: 1\r\nY:2\r\n\r\n\r\n"),
         SLICE("\r\nx"), 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        size_t used = v[i].text.n - v[i].extra;
        for (size_t split = 0; split <= v[i].text.n; split++)
            for (size_t max = 1; max <= 1024; max *= 32)
                CU_ASSERT(whole(v[i].text, split, max, v[i].body, used));
    }
}

static const struct {
    const char *name;
    struct slice text;
} bad[] = {
    {"0x", SLICE("0x1\r\na\r\n0\r\n\r\n")},
    {"plus", SLICE("+1\r\na\r\n0\r\n\r\n")},
    {"minus", SLICE("-1\r\na\r\n0\r\n\r\n")},
    {"underscore", SLICE("1_0\r\n0123456789abcdef\r\n0\r\n\r\n")},
    {"blank after", SLICE("1 \r\na\r\n0\r\n\r\n")},
    {"blank before", SLICE(" 1\r\na\r\n0\r\n\r\n")},
    {"tab", SLICE("1\t\r\na\r\n0\r\n\r\n")},
    {"blank before extension", SLICE("1 ;a\r\na\r\n0\r\n\r\n")},
    {"empty", SLICE("\r\na\r\n0\r\n\r\n")},
    {"extension alone", SLICE(";a\r\na\r\n0\r\n\r\n")},
    {"letters", SLICE("g\r\na\r\n0\r\n\r\n")},
    {"9 digits", SLICE("000000001\r\na\r\n0\r\n\r\n")},
    {"16 digits", SLICE("ffffffffffffffff\r\na")},
    {"17 digits wrap to 1", SLICE("10000000000000001\r\na\r\n0\r\n\r\n")},
    {"LF", SLICE("1\na\n0\n\n")},
    {"CR alone", SLICE("1\ra\r0\r\r")},
    {"CR CR LF", SLICE("1\r\r\na\r\n0\r\n\r\n")},
    {"LF after the size only", SLICE("1\na\r\n0\r\n\r\n")},
    {"data without its CRLF", SLICE("1\r\nab\r\n0\r\n\r\n")},
    {"data and LF", SLICE("1\r\na\n0\r\n\r\n")},
    {"data and CR", SLICE("1\r\na\r0\r\n\r\n")},
    {"LF in an extension", SLICE("1;a\nb\r\na\r\n0\r\n\r\n")},
    {"CR in an extension", SLICE("1;a\rb\r\na\r\n0\r\n\r\n")},
    {"NUL in an extension", SLICE("1;a\0b\r\na\r\n0\r\n\r\n")},
    {"high byte in an extension", SLICE("1;\xff\r\na\r\n0\r\n\r\n")},
    {"tab in an extension", SLICE("1;\t\r\na\r\n0\r\n\r\n")},
    {"empty extension", SLICE("1;\r\na\r\n0\r\n\r\n")},
    {"second extension empty", SLICE("1;a;\r\na\r\n0\r\n\r\n")},
    {"extension without name", SLICE("1;=a\r\na\r\n0\r\n\r\n")},
    {"extension without value", SLICE("1;a=\r\na\r\n0\r\n\r\n")},
    {"extension with a blank", SLICE("1;a b\r\na\r\n0\r\n\r\n")},
    {"quote not closed", SLICE("1;a=\"b\r\na\r\n0\r\n\r\n")},
    {"quote escaped", SLICE("1;a=\"b\\\"\r\na\r\n0\r\n\r\n")},
    {"text after a quote", SLICE("1;a=\"b\"c\r\na\r\n0\r\n\r\n")},
    {"trailer with framing", SLICE("0\r\nContent-Length: 1\r\n\r\n")},
    {"trailer with a coding", SLICE("0\r\nTransfer-Encoding: chunked\r\n\r\n")},
    {"trailer with a host", SLICE("0\r\nX: y\r\nHost: h\r\n\r\n")},
    {"NUL for a size", SLICE("\0\r\n\r\n")},
    {"trailer by LF", SLICE("0\r\nX: 1\n\n")},
    {"end by LF", SLICE("0\r\n\n")},
    {"trailer without colon", SLICE("0\r\nGET /evil HTTP/1.1\r\n\r\n")},
    {"trailer with a blank name", SLICE("0\r\nX A: 1\r\n\r\n")},
    {"trailer with space before colon", SLICE("0\r\nX : 1\r\n\r\n")},
    {"trailer folded", SLICE("0\r\nX: 1\r\n y\r\n\r\n")},
    {"trailer NUL", SLICE("0\r\nX: \0\r\n\r\n")},
    {"trailer CR", SLICE("0\r\nX: a\rb\r\n\r\n")},
    {"trailer twin", SLICE("0\r\nContent_Length: 1\r\n\r\n")},
};

static void test_bad(void)
{
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        for (size_t split = 0; split <= bad[i].text.n; split++) {
            struct result r = feed(bad[i].text, split, 1024, BODY_CHUNKED, 0);
            if (!r.failed)
                printf("# %s split at %zu is accepted\n", bad[i].name, split);
            CU_ASSERT(r.failed);
            buf_free(&r.out);
        }
}

/* Every byte after the digits of a size, and after the data. */
static void test_bytes(void)
{
    for (unsigned c = 0; c < 256; c++) {
        char size[] = "1?\r\na\r\n0\r\n\r\n", data[] = "1\r\na?\n0\r\n\r\n";
        size[1] = data[4] = (char)c;
        struct result r = feed((struct slice){size, sizeof size - 1}, 0, 1024, BODY_CHUNKED, 0);
        bool hex = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f');
        /* more digits: the chunk is longer than what there is */
        CU_ASSERT_EQUAL(r.failed, !hex);
        buf_free(&r.out);
        r = feed((struct slice){data, sizeof data - 1}, 0, 1024, BODY_CHUNKED, 0);
        CU_ASSERT_EQUAL(r.failed, c != '\r');
        buf_free(&r.out);
    }
}

static void repeat(struct buf *b, const char *before, char c, size_t n, const char *after)
{
    buf_init(b, 1 << 20);
    CU_ASSERT_EQUAL(buf_append_str(b, before), 0);
    for (size_t i = 0; i < n; i++)
        CU_ASSERT_EQUAL(buf_append(b, &c, 1), 0);
    CU_ASSERT_EQUAL(buf_append_str(b, after), 0);
}

static void test_bounds(void)
{
    struct buf b;
    for (size_t n = 254; n <= 258; n++) { /* 256 bytes of extension a chunk */
        repeat(&b, "1;", 'e', n, "\r\na\r\n1;e\r\nb\r\n0\r\n\r\n");
        struct result r = feed(buf_slice(&b), 3, 1024, BODY_CHUNKED, 0);
        CU_ASSERT_EQUAL(r.done, n <= HTTP1_EXTENSION_MAX);
        CU_ASSERT_EQUAL(r.failed, n > HTTP1_EXTENSION_MAX);
        buf_free(&r.out);
        buf_free(&b);
    }
    for (int over = -1; over <= 1; over++) {
        size_t n = (size_t)(HTTP1_TRAILERS_MAX - 7 + over);
        repeat(&b, "0\r\nx: ", 't', n, "\r\n\r\n");
        struct result r = feed(buf_slice(&b), 0, 1024, BODY_CHUNKED, 0);
        CU_ASSERT_EQUAL(r.done, over <= 0);
        CU_ASSERT_EQUAL(r.failed, over > 0);
        buf_free(&r.out);
        buf_free(&b);
    }
    /* an endless size line ends after its ninth digit */
    repeat(&b, "", '0', 100000, "");
    struct result r = feed(buf_slice(&b), 0, 1024, BODY_CHUNKED, 0);
    CU_ASSERT(r.failed && r.used < 10);
    buf_free(&r.out);
    buf_free(&b);
}

static void test_lengths(void)
{
    struct slice in = SLICE("hello, world");
    for (uint64_t n = 0; n <= in.n + 1; n++)
        for (size_t split = 0; split <= in.n; split++) {
            struct result r = feed(in, split, 5, BODY_LENGTH, n);
            size_t want = n < in.n ? (size_t)n : in.n;
            CU_ASSERT(!r.failed && r.done == (n <= in.n) && r.used == want);
            CU_ASSERT(slice_eq(buf_slice(&r.out), (struct slice){in.p, want}));
            buf_free(&r.out);
        }
    struct result r = feed(in, 0, 5, BODY_LENGTH, UINT64_MAX);
    CU_ASSERT(!r.failed && !r.done && r.used == in.n);
    buf_free(&r.out);
    r = feed(in, 3, 5, BODY_CLOSE, 0);
    CU_ASSERT(!r.failed && !r.done && slice_eq(buf_slice(&r.out), in));
    buf_free(&r.out);
    r = feed(in, 3, 5, BODY_NONE, 7);
    CU_ASSERT(!r.failed && r.done && r.used == 0 && buf_len(&r.out) == 0);
    buf_free(&r.out);
}

/* A message that stops early is never done, wherever it stops. */
static void test_short(void)
{
    struct slice in = SLICE("3;x\r\nabc\r\n0\r\nX-T: 1\r\n\r\n");
    for (size_t n = 0; n < in.n; n++) {
        struct result r = feed((struct slice){in.p, n}, 0, 1024, BODY_CHUNKED, 0);
        CU_ASSERT(!r.failed && !r.done);
        buf_free(&r.out);
    }
}

void suite_http1_body(void)
{
    CU_pSuite s = CU_add_suite("http1_body", NULL, NULL);
    CU_add_test(s, "chunks at every split", test_splits);
    CU_add_test(s, "bad chunks at every split (B11 to B14)", test_bad);
    CU_add_test(s, "every byte", test_bytes);
    CU_add_test(s, "bounds of extensions and trailers", test_bounds);
    CU_add_test(s, "lengths", test_lengths);
    CU_add_test(s, "cut short", test_short);
}

void tap_suites(void)
{
    suite_http1_body();
}
