/* The two ends of MCP over stdio: which messages a text holds, heads, bodies, lines. */
#include "json_walk.h"
#include "stdio_mcp.h"
#include "tap_main.h"

#include <string.h>

void tap_suites(void);

static int scan(const char *text, struct stdio_message *m)
{
    return stdio_scan(slice_str(text), m, STDIO_MESSAGES_MAX);
}

static void test_messages(void)
{
    static const struct {
        const char *text;
        int n;
        const char *id, *method;
        bool request, answers;
    } rows[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"x\"}", 1, "7", "\"x\"", true, false},
        {" { \"id\" : \"a\\\"b\" , \"method\":\"y\" } ", 1, "\"a\\\"b\"", "\"y\"", true, false},
        {"{\"method\":\"n\",\"params\":{\"id\":3,\"method\":[]}}", 1, "", "\"n\"", false, false},
        {"{\"id\":1,\"result\":{\"a\":[1,{\"b\":\"}\"}]}}", 1, "1", "", false, true},
        {"{\"id\":null,\"error\":{}}", 1, "null", "", false, true},
        {"{\"id\":null,\"method\":\"x\"}", 1, "null", "\"x\"", false, false},
        {"[{\"id\":1,\"method\":\"a\"},{\"method\":\"b\"}]", 2, "1", "\"a\"", true, false},
        {"{\"id\":1,\"id\":2,\"method\":\"x\"}", -1, "", "", false, false},
        {"{\"id\":1}", -1, "", "", false, false},
        {"{\"id\":1,\"method\":\"x\"} x", -1, "", "", false, false},
        {"{\"id\":1,\"method\":\"x\"", -1, "", "", false, false},
        {"{\"a\":[1},\"method\":\"x\"}", -1, "", "", false, false},
        {"{\"method\":\"x\\", -1, "", "", false, false},
        {"[]", -1, "", "", false, false},
        {"", -1, "", "", false, false},
        {"text", -1, "", "", false, false},
    };
    struct stdio_message m[STDIO_MESSAGES_MAX];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int n = scan(rows[i].text, m);
        CU_ASSERT_EQUAL(n, rows[i].n);
        if (n <= 0)
            continue;
        CU_ASSERT(slice_eq_str(m[0].id, rows[i].id));
        CU_ASSERT(slice_eq_str(m[0].method, rows[i].method));
        CU_ASSERT_EQUAL(stdio_is_request(&m[0]), rows[i].request);
        CU_ASSERT_EQUAL(m[0].answers, rows[i].answers);
    }
}

static void test_bounds(void)
{
    struct stdio_message m[STDIO_MESSAGES_MAX];
    char text[1024];
    struct buf b;
    snprintf(text, sizeof text, "{\"method\":\"x\",\"id\":\"%0*d\"}", STDIO_ID_MAX - 2, 1);
    CU_ASSERT_EQUAL(scan(text, m), 1);
    snprintf(text, sizeof text, "{\"method\":\"x\",\"id\":\"%0*d\"}", STDIO_ID_MAX - 1, 1);
    CU_ASSERT_EQUAL(scan(text, m), -1);
    for (int more = 0; more < 2; more++) {
        buf_init(&b, 4096);
        CU_ASSERT(buf_append_str(&b, "{\"method\":\"x\",\"params\":") == 0);
        for (int i = 0; i < JSON_DEPTH_MAX + more; i++)
            CU_ASSERT(buf_append_str(&b, "[") == 0);
        for (int i = 0; i < JSON_DEPTH_MAX + more; i++)
            CU_ASSERT(buf_append_str(&b, "]") == 0);
        CU_ASSERT(buf_append_str(&b, "}") == 0);
        CU_ASSERT_EQUAL(stdio_scan(buf_slice(&b), m, STDIO_MESSAGES_MAX), more ? -1 : 1);
        buf_free(&b);
    }
    for (int more = 0; more < 2; more++) {
        buf_init(&b, 4096);
        for (int i = 0; i < STDIO_MESSAGES_MAX + more; i++)
            CU_ASSERT(buf_append_str(&b, i ? ",{\"method\":1}" : "[{\"method\":1}") == 0);
        CU_ASSERT(buf_append_str(&b, "]") == 0);
        CU_ASSERT_EQUAL(stdio_scan(buf_slice(&b), m, STDIO_MESSAGES_MAX),
                        more ? -1 : STDIO_MESSAGES_MAX);
        buf_free(&b);
    }
}

/* An id is a text, however a server spells it. */
static void test_ids(void)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"\"a/b\"", "\"a\\/b\"", true},
        {"\"\\u0061\"", "\"a\"", true},
        {"\"\\u00e9\"", "\"\xc3\xa9\"", true},
        {"\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"", true},
        {"\"\\n\"", "\"n\"", false},
        {"\"\\\\n\"", "\"\\n\"", false},
        {"\"1\"", "1", false},
        {"1", "1", true},
        {"\"\\u00\"", "\"\\u00\"", true},
        {"\"a\"", "\"ab\"", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CU_ASSERT_EQUAL(stdio_same_id(slice_str(rows[i].a), slice_str(rows[i].b)), rows[i].same);
        CU_ASSERT_EQUAL(stdio_same_id(slice_str(rows[i].b), slice_str(rows[i].a)), rows[i].same);
    }
}

static void test_heads(void)
{
    struct stdio_head h;
    CU_ASSERT_EQUAL(stdio_head_read(SLICE("POST /mcp HTTP/1.1\r\nHost: x\r\n"), true, &h), 0);
    CU_ASSERT(stdio_head_read(SLICE("POST /mcp HTTP/1.1\r\ncontent-length: 12\r\nMcp-Session-Id: "
                                    "abc\r\nConnection: close\r\n\r\n"),
                              true, &h) > 0);
    CU_ASSERT(h.has_length && h.length == 12 && h.close && !h.chunked);
    CU_ASSERT_STRING_EQUAL(h.session, "abc");
    CU_ASSERT_STRING_EQUAL(h.method, "POST");
    CU_ASSERT(stdio_head_read(SLICE("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; a=b\r\n"
                                    "Transfer-Encoding: chunked\r\n\r\n"),
                              false, &h) > 0);
    CU_ASSERT(h.status == 200 && h.events && h.chunked && !h.json);
    CU_ASSERT(
        stdio_head_read(SLICE("HTTP/1.1 200 OK\r\nContent-Type: application/json;x=y\r\n\r\n"),
                        false, &h) > 0);
    CU_ASSERT(h.json && !h.events);
    static const char *const bad[] = {
        "POST /mcp HTTP/1.0\r\n\r\n",
        "POST  /mcp HTTP/1.1\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nno field\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(stdio_head_read(slice_str(bad[i]), true, &h), -1);
}

static enum stdio_body_end take(const char *text, size_t piece, const char *want)
{
    struct stdio_head h = {.chunked = true};
    struct stdio_body b;
    struct buf in, out;
    enum stdio_body_end end = STDIO_BODY_MORE;
    buf_init(&in, 4096);
    buf_init(&out, 4096);
    stdio_body_begin(&b, &h, true);
    for (size_t n = strlen(text), at = 0; at < n && end == STDIO_BODY_MORE; at += piece) {
        CU_ASSERT(buf_append(&in, text + at, n - at < piece ? n - at : piece) == 0);
        end = stdio_body_take(&b, &in, &out);
    }
    CU_ASSERT(slice_eq_str(buf_slice(&out), want));
    buf_free(&in);
    buf_free(&out);
    return end;
}

static void test_bodies(void)
{
    for (size_t piece = 1; piece < 40; piece++) {
        CU_ASSERT_EQUAL(take("3\r\nabc\r\n0A\r\n0123456789\r\n0\r\n\r\n", piece, "abc0123456789"),
                        STDIO_BODY_WHOLE);
        CU_ASSERT_EQUAL(take("3\r\nabc\r\n", piece, "abc"), STDIO_BODY_MORE);
        CU_ASSERT_EQUAL(take("3\r\nabcx\r\n0\r\n\r\n", piece, "abc"), STDIO_BODY_BAD);
        CU_ASSERT_EQUAL(take("g\r\n", piece, ""), STDIO_BODY_BAD);
        CU_ASSERT_EQUAL(take("fffffffff\r\n", piece, ""), STDIO_BODY_BAD);
        CU_ASSERT_EQUAL(take("\r\n", piece, ""), STDIO_BODY_BAD);
    }
}

static void test_line(void)
{
    struct buf b;
    buf_init(&b, 16);
    CU_ASSERT_EQUAL(stdio_line(&b, SLICE("{\n\"a\":\r\n1}")), 0);
    CU_ASSERT(slice_eq_str(buf_slice(&b), "{ \"a\":  1}\n"));
    CU_ASSERT_EQUAL(stdio_line(&b, SLICE("123456")), -1);
    buf_free(&b);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("stdio_mcp", NULL, NULL);
    CU_add_test(s, "messages", test_messages);
    CU_add_test(s, "bounds", test_bounds);
    CU_add_test(s, "ids", test_ids);
    CU_add_test(s, "heads", test_heads);
    CU_add_test(s, "bodies", test_bodies);
    CU_add_test(s, "line", test_line);
}
