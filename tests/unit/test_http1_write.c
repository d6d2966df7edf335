/* Heads as we write them: parsed again they are the same, refusals tell nothing of the request, and
 * a buffer that is too small is an error. */
#include "http1_head.h"
#include "http1_write.h"
#include "tap_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_http1_write(void);

static const struct limits limits = {.head_bytes = 32768, .headers = 100, .target_bytes = 8192};

static void parse(struct head *h, struct slice text)
{
    struct refusal why = {0, ""};
    int r = http1_parse_request(h, text, &limits, &why);
    if (r < 0)
        printf("# %.*s: %s\n", SL(text), why.code);
    CU_ASSERT_EQUAL_FATAL(r, 0);
}

static void request(const char *in, enum scheme scheme, const char *authority, const char *out)
{
    struct head h, again;
    struct authority a;
    struct buf b;
    parse(&h, slice_str(in));
    http_head_remove(&h, "host");
    http_head_remove(&h, "content-length");
    http_head_remove(&h, "transfer-encoding");
    CU_ASSERT_EQUAL_FATAL(authority_parse(&a, scheme, slice_str(authority)), 0);
    buf_init(&b, 4096);
    CU_ASSERT_EQUAL(http1_write_request(&b, &h, &a), 0);
    if (!slice_eq_str(buf_slice(&b), out))
        printf("# %.*s", SL(buf_slice(&b)));
    CU_ASSERT(slice_eq_str(buf_slice(&b), out));
    parse(&again, buf_slice(&b));
    CU_ASSERT(slice_eq(again.method, h.method) && slice_eq(again.path, h.path));
    CU_ASSERT(again.has_query == h.has_query && slice_eq(again.query, h.query));
    CU_ASSERT(again.body == h.body && again.length == h.length);
    for (size_t max = 0; max < buf_len(&b); max++) { /* each smaller buffer fails */
        struct buf small;
        buf_init(&small, max);
        CU_ASSERT_EQUAL(http1_write_request(&small, &h, &a), -1);
        buf_free(&small);
    }
    http_head_free(&again);
    http_head_free(&h);
    buf_free(&b);
}

static void test_requests(void)
{
    request("GET /a?b HTTP/1.1\r\nHost: x\r\nX-A:  1 \r\nX-A: 2\r\n\r\n", SCHEME_HTTPS, "A.example",
            "GET /a?b HTTP/1.1\r\nhost: a.example\r\nx-a: 1\r\nx-a: 2\r\n\r\n");
    request("GET /? HTTP/1.0\r\n\r\n", SCHEME_HTTPS, "a.example:8443",
            "GET /? HTTP/1.1\r\nhost: a.example:8443\r\n\r\n");
    request("POST / HTTP/1.1\r\nHost: x\r\n\r\n", SCHEME_HTTP, "[2001:DB8::1]:80",
            "POST / HTTP/1.1\r\nhost: [2001:db8::1]\r\ncontent-length: 0\r\n\r\n");
    request("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\n", SCHEME_HTTP, "192.0.2.1:81",
            "PUT / HTTP/1.1\r\nhost: 192.0.2.1:81\r\ncontent-length: 7\r\n\r\n");
    request("DELETE / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: CHUNKED\r\n\r\n", SCHEME_HTTPS, "a",
            "DELETE / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n"
            "connection: close\r\n\r\n");
    request("GET http://x/p HTTP/1.1\r\nHost: x\r\nEmpty:\r\n\r\n", SCHEME_HTTPS, "a",
            "GET /p HTTP/1.1\r\nhost: a\r\nempty: \r\n\r\n");
}

/* A head that says "no body" writes no other length, whatever else stands in it. */
static void test_no_body(void)
{
    struct head h;
    struct authority a;
    struct buf b;
    parse(&h, SLICE("POST / HTTP/1.1\r\nHost: x\r\n\r\n"));
    http_head_remove(&h, "host");
    h.length = 77;
    CU_ASSERT_EQUAL(authority_parse(&a, SCHEME_HTTPS, SLICE("a")), 0);
    buf_init(&b, 4096);
    CU_ASSERT_EQUAL(http1_write_request(&b, &h, &a), 0);
    CU_ASSERT(slice_ends(buf_slice(&b), SLICE("content-length: 0\r\n\r\n")));
    http_head_free(&h);
    buf_free(&b);
}

static void reply(unsigned status, enum body_kind body, uint64_t length, bool close, bool head,
                  const char *out)
{
    struct head h;
    struct buf b;
    http_head_init(&h);
    h.status = status;
    h.body = body;
    CU_ASSERT_EQUAL(http_head_add(&h, "x-a", SLICE("1")), 0);
    buf_init(&b, 4096);
    CU_ASSERT_EQUAL(http1_write_reply(&b, &h, body, length, close, head), 0);
    if (!slice_eq_str(buf_slice(&b), out))
        printf("# %.*s", SL(buf_slice(&b)));
    CU_ASSERT(slice_eq_str(buf_slice(&b), out));
    http_head_free(&h);
    buf_free(&b);
}

static void test_replies(void)
{
    reply(200, BODY_LENGTH, 5, false, false,
          "HTTP/1.1 200 OK\r\nx-a: 1\r\ncontent-length: 5\r\n\r\n");
    reply(200, BODY_CHUNKED, 0, false, false,
          "HTTP/1.1 200 OK\r\nx-a: 1\r\ntransfer-encoding: chunked\r\n\r\n");
    reply(200, BODY_CLOSE, 0, true, false,
          "HTTP/1.1 200 OK\r\nx-a: 1\r\nconnection: close\r\n\r\n");
    reply(200, BODY_NONE, 9, false, false,
          "HTTP/1.1 200 OK\r\nx-a: 1\r\ncontent-length: 0\r\n\r\n");
    reply(200, BODY_NONE, 0, false, true, "HTTP/1.1 200 OK\r\nx-a: 1\r\n\r\n");
    reply(204, BODY_NONE, 0, false, false, "HTTP/1.1 204 No Content\r\nx-a: 1\r\n\r\n");
    reply(304, BODY_NONE, 5, false, false, "HTTP/1.1 304 Not Modified\r\nx-a: 1\r\n\r\n");
    reply(799, BODY_NONE, 0, false, false,
          "HTTP/1.1 799 Status\r\nx-a: 1\r\ncontent-length: 0\r\n\r\n");
}

static void test_refusals(void)
{
    struct buf b;
    struct head h;
    struct refusal why;
    struct answer a;
    struct answer_how how = {ANSWER_TEXT, ""};
    answer_make(&a, &how, 403, "no_rule", "7-12", 0);
    for (int head = 0; head < 2; head++) {
        buf_init(&b, 4096);
        CU_ASSERT_EQUAL(http1_write_refusal(&b, &a, head, head, "x-y: z\r\n"), 0);
        struct slice all = buf_slice(&b);
        ssize_t end = slice_find_slice(all, SLICE("\r\n\r\n"));
        CU_ASSERT_FATAL(end > 0);
        struct slice raw = {all.p, (size_t)end + 4}, body = {raw.p + raw.n, all.n - raw.n};
        CU_ASSERT_EQUAL(
            http1_parse_reply(&h, raw, head ? SLICE("HEAD") : SLICE("GET"), NULL, &limits, &why),
            0);
        CU_ASSERT(h.status == 403 && h.length == a.n && a.n > 40);
        CU_ASSERT(slice_eq(http_head_find(&h, "durward-denied")->value, SLICE("no_rule 7-12")));
        CU_ASSERT(slice_eq(http_head_find(&h, "x-proxy-error")->value, SLICE("denied no_rule")));
        CU_ASSERT(slice_eq(http_head_find(&h, "x-y")->value, SLICE("z")));
        CU_ASSERT_EQUAL(h.keep_alive, !head);
        CU_ASSERT(slice_eq(body, head ? SLICE("") : (struct slice){a.body, a.n}));
        http_head_free(&h);
        buf_free(&b);
    }
}

/* A copy stands on its own, and edits leave the other fields where they are. */
static void test_head(void)
{
    struct head h, copy;
    parse(&h, SLICE("GET /a?b HTTP/1.1\r\nHost: x\r\nA: 1\r\nB: 2\r\na: 3\r\n\r\n"));
    CU_ASSERT_EQUAL(http_head_copy(&copy, &h), 0);
    http_head_free(&h);
    CU_ASSERT(slice_eq(copy.path, SLICE("/a")) && slice_eq(copy.query, SLICE("b")));
    CU_ASSERT(http_head_count(&copy, "a") == 2 && copy.n == 4);
    CU_ASSERT_EQUAL(http_head_set(&copy, "a", SLICE("new")), 0);
    CU_ASSERT(http_head_count(&copy, "a") == 1 && copy.n == 3);
    CU_ASSERT(slice_eq(http_head_find(&copy, "b")->value, SLICE("2")));
    CU_ASSERT_EQUAL(http_head_add(&copy, "c", SLICE("a\0b")), -1);
    CU_ASSERT_EQUAL(http_head_remove(&copy, "none"), 0);
    while (copy.n < HEAD_FIELDS_MAX)
        CU_ASSERT_EQUAL_FATAL(http_head_add(&copy, "x", SLICE("")), 0);
    CU_ASSERT_EQUAL(http_head_add(&copy, "x", SLICE("")), -1);
    CU_ASSERT_EQUAL(http_head_remove(&copy, "x"), HEAD_FIELDS_MAX - 3);
    http_head_free(&copy);
    http_head_free(&copy);
}

void suite_http1_write(void)
{
    CU_pSuite s = CU_add_suite("http1_write", NULL, NULL);
    CU_add_test(s, "requests, read again", test_requests);
    CU_add_test(s, "no body is no length", test_no_body);
    CU_add_test(s, "replies", test_replies);
    CU_add_test(s, "refusals", test_refusals);
    CU_add_test(s, "copies and edits of heads", test_head);
}

void tap_suites(void)
{
    suite_http1_write();
}
