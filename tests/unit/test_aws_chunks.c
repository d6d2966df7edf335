/* Bodies of signed chunks: AWS's published examples (S3 reference, "Transferring Payload in
 * Multiple Chunks", without and with a trailer), any split, and what is none. */
#include "aws_chunks.h"
#include "buf.h"
#include "tap_main.h"

#include <stdio.h>
#include <string.h>

void suite_aws_chunks(void);

#define DIGITS     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ODD        "g123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LINE(size) size ";chunk-signature=" DIGITS "\r\n"
#define SIGNED     "x-amz-trailer-signature:" DIGITS "\r\n\r\n"

/* The key of the published examples; it opens nothing. */
static const struct aws_pair pair = {SLICE_INIT("AKIAIOSFODNN7EXAMPLE"),
                                     SLICE_INIT("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
                                     SLICE_INIT("")};

static void put(struct buf *b, const char *text)
{
    CU_ASSERT_EQUAL_FATAL(buf_append_str(b, text), 0);
}

/* 66,560 times "a" in chunks of 64 KiB. */
static void example(struct buf *b, const char *trailer)
{
    buf_init(b, 100000);
    put(b, LINE("10000"));
    for (int i = 0; i < 65536; i++)
        put(b, "a");
    put(b, "\r\n" LINE("400"));
    for (int i = 0; i < 1024; i++)
        put(b, "a");
    put(b, "\r\n" LINE("0"));
    put(b, trailer ? trailer : "\r\n");
}

/* Signs each piece as the vault does. */
static void published(const char *names, const char *trailer, const char *seed,
                      const char *const *want, size_t n)
{
    struct buf b;
    struct aws_chunks c;
    struct aws_piece piece;
    struct aws_scope s = {
        .time = "20130524T000000Z", .region = "us-east-1", .service = "s3", .text = AWS_CHUNK};
    char got[AWS_HEX + 1];
    example(&b, trailer);
    snprintf(s.previous, sizeof s.previous, "%s", seed);
    CU_ASSERT_EQUAL_FATAL(aws_chunks_init(&c, 66560, names), 0);
    for (size_t i = 0; i < n; i++) {
        CU_ASSERT_EQUAL_FATAL(aws_chunks_next(&c, buf_slice(&b), &piece), 1);
        CU_ASSERT_EQUAL(memcmp(buf_data(&b) + piece.hole, DIGITS, AWS_HEX), 0);
        s.text = piece.text;
        memcpy(s.hash, piece.hash, sizeof s.hash);
        CU_ASSERT_EQUAL_FATAL(aws_sign(&pair, &s, got), 0);
        CU_ASSERT_STRING_EQUAL(got, want[i]);
        snprintf(s.previous, sizeof s.previous, "%s", got);
        buf_drain(&b, piece.n);
    }
    CU_ASSERT(aws_chunks_over(&c));
    CU_ASSERT_EQUAL(buf_len(&b), 0);
    buf_free(&b);
}

static void test_published(void)
{
    static const char *const plain[] = {
        "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
        "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
        "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"};
    static const char *const trailer[] = {
        "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
        "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
        "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
        "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435"};
    published(NULL, NULL, "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9", plain,
              ARRAY_LEN(plain));
    published("x-amz-checksum-crc32c", "x-amz-checksum-crc32c:sOO8/Q==\r\n" SIGNED,
              "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e", trailer,
              ARRAY_LEN(trailer));
    published("x-amz-checksum-crc32c", "x-amz-checksum-crc32c:sOO8/Q==\n\r\n" SIGNED,
              "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e", trailer,
              ARRAY_LEN(trailer));
}

/* Byte by byte: how many pieces; -1 it is none, -2 it ended within one. */
static int read_all(const char *text, size_t n, uint64_t decoded, const char *names)
{
    struct aws_chunks c;
    size_t from = 0, to = 0, need = 0;
    int pieces = 0;
    CU_ASSERT_EQUAL_FATAL(aws_chunks_init(&c, decoded, names), 0);
    for (;;) {
        struct aws_piece piece;
        int r = aws_chunks_next(&c, (struct slice){text + from, to - from}, &piece);
        if (r < 0)
            return -1;
        CU_ASSERT(r == 0 || piece.n <= to - from);
        CU_ASSERT(r == 0 || piece.hole + AWS_HEX <= piece.n);
        CU_ASSERT(r != 1 || to - from >= need); /* what it asked for was not too much */
        need = r ? 0 : piece.n;
        from += r ? piece.n : 0;
        pieces += r;
        if (r == 0 && to == n)
            return aws_chunks_over(&c) && from == n ? pieces : -2;
        to += r == 0;
    }
}

struct row {
    const char *text;
    uint64_t decoded;
    const char *names;
    int want;
};

static const struct row rows[] = {
    {LINE("0") "\r\n", 0, NULL, 1},
    {LINE("5") "hello\r\n" LINE("0") "\r\n", 5, NULL, 2},
    {LINE("0005") "hello\r\n" LINE("00") "\r\n", 5, NULL, 2},
    {LINE("5") "hello\r\n" LINE("A") "hello too!\r\n" LINE("0") "\r\n", 15, NULL, -1},
    {LINE("5") "hello\r\n" LINE("0") "a:b\r\n" SIGNED, 5, "a", 3},
    {LINE("5") "hello\r\n" LINE("0") "a:b\nc:d\n\r\n" SIGNED, 5, "a, c", 3},
    /* not whole */
    {LINE("5") "hello\r\n" LINE("0"), 5, NULL, -2},
    {LINE("5") "hello\r\n", 5, NULL, -2},
    {LINE("5") "hel", 5, NULL, -2},
    {LINE("0") "a:b\r\n", 0, "a", -2},
    /* more or less than was said */
    {LINE("5") "hello\r\n" LINE("0") "\r\n", 4, NULL, -1},
    {LINE("5") "hello\r\n" LINE("0") "\r\n", 6, NULL, -1},
    {LINE("5") "hello\r\n", 4, NULL, -1}, /* refused at once */
    {LINE("5") "helloxx" LINE("0") "\r\n", 5, NULL, -1},
    {LINE("0") "\r\nx", 0, NULL, -1},
    {LINE("0") "\r\n" LINE("0") "\r\n", 0, NULL, -1},
    /* of another form */
    {"5\r\nhello\r\n0\r\n\r\n", 5, NULL, -1},
    {"5;chunk-signature=" DIGITS "0\r\nhello\r\n", 5, NULL, -1},
    {"5;chunk-signature=0123\r\nhello\r\n", 5, NULL, -1},
    {"5;chunk-signaturx=" DIGITS "\r\nhello\r\n" LINE("0") "\r\n", 5, NULL, -1},
    {LINE("g") "0123456789abcdef\r\n" LINE("0") "\r\n", 16, NULL, -1},
    {"5;chunk-signature=" ODD "\r\nhello\r\n", 5, NULL, -1},
    {"5;chunk-signature=" DIGITS "0\nhello\r\n", 5, NULL, -1},
    {"\n;chunk-signature=" DIGITS "\r\nhello\r\n", 5, NULL, -1},
    {"5\r\n;chunk-signature=" DIGITS "\r\nhello\r\n", 5, NULL, -1},
    {"5;a=b;chunk-signature=" DIGITS "\r\nhello\r\n", 5, NULL, -1},
    {";chunk-signature=" DIGITS "\r\nhello\r\n", 5, NULL, -1},
    {"-5;chunk-signature=" DIGITS "\r\nhello\r\n", 5, NULL, -1},
    {"5 ;chunk-signature=" DIGITS "\r\nhello\r\n", 5, NULL, -1},
    {"5;chunk-signature=" DIGITS "\nhello\r\n", 5, NULL, -1},
    {"100001;chunk-signature=" DIGITS "\r\n", 9999999, NULL, -1},
    {"0000005;chunk-signature=" DIGITS "\r\nhello\r\n", 5, NULL, -1},
    {LINE("5") "hello\n" LINE("0") "\r\n", 5, NULL, -1},
    /* trailers */
    {LINE("0") "\r\n", 0, "a", -2},
    {LINE("0") SIGNED, 0, "a", -1},
    {LINE("0") "b:b\r\n" SIGNED, 0, "a", -1},
    {LINE("0") "a:b\r\n" SIGNED, 0, "a,c", -1},
    {LINE("0") "a:b\r\na:b\r\n" SIGNED, 0, "a", -1},
    {LINE("0") "A:b\r\n" SIGNED, 0, "a", -1},
    {LINE("0") "a:\r\n" SIGNED, 0, "a", -1},
    {LINE("0") "a: b\r\n" SIGNED, 0, "a", -1},
    {LINE("0") "a:b\x01\r\n" SIGNED, 0, "a", -1},
    {LINE("0") "\r\na:b\r\n" SIGNED, 0, "a", -1},
    {LINE("0") "a:b\r\n" SIGNED "x", 0, "a", -1},
    {LINE("0") "a:b" SIGNED, 0, "a", -1},
    {LINE("0") "a b:c\r\n" SIGNED, 0, "a b", -1},
    {LINE("0") "a\r\n" SIGNED, 0, "a", -1},
    {LINE("0") ":b\r\n" SIGNED, 0, "a", -1},
    {LINE("0") "\r\n" SIGNED, 0, " , ", -1}, /* names of nothing, and nothing of them */
    {LINE("0") "a:b\r\n\r\n\r\n" SIGNED, 0, "a", -1},
    {LINE("0") "a:b\r\nx-amz-trailer-signature:" ODD "\r\n\r\n", 0, "a", -1},
    {LINE("0") "a:b\r\nx-amz-trailer-signature:" DIGITS "\r\nc:", 0, "a", -1},
    {LINE("0") "a:b\r\nx-amz-trailer-signature:00\r\n\r\n" DIGITS, 0, "a", -1},
};

/* Only the last chunk of data may be small: each is a signature of the vault's. */
static void test_small(void)
{
    static const struct {
        size_t first, second;
        int want;
    } sizes[] = {{AWS_CHUNK_MIN, 1, 3},
                 {AWS_CHUNK_MIN, AWS_CHUNK_MIN, 3},
                 {AWS_CHUNK_MIN - 1, 1, -1},
                 {1, AWS_CHUNK_MIN, -1},
                 {1, 0, 2}};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct buf text;
        char line[AWS_CHUNK_LINE];
        buf_init(&text, 1 << 20);
        for (int k = 0; k < 2; k++) {
            size_t n = k ? sizes[i].second : sizes[i].first;
            if (n == 0)
                continue;
            snprintf(line, sizeof line, "%zx" LINE(""), n);
            CU_ASSERT_EQUAL(buf_append_str(&text, line), 0);
            for (; n > 0; n--)
                CU_ASSERT_EQUAL(buf_append_str(&text, "a"), 0);
            CU_ASSERT_EQUAL(buf_append_str(&text, "\r\n"), 0);
        }
        CU_ASSERT_EQUAL(buf_append_str(&text, LINE("0") "\r\n"), 0);
        struct slice all = buf_slice(&text);
        CU_ASSERT_EQUAL(read_all(all.p, all.n, sizes[i].first + sizes[i].second, NULL),
                        sizes[i].want);
        buf_free(&text);
    }
}

static void test_rows(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int got = read_all(rows[i].text, strlen(rows[i].text), rows[i].decoded, rows[i].names);
        if (got != rows[i].want) {
            printf("# row %zu: %d, not %d: %s\n", i, got, rows[i].want, rows[i].text);
            CU_FAIL("a row");
        }
    }
}

/* Whatever never ends is seen to be none within a bound. */
static void test_endless(void)
{
    static char text[AWS_TRAILER_MAX + 200];
    struct aws_chunks c;
    struct aws_piece piece;
    memset(text, '0', sizeof text);
    CU_ASSERT_EQUAL(aws_chunks_init(&c, 0, NULL), 0);
    CU_ASSERT_EQUAL(aws_chunks_next(&c, (struct slice){text, AWS_CHUNK_LINE - 1}, &piece), 0);
    CU_ASSERT_EQUAL(aws_chunks_next(&c, (struct slice){text, AWS_CHUNK_LINE}, &piece), -1);
    CU_ASSERT_EQUAL(aws_chunks_init(&c, 0, "a"), 0);
    CU_ASSERT_EQUAL(aws_chunks_next(&c, SLICE(LINE("0")), &piece), 1);
    CU_ASSERT_EQUAL(aws_chunks_next(&c, (struct slice){text, AWS_TRAILER_MAX - 1}, &piece), 0);
    CU_ASSERT_EQUAL(aws_chunks_next(&c, (struct slice){text, AWS_TRAILER_MAX}, &piece), -1);
    text[AWS_TRAILER_NAMES] = 0;
    CU_ASSERT_EQUAL(aws_chunks_init(&c, 0, text), -1);
    CU_ASSERT_EQUAL(aws_chunks_init(&c, 0, ""), -1); /* a trailer of no names */
}

/* The vault signs nothing else: a chunk has a signature before it, a request has none. */
static void test_scopes(void)
{
    struct aws_scope s = {.time = "20130524T000000Z", .region = "r", .service = "s3"};
    snprintf(s.hash, sizeof s.hash, "%s", DIGITS);
    CU_ASSERT(aws_scope_ok(&s));
    s.text = AWS_CHUNK;
    CU_ASSERT_FALSE(aws_scope_ok(&s));
    snprintf(s.previous, sizeof s.previous, "%s", DIGITS);
    CU_ASSERT(aws_scope_ok(&s));
    s.text = AWS_REQUEST;
    CU_ASSERT_FALSE(aws_scope_ok(&s));
    s.text = AWS_TRAILER;
    s.previous[0] = 'A';
    CU_ASSERT_FALSE(aws_scope_ok(&s));
    s.previous[0] = 'a';
    s.text = AWS_TRAILER + 1;
    CU_ASSERT_FALSE(aws_scope_ok(&s));
}

void suite_aws_chunks(void)
{
    CU_pSuite s = CU_add_suite("aws_chunks", NULL, NULL);
    CU_add_test(s, "published examples", test_published);
    CU_add_test(s, "byte by byte: what it is and what it is not", test_rows);
    CU_add_test(s, "what does not end", test_endless);
    CU_add_test(s, "small chunks", test_small);
    CU_add_test(s, "scopes of chunks", test_scopes);
}

void tap_suites(void)
{
    suite_aws_chunks();
}
