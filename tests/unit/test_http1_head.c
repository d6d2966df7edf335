/* HTTP/1 heads: each vector of groups A and B of the attack catalogue beside a harmless twin, with
 * the exact status and code that SPECIFICATION.md gives it. */
#include "http1_head.h"
#include "tap_main.h"
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_http1_head(void);

static const struct limits limits = {.head_bytes = 32768, .headers = 100, .target_bytes = 8192};

/* What a connection does with these bytes: look for the end of the head, then parse. The status is
 * 0 when the head is accepted and 1 when more is waited for. Every slice ends at a page's worth of
 * malloc'd memory, so that the sanitizer sees a read beyond it. */
static unsigned request(struct slice text, struct head *h, const char **code)
{
    struct refusal why = {0, "none"};
    size_t scanned = 0;
    char *exact = malloc(text.n ? text.n : 1);
    if (text.n)
        memcpy(exact, text.p, text.n);
    struct slice in = {exact, text.n};
    http_head_init(h);
    ssize_t n = http1_head_end(in, limits.head_bytes, &scanned);
    if (n == HTTP1_MORE)
        why.status = 1;
    else if (n < 0)
        why = http1_head_refusal(n, in, scanned);
    else if (http1_parse_request(h, (struct slice){exact, (size_t)n}, &limits, &why) == 0)
        why = (struct refusal){0, "ok"};
    free(exact);
    *code = why.code;
    return why.status;
}

struct vector {
    const char *name;
    struct slice text;
    unsigned status;
    const char *code;
};

#define H          "Host: ok.example\r\n"
#define GET(more)  "GET / HTTP/1.1\r\n" H more "\r\n"
#define POST(more) "POST / HTTP/1.1\r\n" H more "\r\n"
#define V(n, t, s, c)                  \
    {                                  \
        n, {"" t, sizeof(t) - 1}, s, c \
    }
#define OK(n, t) V(n, t, 0, "ok")

static void run(const struct vector *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct head h;
        const char *code;
        unsigned status = request(v[i].text, &h, &code);
        bool right = status == v[i].status && strcmp(code, v[i].code) == 0;
        if (!right)
            printf("# %s: %u %s, wanted %u %s\n", v[i].name, status, code, v[i].status, v[i].code);
        CU_ASSERT(right);
        if (status == 0)
            CU_ASSERT(http1_parser_agrees_request(&h, v[i].text));
        http_head_free(&h);
    }
}

static void test_length(void)
{
    static const struct vector v[] = {
        OK("one length", POST("Content-Length: 5\r\n")),
        OK("length zero", POST("Content-Length: 0\r\n")),
        OK("blanks around", POST("Content-Length:   5  \r\n")),
        V("tab after", POST("Content-Length: 5\t\r\n"), 400, "parsers_disagree"),
        OK("18 digits", POST("Content-Length: 999999999999999999\r\n")),
        V("two equal", POST("Content-Length: 5\r\nContent-Length: 5\r\n"), 400, "framing"),
        V("two different", POST("Content-Length: 5\r\nContent-Length: 6\r\n"), 400, "framing"),
        V("two by case", POST("Content-Length: 5\r\ncONTENT-lENGTH: 5\r\n"), 400, "framing"),
        V("list", POST("Content-Length: 5, 5\r\n"), 400, "framing"),
        V("plus", POST("Content-Length: +1\r\n"), 400, "framing"),
        V("minus", POST("Content-Length: -1\r\n"), 400, "framing"),
        V("hex", POST("Content-Length: 0x1\r\n"), 400, "framing"),
        V("empty", POST("Content-Length:\r\n"), 400, "framing"),
        V("blank", POST("Content-Length:  \t\r\n"), 400, "framing"),
        V("inner blank", POST("Content-Length: 1 1\r\n"), 400, "framing"),
        V("underscore", POST("Content-Length: 1_0\r\n"), 400, "framing"),
        V("fraction", POST("Content-Length: 1.0\r\n"), 400, "framing"),
        V("exponent", POST("Content-Length: 1e1\r\n"), 400, "framing"),
        V("19 digits", POST("Content-Length: 1000000000000000000\r\n"), 400, "framing"),
        V("leading zero", POST("Content-Length: 05\r\n"), 400, "framing"),
        V("zeros", POST("Content-Length: 00\r\n"), 400, "framing"),
        V("19 digits with zeros", POST("Content-Length: 0000000000000000005\r\n"), 400, "framing"),
        V("2^63", POST("Content-Length: 9223372036854775808\r\n"), 400, "framing"),
        V("2^64", POST("Content-Length: 18446744073709551616\r\n"), 400, "framing"),
        V("2^64 + 5", POST("Content-Length: 18446744073709551621\r\n"), 400, "framing"),
        V("high digits", POST("Content-Length: \xef\xbc\x95\r\n"), 400, "framing"),
        V("name's length wraps",
          POST("Content-Length0aaaaaaaaaaaaaaaaaaaaaaaaaaaa"
               "aaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"),
          400, "bad_header"),
    };
    run(v, ARRAY_LEN(v));
}

static void test_coding(void)
{
    static const struct vector v[] = {
        OK("chunked", POST("Transfer-Encoding: chunked\r\n")),
        OK("case", POST("TRANSFER-encoding: ChunKed\r\n")),
        V("both", POST("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 400, "framing"),
        V("both, turned", POST("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), 400,
          "framing"),
        V("both, length 0", POST("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"), 400,
          "framing"),
        V("twice", POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400,
          "framing"),
        V("CVE-2020-8287",
          POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked-false\r\n"), 400,
          "framing"),
        V("xchunked", POST("Transfer-Encoding: xchunked\r\n"), 501, "transfer_coding"),
        V("chunkedx", POST("Transfer-Encoding: chunkedx\r\n"), 501, "transfer_coding"),
        V("list", POST("Transfer-Encoding: chunked, identity\r\n"), 501, "transfer_coding"),
        V("gzip first", POST("Transfer-Encoding: gzip, chunked\r\n"), 501, "transfer_coding"),
        V("identity", POST("Transfer-Encoding: identity\r\n"), 501, "transfer_coding"),
        V("quoted", POST("Transfer-Encoding: \"chunked\"\r\n"), 501, "transfer_coding"),
        V("parameter", POST("Transfer-Encoding: chunked;x=y\r\n"), 501, "transfer_coding"),
        V("comma", POST("Transfer-Encoding: chunked,\r\n"), 501, "transfer_coding"),
        V("empty", POST("Transfer-Encoding:\r\n"), 501, "transfer_coding"),
        V("NBSP",
          POST("Transfer-Encoding:\xa0"
               "chunked\r\n"),
          501, "transfer_coding"),
        V("VT", POST("Transfer-Encoding:\vchunked\r\n"), 400, "bad_header"),
        V("FF", POST("Transfer-Encoding: chunked\f\r\n"), 400, "bad_header"),
        V("space before colon", POST("Transfer-Encoding : chunked\r\n"), 400, "bad_header"),
        V("tab before colon", POST("Transfer-Encoding\t: chunked\r\n"), 400, "bad_header"),
        V("underscore", POST("Transfer_Encoding: chunked\r\n"), 400, "bad_header"),
        V("folded", POST("Transfer-Encoding:\r\n chunked\r\n"), 400, "bad_header"),
        V("a name that http-parser takes for it", POST("Transfer-Encoding%: chunked\r\n"), 400,
          "parsers_disagree"),
        V("in 1.0", "POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n", 400, "framing"),
    };
    run(v, ARRAY_LEN(v));
}

static void test_fields(void)
{
    static const struct vector v[] = {
        OK("empty value", GET("X-A:\r\n")),
        OK("no blank", GET("X-A:b\r\n")),
        OK("tab inside", GET("X-A: b\tc\r\n")),
        OK("high bytes", GET("X-A: \xc3\xa9\xff\x80\r\n")),
        OK("all token bytes", GET("!#$%&'*+-.^_`|~09azAZ: b\r\n")),
        OK("an unknown name with underscore", GET("X_Sandbox_Note: b\r\n")),
        OK("colons in the value", GET("X-A: b: c:d\r\n")),
        V("obs-fold space", GET("X-A: b\r\n c\r\n"), 400, "bad_header"),
        V("obs-fold tab", GET("X-A: b\r\n\tc\r\n"), 400, "bad_header"),
        V("fold of nothing", GET("X-A:\r\n \r\n"), 400, "bad_header"),
        V("fold before any field", "GET / HTTP/1.1\r\n " H "\r\n", 400, "bad_header"),
        V("empty name", GET(": b\r\n"), 400, "bad_header"),
        V("only a colon", GET(":\r\n"), 400, "bad_header"),
        V("no colon", GET("X-A\r\n"), 400, "bad_header"),
        V("space in the name", GET("X A: b\r\n"), 400, "bad_header"),
        V("space before colon", GET("X-A : b\r\n"), 400, "bad_header"),
        V("a request line among fields", GET("GET / HTTP/1.1\r\n"), 400, "bad_header"),
        V("twin of content-length", GET("Content_Length: 5\r\n"), 400, "bad_header"),
        V("twin by one of two", GET("X-Forwarded_For: 1\r\n"), 400, "bad_header"),
        V("twin of x-api-key", GET("X_Api_Key: 1\r\n"), 400, "bad_header"),
        V("twin of private-token", GET("PRIVATE_TOKEN: 1\r\n"), 400, "bad_header"),
        V("twin of x-auth-token", GET("x_auth_token: 1\r\n"), 400, "bad_header"),
        V("twin of x-amz-security-token", GET("x-amz_security-token: 1\r\n"), 400, "bad_header"),
        V("twin of api-key", GET("Api_Key: 1\r\n"), 400, "bad_header"),
        V("twin of proxy-authorization", GET("Proxy_Authorization: 1\r\n"), 400, "bad_header"),
        V("twin of x-http-method-override", GET("X_HTTP_Method_Override: DELETE\r\n"), 400,
          "bad_header"),
        V("twin of x-original-url", GET("X_Original_URL: /admin\r\n"), 400, "bad_header"),
    };
    run(v, ARRAY_LEN(v));
}

static void test_request_line(void)
{
    static const struct vector v[] = {
        OK("1.1", GET("")),
        OK("1.0", "GET / HTTP/1.0\r\n" H "\r\n"),
        OK("1.0 without Host", "GET / HTTP/1.0\r\n\r\n"),
        V("0.9 simple", "GET /\r\n\r\n", 400, "bad_request_line"),
        V("0.9 by name", "GET / HTTP/0.9\r\n" H "\r\n", 400, "bad_version"),
        V("1.2", "GET / HTTP/1.2\r\n" H "\r\n", 505, "version"),
        V("1.9", "GET / HTTP/1.9\r\n" H "\r\n", 505, "version"),
        V("1.10", "GET / HTTP/1.10\r\n" H "\r\n", 400, "bad_version"),
        V("01.1", "GET / HTTP/01.1\r\n" H "\r\n", 400, "bad_version"),
        V("1.01", "GET / HTTP/1.01\r\n" H "\r\n", 400, "bad_version"),
        V("2.0", "GET / HTTP/2.0\r\n" H "\r\n", 505, "version"),
        V("9.9", "GET / HTTP/9.9\r\n" H "\r\n", 505, "version"),
        V("x.1", "GET / HTTP/x.1\r\n" H "\r\n", 400, "bad_version"),
        V("1.x", "GET / HTTP/1.x\r\n" H "\r\n", 400, "bad_version"),
        V("1,1", "GET / HTTP/1,1\r\n" H "\r\n", 400, "bad_version"),
        V("lower case", "GET / http/1.1\r\n" H "\r\n", 400, "bad_version"),
        V("trailing blank", "GET / HTTP/1.1 \r\n" H "\r\n", 400, "bad_version"),
        V("trailing word", "GET /admin HTTP/1.1 /static\r\n" H "\r\n", 400, "bad_version"),
        V("another protocol", "GET / RTSP/1.0\r\n" H "\r\n", 400, "bad_version"),
        V("h2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "h2c"),
        V("h2 preface as 1.1", "PRI * HTTP/1.1\r\n" H "\r\n", 400, "bad_target"),
        V("two blanks", "GET  / HTTP/1.1\r\n" H "\r\n", 400, "bad_request_line"),
        V("two blanks before the version", "GET /  HTTP/1.1\r\n" H "\r\n", 400, "bad_version"),
        V("leading blank", " GET / HTTP/1.1\r\n" H "\r\n", 400, "bad_request_line"),
        V("tabs", "GET\t/\tHTTP/1.1\r\n" H "\r\n", 400, "bad_request_line"),
        V("no target", "GET HTTP/1.1\r\n" H "\r\n", 400, "bad_request_line"),
        V("lower-case method", "get / HTTP/1.1\r\n" H "\r\n", 405, "method"),
        V("unknown method", "FOO / HTTP/1.1\r\n" H "\r\n", 405, "method"),
        V("a method's prefix", "GE / HTTP/1.1\r\n" H "\r\n", 405, "method"),
        V("a method that goes on", "GETX / HTTP/1.1\r\n" H "\r\n", 405, "method"),
        V("method with comma", "GET,POST / HTTP/1.1\r\n" H "\r\n", 400, "bad_request_line"),
        V("empty method", " / HTTP/1.1\r\n" H "\r\n", 400, "bad_request_line"),
    };
    run(v, ARRAY_LEN(v));
}

static void test_target(void)
{
    static const struct vector v[] = {
        OK("absolute", "GET http://ok.example/x?y HTTP/1.1\r\n" H "\r\n"),
        OK("absolute with port", "GET http://ok.example:8080/ HTTP/1.1\r\n" H "\r\n"),
        OK("absolute without a path", "GET http://ok.example HTTP/1.1\r\n" H "\r\n"),
        OK("with a query alone", "GET http://ok.example?y HTTP/1.1\r\n" H "\r\n"),
        V("OPTIONS without a path", "OPTIONS http://ok.example HTTP/1.1\r\n" H "\r\n", 400,
          "bad_target"),
        OK("CONNECT", "CONNECT ok.example:443 HTTP/1.1\r\n" H "\r\n"),
        OK("OPTIONS *", "OPTIONS * HTTP/1.1\r\n" H "\r\n"),
        OK("query", "GET /a?b=c&d=%20e? HTTP/1.1\r\n" H "\r\n"),
        V("asterisk", "GET * HTTP/1.1\r\n" H "\r\n", 400, "bad_target"),
        V("userinfo", "GET http://ok.example@evil/ HTTP/1.1\r\n" H "\r\n", 400, "bad_target"),
        V("user and password", "GET http://a:b@evil/ HTTP/1.1\r\n" H "\r\n", 400, "bad_target"),
        OK("absolute, https", "GET https://ok.example/ HTTP/1.1\r\n" H "\r\n"),
        V("absolute, httpss", "GET httpss://ok.example/ HTTP/1.1\r\n" H "\r\n", 400, "bad_target"),
        V("ftp", "GET ftp://ok.example/ HTTP/1.1\r\n" H "\r\n", 400, "bad_target"),
        V("no authority", "GET http:/// HTTP/1.1\r\n" H "\r\n", 400, "bad_target"),
        V("authority form", "GET ok.example:443 HTTP/1.1\r\n" H "\r\n", 400, "bad_target"),
        V("relative", "GET x/y HTTP/1.1\r\n" H "\r\n", 400, "bad_target"),
        V("fragment", "GET /x.png# HTTP/1.1\r\n" H "\r\n", 400, "bad_target"),
        V("fragment in the query", "GET /?a#b HTTP/1.1\r\n" H "\r\n", 400, "bad_target"),
        V("backslash", "GET /a\\b HTTP/1.1\r\n" H "\r\n", 400, "bad_target"),
        V("high byte", "GET /\xff HTTP/1.1\r\n" H "\r\n", 400, "bad_target"),
        V("query that tells a version", "GET /admin? HTTP/1.1 /static HTTP/1.1\r\n" H "\r\n", 400,
          "bad_version"),
    };
    run(v, ARRAY_LEN(v));
}

/* A path that is not there is "/". */
static void test_no_path(void)
{
    static const struct {
        const char *target, *query;
        bool has_query;
    } v[] = {{"http://ok.example", "", false},
             {"http://ok.example?", "", true},
             {"http://ok.example?a=/b", "a=/b", true}};
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        char text[128];
        struct head h;
        const char *code;
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\n" H "\r\n", v[i].target);
        CU_ASSERT_EQUAL(request(slice_str(text), &h, &code), 0);
        CU_ASSERT(slice_eq_str(h.path, "/") && slice_eq_str(h.query, v[i].query));
        CU_ASSERT_EQUAL(h.has_query, v[i].has_query);
        CU_ASSERT(slice_eq_str(h.target_authority, "ok.example"));
        http_head_free(&h);
    }
}

static void test_host(void)
{
    static const struct vector v[] = {
        OK("port", "GET / HTTP/1.1\r\nHost: ok.example:443\r\n\r\n"),
        OK("IPv6", "GET / HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n\r\n"),
        V("none", "GET / HTTP/1.1\r\n\r\n", 400, "host"),
        OK("none beside CONNECT's target", "CONNECT ok.example:443 HTTP/1.1\r\n\r\n"),
        V("two beside it", "CONNECT ok.example:443 HTTP/1.1\r\n" H H "\r\n", 400, "host"),
        V("none beside an absolute target", "GET http://ok.example/ HTTP/1.1\r\n\r\n", 400, "host"),
        V("two", GET("Host: ok.example\r\n"), 400, "host"),
        V("two by case", GET("hOST: evil.example\r\n"), 400, "host"),
        V("two in 1.0", "GET / HTTP/1.0\r\n" H H "\r\n", 400, "host"),
        V("path", "GET / HTTP/1.1\r\nHost: ok.example/x\r\n\r\n", 400, "host"),
        V("query", "GET / HTTP/1.1\r\nHost: ok.example?x\r\n\r\n", 400, "host"),
        V("user", "GET / HTTP/1.1\r\nHost: ok.example@evil\r\n\r\n", 400, "host"),
        V("list", "GET / HTTP/1.1\r\nHost: ok.example, evil\r\n\r\n", 400, "host"),
        V("blank inside", "GET / HTTP/1.1\r\nHost: ok.example evil\r\n\r\n", 400, "host"),
        V("backslash", "GET / HTTP/1.1\r\nHost: evil\\.ok.example\r\n\r\n", 400, "host"),
        V("percent", "GET / HTTP/1.1\r\nHost: evil%2eexample\r\n\r\n", 400, "host"),
        V("high byte",
          "GET / HTTP/1.1\r\nHost: ok\xe3\x80\x82"
          "example\r\n\r\n",
          400, "host"),
        V("underscored Host is not Host", "GET / HTTP/1.1\r\nHost_: ok\r\n\r\n", 400, "host"),
    };
    run(v, ARRAY_LEN(v));
}

static void test_upgrade_expect(void)
{
    static const struct vector v[] = {
        OK("close", GET("Connection: close\r\n")),
        OK("keep-alive", GET("Connection: keep-alive, x-mine\r\n")),
        OK("100-continue", POST("Content-Length: 1\r\nExpect: 100-Continue\r\n")),
        OK("connection: authorization", GET("Connection: authorization\r\nAuthorization: x\r\n")),
        OK("h2c", GET("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                      "HTTP2-Settings: AAMAAABkAAQAAP__\r\n")),
        V("websocket", GET("Connection: upgrade\r\nUpgrade: websocket\r\n"), 400, "upgrade"),
        V("Upgrade alone", GET("Upgrade: x\r\n"), 501, "upgrade"),
        OK("offers", GET("Connection: upgrade\r\nUpgrade: h2c, tls/1.3\r\n")),
        V("an offer and something else", GET("Upgrade: h2c, x\r\n"), 501, "upgrade"),
        OK("Connection: upgrade alone", GET("Connection: upgrade\r\n")),
        OK("in a list", GET("Connection: close ,\tUPGRADE ,\r\n")),
        OK("with a key alone", GET("Connection: upgrade\r\nSec-WebSocket-Version: 13\r\n"
                                   "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n")),
        V("other expectation", POST("Content-Length: 1\r\nExpect: x\r\n"), 417, "expect"),
        V("empty expectation", POST("Content-Length: 1\r\nExpect:\r\n"), 417, "expect"),
        V("two expectations",
          POST("Content-Length: 1\r\nExpect: 100-continue\r\nExpect: 100-continue\r\n"), 417,
          "expect"),
        V("a list", POST("Content-Length: 1\r\nExpect: 100-continue, x\r\n"), 417, "expect"),
    };
    run(v, ARRAY_LEN(v));
}

/* B8: even one line ending before the request line. B7: what is wrong in the first line, and later.
 */
static void test_leading(void)
{
    static const struct vector v[] = {
        V("CRLF", "\r\n" GET(""), 400, "bad_request_line"),
        V("two", "\r\n\r\n" GET(""), 400, "bad_request_line"),
        V("LF", "\n" GET(""), 400, "bad_request_line"),
        V("CR", "\r" GET(""), 400, "bad_request_line"),
        V("NUL", "\0" GET(""), 400, "bad_request_line"),
        V("LF line", "GET / HTTP/1.1\n" H "\r\n", 400, "bad_request_line"),
        V("CR in the line", "GET /\r HTTP/1.1\r\n" H "\r\n", 400, "bad_request_line"),
        V("CR for a line end", "GET / HTTP/1.1\r" H "\r\n\r\n", 400, "bad_request_line"),
        V("NUL in the line", "GET /\0 HTTP/1.1\r\n" H "\r\n", 400, "bad_request_line"),
        V("LF field", GET("X-A: b\nX-B: c\r\n"), 400, "bad_header"),
        V("LF at the end", "GET / HTTP/1.1\r\n" H "\n", 400, "bad_header"),
        V("CR CR LF", GET("X-A: b\r\r\n"), 400, "bad_header"),
        V("CR LF CR X", GET("\rX-A: b\r\n"), 400, "bad_header"),
        V("NUL value", GET("X-A: b\0c\r\n"), 400, "bad_header"),
        V("unfinished", "GET / HTTP/1.1\r\n" H, 1, "none"),
        V("unfinished end", "GET / HTTP/1.1\r\n" H "\r", 1, "none"),
        V("nothing", "", 1, "none"),
    };
    run(v, ARRAY_LEN(v));
}

/* Four endings at each of three places: only CRLF everywhere is a head. */
static void test_line_endings(void)
{
    static const char *const ends[] = {"\r\n", "\n", "\r", "\n\r"};
    unsigned accepted = 0;
    for (unsigned i = 0; i < 64; i++) {
        char text[128];
        struct head h;
        const char *code;
        snprintf(text, sizeof text, "GET / HTTP/1.1%sHost: ok.example%s%s", ends[i & 3],
                 ends[i >> 2 & 3], ends[i >> 4]);
        unsigned status = request(slice_str(text), &h, &code);
        if (status == 0)
            accepted++;
        else
            CU_ASSERT(status == 400 || status == 1);
        CU_ASSERT_EQUAL(status == 0, i == 0);
        http_head_free(&h);
    }
    CU_ASSERT_EQUAL(accepted, 1);
}

/* Every byte at the start, in the middle and at the end of method, target, name and value. */
static void each_byte(const char *before, const char *word, const char *after, const char *allowed,
                      bool high, unsigned (*judge)(unsigned char c))
{
    size_t n = strlen(word);
    for (unsigned c = 0; c < 256; c++)
        for (size_t at = 0; at <= n; at += n / 2) {
            char text[256];
            struct head h;
            const char *code;
            size_t k = (size_t)snprintf(text, sizeof text, "%s%.*s", before, (int)at, word);
            text[k++] = (char)c;
            k += (size_t)snprintf(text + k, sizeof text - k, "%s%s", word + at, after);
            unsigned status = request((struct slice){text, k}, &h, &code);
            bool pass = (c && strchr(allowed, (int)c) && c < 0x80) || (high && c >= 0x80) ||
                        ascii_is_alnum((char)c);
            unsigned want = judge ? judge((unsigned char)c) : pass ? 0 : 400;
            if (status != want)
                printf("# byte %02x at %zu of %s: %u %s\n", c, at, word, status, code);
            CU_ASSERT_EQUAL(status, want);
            http_head_free(&h);
        }
}

static unsigned judge_method(unsigned char c)
{
    if (c == 0 || !strchr("!#$%&'*+-.^_`|~", c))
        return ascii_is_alnum((char)c) ? 405 : 400;
    return 405;
}

static unsigned judge_value(unsigned char c)
{
    return c == '\t' || (c >= 0x20 && c != 0x7f) ? 0 : 400;
}

static void test_bytes(void)
{
    each_byte("", "SEARCH", " / HTTP/1.1\r\n" H "\r\n", "", false, judge_method);
    each_byte("GET /", "ab", " HTTP/1.1\r\n" H "\r\n", "!\"$%&'()*+,-./:;<=>?@[]^_`{|}~", false,
              NULL);
    each_byte("GET /?", "ab", " HTTP/1.1\r\n" H "\r\n", "!\"$%&'()*+,-./:;<=>?@[\\]^_`{|}~", false,
              NULL);
    each_byte("GET http://ok", ".e", "/ HTTP/1.1\r\n" H "\r\n", "!$%&'()*+,-./:;=?[]_~", false,
              NULL);
    each_byte("GET / HTTP/1.1\r\n" H "X", "-y", ": z\r\n\r\n", "!#$%&'*+-.^_`|~:", false, NULL);
    each_byte("GET / HTTP/1.1\r\n" H "X-A: b", "cd", "e\r\n\r\n", "", true, judge_value);
}

static void test_sizes(void)
{
    struct buf b;
    struct head h;
    const char *code;
    for (unsigned fields = 98; fields <= 101; fields++) {
        buf_init(&b, 65536);
        CU_ASSERT_EQUAL(buf_append_str(&b, "GET / HTTP/1.1\r\n" H), 0);
        for (unsigned i = 1; i < fields; i++)
            CU_ASSERT_EQUAL(buf_printf(&b, "x-%u: 1\r\n", i), 0);
        CU_ASSERT_EQUAL(buf_append_str(&b, "\r\n"), 0);
        CU_ASSERT_EQUAL(request(buf_slice(&b), &h, &code), fields > 100 ? 431 : 0);
        http_head_free(&h);
        buf_free(&b);
    }
    for (unsigned total = 32767; total <= 32769; total++) {
        buf_init(&b, 65536);
        size_t fixed = strlen(GET("x: \r\n"));
        CU_ASSERT_EQUAL(
            buf_printf(&b, "GET / HTTP/1.1\r\n" H "x: %0*u\r\n\r\n", (int)(total - fixed), 7u), 0);
        CU_ASSERT_EQUAL_FATAL(buf_len(&b), total);
        CU_ASSERT_EQUAL(request(buf_slice(&b), &h, &code), total > 32768 ? 431 : 0);
        if (total > 32768)
            CU_ASSERT_STRING_EQUAL(code, "too_many_headers");
        http_head_free(&h);
        buf_free(&b);
    }
    for (unsigned target = 8191; target <= 8193; target++) {
        buf_init(&b, 65536);
        CU_ASSERT_EQUAL(buf_printf(&b, "GET /%0*u HTTP/1.1\r\n" H "\r\n", (int)target - 1, 7u), 0);
        CU_ASSERT_EQUAL(request(buf_slice(&b), &h, &code), target > 8192 ? 414 : 0);
        http_head_free(&h);
        buf_free(&b);
    }
}

/* What is carried as it came, what is percent-encoded, and that the target itself stays. */
static void test_spelling(void)
{
    static const struct {
        const char *target, *path, *query;
    } v[] = {
        {"/a|b/{id}/^`?x={y}|z^`\\", "/a|b/{id}/^`", "x={y}|z^`\\"},
        {"/\"a\"/<b>?q=\"c\"<d>", "/%22a%22/%3Cb%3E", "q=%22c%22%3Cd%3E"},
        {"/\xc3\xa9?\xf0\x9f\x99\x82", "/%C3%A9", "%F0%9F%99%82"},
        {"/%c3%a9?%zz%", "/%c3%a9", "%zz%"},
        {"http://ok.example/\"?\"", "/%22", "%22"},
    };
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        char text[256];
        struct head h;
        const char *code;
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\n" H "\r\n", v[i].target);
        CU_ASSERT_EQUAL(request(slice_str(text), &h, &code), 0);
        CU_ASSERT(slice_eq_str(h.path, v[i].path) && slice_eq_str(h.query, v[i].query));
        CU_ASSERT(slice_eq_str(h.target, v[i].target));
        CU_ASSERT_EQUAL(h.respelled, i != 0 && i != 3);
        http_head_free(&h);
    }
    static const char *const bad[] = {
        "/\xff",      "/?\xff", "/\xc0\xaf", "/\xed\xa0\x80",       "/\xf4\x90\x80\x80",
        "/?\xe2\x82", "/\\",    "/a\\?b",    "http://ok.e\xc3\xa9/"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char text[256];
        struct head h;
        const char *code;
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\n" H "\r\n", bad[i]);
        CU_ASSERT_EQUAL(request(slice_str(text), &h, &code), 400);
        CU_ASSERT_STRING_EQUAL(code, "bad_target");
        http_head_free(&h);
    }
}

/* The bound holds for what is sent, not only for what came. */
static void test_spelling_size(void)
{
    for (unsigned quotes = 2729; quotes <= 2732; quotes++) {
        struct buf b;
        struct head h;
        const char *code;
        buf_init(&b, 65536);
        CU_ASSERT_EQUAL(buf_append_str(&b, "GET /?"), 0);
        for (unsigned i = 0; i < quotes; i++)
            CU_ASSERT_EQUAL(buf_append_str(&b, "\""), 0);
        CU_ASSERT_EQUAL(buf_append_str(&b, " HTTP/1.1\r\n" H "\r\n"), 0);
        CU_ASSERT_EQUAL(request(buf_slice(&b), &h, &code), 1 + 3 * quotes > 8192 ? 414 : 0);
        http_head_free(&h);
        buf_free(&b);
    }
}

static void test_signed(void)
{
    static const struct {
        const char *query, *fields;
        bool is;
    } v[] = {
        {"a", "", false},
        {"a", "Authorization: Bearer x y\r\n", false},
        {"a", "Authorization: BASIC eDp5\r\n", false},
        {"a", "Authorization: opaque\r\n", false},
        {"a", "Authorization: AWS4-HMAC-SHA256 Credential=x, Signature=0\r\n", true},
        {"a", "Authorization: AWS AKID:sig\r\n", true},
        {"a", "Authorization: Digest uri=\"/\"\r\n", true},
        {"a", "Authorization: SharedKey a:b\r\n", true},
        {"a", "Signature-Input: a=()\r\n", true},
        {"a", "X-Hmac-Sha256: 0\r\n", true},
        {"a", "DPoP: x\r\n", true},
        {"x-amz-signature=0", "", true},
        {"a=1&X-Goog-Signature=0&b", "", true},
        {"sig", "", true},
        {"design=1&sigma=2&assignment=3", "", false},
        {"a=signature", "", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        char text[512];
        struct head h;
        const char *code;
        snprintf(text, sizeof text, "GET /?%s HTTP/1.1\r\n" H "%s\r\n", v[i].query, v[i].fields);
        CU_ASSERT_EQUAL(request(slice_str(text), &h, &code), 0);
        CU_ASSERT_EQUAL(target_is_signed(&h, NULL), v[i].is);
        http_head_free(&h);
    }
}

/* The end is found at the same place however the bytes arrive. */
static void test_pieces(void)
{
    static const char text[] = GET("X-A: b\r\n") "GET /next HTTP/1.1\r\n";
    struct slice all = SLICE(GET("X-A: b\r\n"));
    size_t scanned = 0;
    for (size_t n = 0; n < all.n; n++)
        CU_ASSERT_EQUAL(http1_head_end((struct slice){text, n}, 32768, &scanned), HTTP1_MORE);
    CU_ASSERT_EQUAL(http1_head_end((struct slice){text, sizeof text - 1}, 32768, &scanned),
                    (ssize_t)all.n);
    scanned = 0;
    CU_ASSERT_EQUAL(http1_head_end((struct slice){text, sizeof text - 1}, all.n, &scanned),
                    (ssize_t)all.n);
    scanned = 0;
    CU_ASSERT_EQUAL(http1_head_end((struct slice){text, sizeof text - 1}, all.n - 1, &scanned),
                    HTTP1_LARGE);
}

static void test_parts(void)
{
    struct head h;
    const char *code;
    CU_ASSERT_EQUAL(request(SLICE("PUT /a/b?c=d HTTP/1.1\r\nHOST: ok.example\r\nX-A:  b \r\n"
                                  "content-length: 12\r\nExpect: 100-continue\r\n\r\n"),
                            &h, &code),
                    0);
    CU_ASSERT(slice_eq(h.method, SLICE("PUT")) && slice_eq(h.path, SLICE("/a/b")));
    CU_ASSERT(h.has_query && slice_eq(h.query, SLICE("c=d")));
    CU_ASSERT(h.form == TARGET_ORIGIN && h.minor == 1 && h.keep_alive && h.expect_continue);
    CU_ASSERT(h.body == BODY_LENGTH && h.length == 12 && h.n == 4);
    CU_ASSERT(slice_eq(http_head_find(&h, "host")->value, SLICE("ok.example")));
    CU_ASSERT(slice_eq(http_head_find(&h, "x-a")->value, SLICE("b")));
    http_head_free(&h);
    CU_ASSERT_EQUAL(request(SLICE("GET http://A.example:81/p? HTTP/1.0\r\n\r\n"), &h, &code), 0);
    CU_ASSERT(h.form == TARGET_ABSOLUTE && h.minor == 0 && !h.keep_alive);
    CU_ASSERT(slice_eq(h.target_authority, SLICE("A.example:81")) && h.has_query && h.query.n == 0);
    http_head_free(&h);
    CU_ASSERT_EQUAL(request(SLICE(GET("Connection: foo, CLOSE\r\n")), &h, &code), 0);
    CU_ASSERT(!h.keep_alive);
    http_head_free(&h);
}

void suite_http1_head(void)
{
    CU_pSuite s = CU_add_suite("http1_head", NULL, NULL);
    CU_add_test(s, "Content-Length (B4, B5)", test_length);
    CU_add_test(s, "Transfer-Encoding (B1, B2)", test_coding);
    CU_add_test(s, "fields (B6, B9)", test_fields);
    CU_add_test(s, "request lines (B17, B23, A24)", test_request_line);
    CU_add_test(s, "targets (A3, A11, A23)", test_target);
    CU_add_test(s, "Host (B24)", test_host);
    CU_add_test(s, "no path in an absolute target (A3)", test_no_path);
    CU_add_test(s, "Upgrade, Connection, Expect (B17, B20, B27)", test_upgrade_expect);
    CU_add_test(s, "what comes first (B7, B8)", test_leading);
    CU_add_test(s, "all line endings (B7)", test_line_endings);
    CU_add_test(s, "all bytes (A23, A24, B10)", test_bytes);
    CU_add_test(s, "sizes (B22)", test_sizes);
    CU_add_test(s, "targets: carried, encoded, refused (A21, A23)", test_spelling);
    CU_add_test(s, "targets: the size of what is sent (B22)", test_spelling_size);
    CU_add_test(s, "targets: what a signature covers", test_signed);
    CU_add_test(s, "in pieces", test_pieces);
    CU_add_test(s, "what is read", test_parts);
}

void tap_suites(void)
{
    suite_http1_head();
}
