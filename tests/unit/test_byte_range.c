/* Parts of files whose replies are searched: what is read of Range, and that whatever part is asked
 * for, in whatever pieces it comes, the client gets just that part of the searched file. */
#include "byte_range.h"
#include "http1_head.h"
#include "scrub.h"
#include "tap_main.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_byte_range(void);

static const struct limits limits = {.head_bytes = 8192, .headers = 100, .target_bytes = 1000};
static const char secret[] = "sk-proj-3fA9xLq0ZbT7mYw2Rk5Vd8";

static void parse(struct head *h, const char *method, const char *fields)
{
    char text[1024];
    struct refusal why;
    int n = snprintf(text, sizeof text, "%s / HTTP/1.1\r\nHost: x\r\n%s\r\n", method, fields);
    CU_ASSERT_EQUAL_FATAL(http1_parse_request(h, (struct slice){text, (size_t)n}, &limits, &why),
                          0);
}

/* What is asked for with a margin of ten, or "" where no part is. */
static void reads(const char *method, const char *fields, const char *want)
{
    struct head h;
    struct byte_range r;
    parse(&h, method, fields);
    byte_range_read(&h, &r);
    CU_ASSERT_EQUAL(r.name != NULL, want[0] != 0);
    if (r.name && want[0]) {
        CU_ASSERT_EQUAL(byte_range_widen(&r, &h, 10), 0);
        struct slice v = http_head_find(&h, r.name)->value;
        if (!slice_eq_str(v, want))
            printf("# %s gave %.*s\n", fields, (int)v.n, v.p);
        CU_ASSERT(slice_eq_str(v, want));
        CU_ASSERT_EQUAL(h.n, 2); /* and Host */
    }
    http_head_free(&h);
}

static void test_read(void)
{
    reads("GET", "Range: bytes=0-0\r\n", "bytes=0-10");
    reads("GET", "Range: bytes=5-9\r\n", "bytes=0-19");
    reads("GET", "Range: BYTES=100-199\r\n", "bytes=90-209");
    reads("GET", "Range: bytes=100-\r\n", "bytes=90-");
    reads("GET", "Range: bytes=-5\r\n", "bytes=-15");
    reads("GET", "X-Ms-Range: bytes=100-199\r\n", "bytes=90-209");
    reads("GET", "X-Ms-Range: bytes=100-199\r\nRange: bytes=0-0\r\n", "bytes=90-209");
    reads("GET", "Range: bytes=100-9223372036854775807\r\n", "bytes=90-");
    reads("GET", "Range: bytes=-9223372036854775807\r\n", "bytes=-9223372036854775807");
    reads("GET", "Request-Range: bytes=5-5\r\nRange: bytes=5-9\r\n", "bytes=0-19");
    reads("GET", "Range: bytes=5-9\r\nRequest_Range: bytes=5-5\r\nX_Ms_Range: x\r\n", "bytes=0-19");
    reads("GET", "Request-Range: bytes=5-5\r\n", "");
    reads("GET",
          "Range: bytes=5-9\r\nX-Ms-Range-Get-Content-MD5: true\r\n"
          "X-Ms-Range-Get-Content-CRC64: true\r\nX-Amz-Checksum-Mode: ENABLED\r\n",
          "bytes=0-19");
    static const char *const odd[] = {
        "bytes=0-0,2-2",
        "bytes=5-1",
        "bytes=-0",
        "bytes=-",
        "bytes=",
        "bytes=a-b",
        "bytes = 0-1",
        "bytes=0 -1",
        "items=0-1",
        "bytes=0-1;x",
        "bytes=+1-2",
        "bytes=0x1-2",
        "bytes=0-9223372036854775808",
        "",
    };
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        char field[100];
        snprintf(field, sizeof field, "Range: %s\r\n", odd[i]);
        reads("GET", field, "");
    }
    reads("GET", "Range: bytes=0-1\r\nRange: bytes=0-1\r\n", "");
    reads("GET", "X-Ms-Range: x\r\nRange: bytes=0-1\r\n", "");
    reads("GET", "", "");
    reads("POST", "Range: bytes=0-1\r\n", "");
}

static void test_drop(void)
{
    struct head h;
    parse(&h, "GET", "Range: a\r\nX-Ms-Range: b\r\nIf-Range: c\r\nX: d\r\n");
    byte_range_drop(&h);
    CU_ASSERT_EQUAL(h.n, 2);
    http_head_free(&h);
    parse(&h, "GET",
          "Request-Range: a\r\nREQUEST_RANGE: b\r\nX_Ms-Range: c\r\n"
          "X-Ms-Range-Get-Content-MD5: true\r\nX: d\r\n");
    byte_range_drop(&h);
    CU_ASSERT_EQUAL(h.n, 2);
    http_head_free(&h);
    parse(&h, "PUT", "Range: a\r\nX-Ms-Range: b\r\nIf-Range: c\r\n"); /* where it writes */
    byte_range_drop(&h);
    CU_ASSERT(h.n == 2 && http_head_count(&h, "x-ms-range") == 1);
    http_head_free(&h);
}

/* ---- an origin, a search and a client ---- */

enum { MARGIN = 300, FILE_MAX = 4000, ROUNDS = 60000 };

static uint64_t state = 20261129;

static uint64_t dice(uint64_t n)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (state >> 33) % n;
}

/* A file with secrets in it, and the same as the search leaves it. */
static size_t make_file(struct scrub_set *set, char *file, char *searched)
{
    size_t n = dice(8) ? dice(FILE_MAX) + 1 : dice(40) + 1;
    for (size_t i = 0; i < n; i++)
        file[i] = (char)('a' + dice(26));
    for (uint64_t k = dice(6); k > 0 && n > strlen(secret); k--)
        memcpy(file + dice(n - strlen(secret) + 1), secret, strlen(secret));
    memcpy(searched, file, n);
    CU_ASSERT_FATAL(scrub_whole(set, searched, n) >= 0);
    return n;
}

/* A request of a client's. */
static void make_request(char text[80], size_t n)
{
    uint64_t a = dice(n + 20), b = a + dice(n);
    switch (dice(4)) {
    case 0:
        snprintf(text, 80, "Range: bytes=%" PRIu64 "-\r\n", a);
        break;
    case 1:
        snprintf(text, 80, "Range: bytes=-%" PRIu64 "\r\n", a + 1);
        break;
    default:
        snprintf(text, 80, "Range: bytes=%" PRIu64 "-%" PRIu64 "\r\n", a, b);
    }
}

/* As RFC 9110 has it: from and how many of a file of n bytes. False: 416. */
static bool serve(const struct byte_range *r, size_t n, uint64_t *from, uint64_t *count)
{
    *from = r->suffix ? (n > r->suffix ? n - r->suffix : 0) : r->first;
    if (*from >= n)
        return false;
    uint64_t last = r->suffix || r->last >= n ? n - 1 : r->last;
    *count = last - *from + 1;
    return true;
}

static void reply_head(struct head *h, uint64_t from, uint64_t count, size_t n)
{
    char text[80];
    http_head_init(h);
    h->status = 206;
    h->body = BODY_LENGTH;
    h->length = count;
    snprintf(text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%zu", from, from + count - 1, n);
    CU_ASSERT_EQUAL_FATAL(http_head_add(h, "content-range", slice_str(text)), 0);
    CU_ASSERT_EQUAL_FATAL(http_head_add(h, "content-md5", SLICE("x")), 0);
    CU_ASSERT_EQUAL_FATAL(http_head_add(h, "x-ms-content-crc64", SLICE("x")), 0);
    CU_ASSERT_EQUAL_FATAL(http_head_add(h, "x-amz-checksum-crc32", SLICE("x")), 0);
}

/* What comes out of a search and a cut, in pieces. */
static size_t deliver(struct scrub_set *set, struct byte_cut *cut, const char *p, size_t n,
                      char *to)
{
    struct scrub *s = scrub_new(set);
    size_t at = 0, got = 0;
    struct slice out;
    while (at < n) {
        size_t step = dice(97) + 1;
        step = step < n - at ? step : n - at;
        CU_ASSERT_EQUAL_FATAL(scrub_feed(s, (struct slice){p + at, step}, &out), 0);
        at += step;
        out = byte_cut_take(cut, out);
        memcpy(to + got, out.p, out.n);
        got += out.n;
    }
    CU_ASSERT_EQUAL_FATAL(scrub_end(s, &out), 0);
    CU_ASSERT_FATAL(byte_cut_close(cut, out.n));
    out = byte_cut_take(cut, out);
    memcpy(to + got, out.p, out.n);
    got += out.n;
    out = byte_cut_end(cut);
    memcpy(to + got, out.p, out.n);
    scrub_free(s);
    return got + out.n;
}

static void said(const struct head *h, uint64_t from, uint64_t count, size_t n)
{
    char text[80];
    snprintf(text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%zu", from, from + count - 1, n);
    CU_ASSERT_FATAL(slice_eq_str(http_head_find(h, "content-range")->value, text));
    CU_ASSERT_FATAL(h->status == 206 && h->length == count);
    CU_ASSERT_EQUAL_FATAL(h->n, 1); /* no sum of other bytes */
}

static void round_of(struct scrub_set *set)
{
    char file[FILE_MAX], searched[FILE_MAX], got[FILE_MAX], text[80];
    size_t n = make_file(set, file, searched);
    struct byte_range asked, wide;
    struct byte_cut cut;
    struct head h, reply;
    uint64_t from, count, first, whole;
    make_request(text, n);
    parse(&h, "GET", text);
    byte_range_read(&h, &asked);
    CU_ASSERT_PTR_NOT_NULL_FATAL(asked.name);
    CU_ASSERT_EQUAL_FATAL(byte_range_widen(&asked, &h, MARGIN), 0);
    byte_range_read(&h, &wide);
    bool there = serve(&asked, n, &first, &whole);
    if (serve(&wide, n, &from, &count)) {
        reply_head(&reply, from, count, n);
        CU_ASSERT_EQUAL_FATAL(byte_range_cut(&asked, MARGIN, &reply, &cut), 0);
        size_t m = deliver(set, &cut, file + from, (size_t)count, got);
        CU_ASSERT_EQUAL_FATAL(cut.take, 0);
        if (there) {
            said(&reply, first, whole, n);
            CU_ASSERT_FATAL(m == whole && memcmp(got, searched + first, m) == 0);
        } else {
            CU_ASSERT_FATAL(reply.status == 416 && reply.body == BODY_NONE && m == 0);
        }
        http_head_free(&reply);
    } else {
        CU_ASSERT_FATAL(!there);
    }
    http_head_free(&h);
}

static void test_parts(void)
{
    struct scrub_forms f;
    CU_ASSERT_EQUAL_FATAL(scrub_forms_make(&f, slice_str(secret), NULL), 0);
    struct scrub_set *set = scrub_set_new(&f, "key");
    scrub_forms_free(&f);
    CU_ASSERT_FATAL(set != NULL && scrub_set_longest(set) <= MARGIN);
    for (unsigned i = 0; i < ROUNDS; i++)
        round_of(set);
    scrub_set_unref(set);
}

/* A reply to 100-199, asked for as 90-209. first: 0 where it does not fit. */
static void cuts(const char *content_range, uint64_t length, const char *want)
{
    const struct byte_range r = {"range", 100, 199, 0};
    struct byte_cut cut;
    struct head h;
    http_head_init(&h);
    h.status = 206;
    h.body = length ? BODY_LENGTH : BODY_NONE;
    h.length = length;
    if (content_range)
        CU_ASSERT_EQUAL_FATAL(http_head_add(&h, "content-range", slice_str(content_range)), 0);
    int ok = byte_range_cut(&r, 10, &h, &cut);
    if ((ok == 0) != (want != NULL))
        printf("# %s\n", content_range ? content_range : "(none)");
    CU_ASSERT_EQUAL(ok, want ? 0 : -1);
    if (ok == 0 && want)
        CU_ASSERT(slice_eq_str(http_head_find(&h, "content-range")->value, want));
    http_head_free(&h);
}

/* An origin that gives less than it was asked for leaves no margin, and one that lies gives
 * nothing. */
static void test_replies(void)
{
    cuts("bytes 90-209/1000", 120, "bytes 100-199/1000");
    cuts("bytes 90-209/*", 120, "bytes 100-199/*");
    cuts("bytes 90-149/150", 60, "bytes 100-149/150");
    cuts("bytes 90-149/1000", 60, "bytes 100-139/1000");
    cuts("bytes 90-149/*", 60, "bytes 100-139/*");
    cuts("bytes 90-209/210", 120, "bytes 100-199/210");
    cuts("bytes 90-99/100", 10, "bytes */100"); /* 416 */
    cuts("bytes 90-99/1000", 10, NULL);
    cuts("bytes 90-109/1000", 20, NULL);
    cuts("bytes 100-199/1000", 100, NULL);
    cuts("bytes 91-209/1000", 119, NULL);
    cuts("bytes 90-210/1000", 121, NULL);
    cuts("bytes 90-209/1000", 119, NULL);
    cuts("bytes 90-209/1000", 0, NULL);
    cuts("bytes 90-209/209", 120, NULL);
    cuts("bytes 209-90/1000", 120, NULL);
    cuts("bytes */1000", 120, NULL);
    cuts("items 90-209/1000", 120, NULL);
    cuts("bytes 90-209", 120, NULL);
    cuts("", 120, NULL);
    cuts(NULL, 120, NULL);
    struct byte_cut cut;
    struct head h;
    http_head_init(&h);
    h.status = 200; /* it has no parts */
    const struct byte_range r = {"range", 100, 199, 0};
    CU_ASSERT(byte_range_cut(&r, 10, &h, &cut) == 0 && !cut.on);
    const struct byte_range none = {.name = NULL};
    h.status = 206; /* unasked */
    CU_ASSERT(byte_range_cut(&none, 10, &h, &cut) == 0 && !cut.on);
    http_head_free(&h);
}

/* 120 bytes are said, of which 10 are before the part and 10 behind it; so many come. The last byte
 * of the part stays until it is known that they were as many. */
static void comes(size_t n, size_t last, bool good)
{
    const struct byte_range r = {"range", 100, 199, 0};
    static const char bytes[200];
    struct byte_cut cut;
    struct head h;
    http_head_init(&h);
    h.status = 206;
    h.body = BODY_CHUNKED;
    CU_ASSERT_EQUAL_FATAL(http_head_add(&h, "content-range", SLICE("bytes 90-209/1000")), 0);
    CU_ASSERT_EQUAL_FATAL(byte_range_cut(&r, 10, &h, &cut), 0);
    struct slice s = byte_cut_take(&cut, (struct slice){bytes, n});
    CU_ASSERT_EQUAL(s.n, n <= 10 ? 0 : n < 110 ? n - 10 : 99);
    CU_ASSERT_EQUAL(cut.bad, n > 120);
    CU_ASSERT_EQUAL(byte_cut_close(&cut, last), good);
    if (good) {
        s = byte_cut_take(&cut, (struct slice){bytes, last});
        CU_ASSERT_EQUAL(s.n + byte_cut_end(&cut).n, n < 10 ? 100 : n < 110 ? 110 - n : 1);
        CU_ASSERT(byte_cut_close(&cut, 0));
    } else {
        CU_ASSERT(!byte_cut_close(&cut, 0));
    }
    http_head_free(&h);
}

static void test_counted(void)
{
    comes(120, 0, true);
    comes(100, 20, true);
    comes(0, 120, true);
    comes(119, 0, false);
    comes(110, 9, false);
    comes(100, 9, false);
    comes(100, 21, false);
    comes(0, 0, false);
    comes(121, 0, false);
    comes(120, 1, false);
}

void suite_byte_range(void)
{
    CU_pSuite s = CU_add_suite("byte_range", NULL, NULL);
    CU_add_test(s, "what is read", test_read);
    CU_add_test(s, "what is dropped", test_drop);
    CU_add_test(s, "parts of files", test_parts);
    CU_add_test(s, "replies", test_replies);
    CU_add_test(s, "bytes that are said and come", test_counted);
}

void tap_suites(void)
{
    suite_byte_range();
}
