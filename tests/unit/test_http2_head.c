/* A field block of HTTP/2 becomes a head or a refusal by the rules of HTTP/1, and by those that
 * only HTTP/2 has (RFC 9113 8.2, 8.3; attack B28). */
#include "http2_head.h"
#include "tap_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_http2_head(void);

static const struct limits limits = {.head_bytes = 32768, .headers = 100, .target_bytes = 8192};

/* Fields as one text: "name=value" separated by "|"; "\n" etc. stand for themselves. */
static int read_block(struct http2_head *b, const char *text, bool trailers)
{
    int r = 0;
    http2_head_begin(b, trailers);
    struct slice rest = slice_str(text);
    while (rest.n > 0) {
        ssize_t bar = slice_find(rest, '|');
        struct slice one = {rest.p, bar < 0 ? rest.n : (size_t)bar};
        ssize_t eq = slice_find(one, '=');
        r |= http2_head_field(b, (struct slice){one.p, (size_t)eq},
                              (struct slice){one.p + eq + 1, one.n - (size_t)eq - 1});
        rest.p += one.n + (bar >= 0);
        rest.n -= one.n + (bar >= 0);
    }
    return r;
}

#define GET ":method=GET|:scheme=https|:authority=a.example|:path=/p?q=1"

static void refused(const char *text, bool end, unsigned status, const char *code)
{
    struct http2_head b;
    struct head h;
    struct refusal why = {0, "none"};
    http2_head_init(&b, &limits);
    CU_ASSERT_EQUAL(read_block(&b, text, false), 0);
    int r = http2_head_finish(&b, end, &h, &why);
    if (r == 0 || why.status != status || strcmp(why.code, code) != 0)
        printf("# %s: %u %s\n", text, why.status, why.code);
    CU_ASSERT(r < 0 && why.status == status && strcmp(why.code, code) == 0);
    http_head_free(&h);
    http2_head_free(&b);
}

static void test_pseudo(void)
{
    static const char *const bad[] = {
        ":scheme=https|:authority=a|:path=/",
        ":method=GET|:authority=a|:path=/",
        ":method=GET|:scheme=https|:authority=a",
        GET "|:method=GET",
        GET "|:path=/other",
        GET "|:authority=b",
        GET "|:unknown=x",
        GET "|:status=200",
        GET "|x=y|:unknown=x",
        ":method=GET|x=y|:scheme=https|:authority=a|:path=/",
        GET "|:protocol=websocket",
        ":method=CONNECT|:authority=a|:path=/",
        ":method=CONNECT|:authority=a|:scheme=https",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        refused(bad[i], true, 400, "pseudo_header");
    refused(":method=GET|:scheme=http|:authority=a|:path=/", true, 400, "scheme");
    refused(":method=GET|:scheme=HTTPS|:authority=a|:path=/", true, 400, "scheme");
    refused(":method=GET|:scheme=https|:path=/", true, 400, "host");
    refused(":method=GET|:scheme=https|:authority=|:path=/", true, 400, "host");
    refused(":method=GET|:scheme=https|:authority=a\r\nx: y|:path=/", true, 400, "host");
    refused(":method=GET|:scheme=https|:authority=u@a|:path=/", true, 400, "host");
    refused(GET "|host=b.example", true, 400, "authority_mismatch");
    refused(GET "|host=a.example|host=a.example", true, 400, "host");
}

/* What the connection is, and nothing else; either, where somebody else ends its TLS. */
static void test_schemes(void)
{
    static const char *const said[] = {"https", "http", "HTTP", "", "httpx", "htt"};
    static const enum http2_schemes may[] = {HTTP2_IN_TLS, HTTP2_IN_CLEAR, HTTP2_EITHER};
    char text[128];
    for (size_t m = 0; m < ARRAY_LEN(may); m++)
        for (size_t i = 0; i < ARRAY_LEN(said); i++) {
            struct http2_head b;
            struct head h;
            struct refusal why = {0, "none"};
            http2_head_init(&b, &limits);
            b.schemes = may[m];
            snprintf(text, sizeof text, ":method=GET|:scheme=%s|:authority=a|:path=/", said[i]);
            CU_ASSERT_EQUAL(read_block(&b, text, false), 0);
            bool want = (i == 0 && may[m] != HTTP2_IN_CLEAR) || (i == 1 && may[m] != HTTP2_IN_TLS);
            bool got = http2_head_finish(&b, true, &h, &why) == 0;
            CU_ASSERT(got == want && (got || strcmp(why.code, "scheme") == 0));
            http_head_free(&h);
            http2_head_free(&b);
        }
}

#define SOCKET ":method=CONNECT|:scheme=https|:authority=a.example|:path=/s?q=1|:protocol="

/* RFC 8441: an extended CONNECT is read as a GET that asks for a WebSocket. */
static void test_connect(void)
{
    struct http2_head b;
    struct head h;
    struct refusal why;
    http2_head_init(&b, &limits);
    CU_ASSERT_EQUAL(read_block(&b, SOCKET "websocket|sec-websocket-version=13", false), 0);
    CU_ASSERT_EQUAL(http2_head_finish(&b, false, &h, &why), 0);
    CU_ASSERT(slice_eq_str(h.method, "GET") && slice_eq_str(h.path, "/s"));
    CU_ASSERT(h.upgrade == UPGRADE_WEBSOCKET && h.body == BODY_TUNNEL);
    http_head_free(&h);
    http2_head_free(&b);
    refused(SOCKET "websocket|sec-websocket-version=13", true, 400, "upgrade");
    refused(SOCKET "websocket", false, 400, "upgrade");
    refused(SOCKET "websocket|sec-websocket-version=8", false, 400, "upgrade");
    refused(SOCKET "websocket|sec-websocket-version=13|sec-websocket-version=13", false, 400,
            "upgrade");
    refused(SOCKET "websocket|sec-websocket-version=13|content-length=0", false, 400, "upgrade");
    refused(SOCKET "websocket|sec-websocket-version=13|sec-websocket-key=x", false, 400, "upgrade");
    refused(SOCKET "WebSocket|sec-websocket-version=13", false, 501, "upgrade");
    refused(SOCKET "connect-udp|sec-websocket-version=13", false, 501, "upgrade");
    refused(SOCKET "|sec-websocket-version=13", false, 501, "upgrade");
}

static void test_line(void)
{
    static const char *const targets[] = {"",      "x",       "http://a/", "/a b", "/a\tb",
                                          "/a\rb", "/a\r\nb", "/a\x80",    "/a#b", "/a HTTP/1.1"};
    char text[256];
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        snprintf(text, sizeof text, ":method=GET|:scheme=https|:authority=a|:path=%s", targets[i]);
        refused(text, true, 400, "bad_target");
    }
    refused(":method=GET|:scheme=https|:authority=a|:path=*", true, 400, "bad_target");
    refused(":method=G T|:scheme=https|:authority=a|:path=/", true, 400, "bad_request_line");
    refused(":method=|:scheme=https|:authority=a|:path=/", true, 400, "bad_request_line");
    refused(":method=get|:scheme=https|:authority=a|:path=/", true, 405, "method");
}

static void test_fields(void)
{
    static const char *const bad[] = {
        "X=y",
        "a b=c",
        "=x",
        "x=a\rb",
        "x=a\nb",
        "x=a\r\nb: c",
        "x=\x01",
        "connection=x",
        "keep-alive=x",
        "upgrade=h2c",
        "te=gzip",
        "te=x,trailers",
        "proxy-connection=x",
        "transfer-encoding=chunked",
        "content_length=5",
        "http2-settings=x",
        "x\r\n=y",
        "x:=y",
    };
    char text[512];
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        snprintf(text, sizeof text, GET "|%s", bad[i]);
        refused(text, true, 400, "bad_header");
    }
    refused(GET "|expect=200-ok", true, 417, "expect");
    refused(GET "|content-length=1|content-length=1", false, 400, "framing");
    refused(GET "|content-length=+1", false, 400, "framing");
    refused(GET "|content-length=5", true, 400, "framing"); /* and no body */
}

static void accepted(const char *text, bool end, struct head *h);

/* Blanks around a value say nothing, as in HTTP/1 (which value it is, no two may read differently).
 */
static void test_blanks(void)
{
    struct head h;
    accepted(GET "|x= a\tb \t|y=\t|te= trailers |host= a.example|content-length= 0 ", true, &h);
    CU_ASSERT(slice_eq(http_head_find(&h, "x")->value, SLICE("a\tb")));
    CU_ASSERT(slice_eq(http_head_find(&h, "y")->value, SLICE("")));
    CU_ASSERT(slice_eq(http_head_find(&h, "te")->value, SLICE("trailers")));
    CU_ASSERT_EQUAL(h.body, BODY_NONE);
    http_head_free(&h);
    refused(GET "|content-length= 5", true, 400, "framing");
    refused(GET "|content-length=5 5", false, 400, "framing");
    refused(GET "|te= gzip", true, 400, "bad_header");
    refused(GET "|host= b.example", true, 400, "authority_mismatch");
    refused(GET "|x =a", true, 400, "bad_header");
    refused(GET "| x=a", true, 400, "bad_header");
}

static void test_sizes(void)
{
    struct http2_head b;
    struct head h;
    struct refusal why;
    char *big = malloc(40000);
    CU_ASSERT_PTR_NOT_NULL_FATAL(big);
    memset(big, 'a', 40000);
    http2_head_init(&b, &limits);
    CU_ASSERT_EQUAL(read_block(&b, ":method=GET|:scheme=https|:authority=a", false), 0);
    big[0] = '/';
    CU_ASSERT_EQUAL(http2_head_field(&b, SLICE(":path"), (struct slice){big, 9000}), 0);
    CU_ASSERT(http2_head_finish(&b, true, &h, &why) < 0 && why.status == 414);
    http_head_free(&h);
    read_block(&b, GET, false);
    CU_ASSERT_EQUAL(http2_head_field(&b, SLICE("x"), (struct slice){big, 33000}), 0);
    CU_ASSERT(http2_head_finish(&b, true, &h, &why) < 0 && why.status == 431);
    CU_ASSERT(slice_eq(h.path, SLICE("/p"))); /* for the record */
    http_head_free(&h);
    read_block(&b, GET, false);
    for (int i = 0; i < 101; i++)
        CU_ASSERT_EQUAL(http2_head_field(&b, SLICE("x"), SLICE("y")), 0);
    CU_ASSERT(http2_head_finish(&b, true, &h, &why) < 0 && why.status == 431);
    http_head_free(&h);
    /* a list that is many times its limit is a flood, and takes no memory beyond the limit */
    read_block(&b, GET, false);
    int r = 0, n = 0;
    while (r == 0 && n < 1000) {
        r = http2_head_field(&b, SLICE("x"), (struct slice){big, 4000});
        n++;
    }
    CU_ASSERT(r < 0 && n < HTTP2_LIST_FLOOD * 9);
    CU_ASSERT(b.fields.cap <= 65536);
    http2_head_free(&b);
    free(big);
}

static void accepted(const char *text, bool end, struct head *h)
{
    struct http2_head b;
    struct refusal why = {0, "none"};
    http2_head_init(&b, &limits);
    CU_ASSERT_EQUAL(read_block(&b, text, false), 0);
    int r = http2_head_finish(&b, end, h, &why);
    if (r < 0)
        printf("# %s: %u %s\n", text, why.status, why.code);
    CU_ASSERT_EQUAL_FATAL(r, 0);
    http2_head_free(&b);
}

static void test_accepted(void)
{
    struct head h;
    accepted(GET "|cookie=a=1|x=y|cookie=b=2|te=trailers", true, &h);
    CU_ASSERT(slice_eq(h.method, SLICE("GET")) && slice_eq(h.path, SLICE("/p")));
    CU_ASSERT(h.has_query && slice_eq(h.query, SLICE("q=1")) && h.form == TARGET_ORIGIN);
    CU_ASSERT(slice_eq(http_head_find(&h, "host")->value, SLICE("a.example")));
    CU_ASSERT(slice_eq(http_head_find(&h, "cookie")->value, SLICE("a=1; b=2")));
    CU_ASSERT(http_head_count(&h, "cookie") == 1 && h.body == BODY_NONE && h.te_trailers);
    http_head_free(&h);
    accepted(":path=/|:scheme=https|:method=POST|host=a.example|content-length=5", false, &h);
    CU_ASSERT(h.body == BODY_LENGTH && h.length == 5 && http_head_count(&h, "host") == 1);
    http_head_free(&h);
    accepted(":method=POST|:scheme=https|:authority=a|:path=/|host=A", false, &h);
    CU_ASSERT(h.body == BODY_CHUNKED && http_head_count(&h, "host") == 1);
    http_head_free(&h);
    accepted(GET "|content-length=0", false, &h);
    CU_ASSERT(h.body == BODY_NONE);
    http_head_free(&h);
    accepted(":method=OPTIONS|:scheme=https|:authority=a|:path=*", true, &h);
    CU_ASSERT(h.form == TARGET_ASTERISK);
    http_head_free(&h);
    accepted(":method=CONNECT|:authority=b.example:443", false, &h);
    CU_ASSERT(h.form == TARGET_AUTHORITY); /* which the session refuses */
    http_head_free(&h);
}

static void test_trailers(void)
{
    struct http2_head b;
    struct head h;
    struct refusal why;
    struct buf out;
    buf_init(&out, 1024);
    http2_head_init(&b, &limits);
    read_block(&b, "x-sum=1|x-more=2", true);
    CU_ASSERT_EQUAL(http2_head_trailers(&b, &out, &why), 0);
    CU_ASSERT_EQUAL(http1_parse_trailers(&h, buf_slice(&out), &limits), 0);
    CU_ASSERT(h.n == 2 && slice_eq(http_head_find(&h, "x-more")->value, SLICE("2")));
    http_head_free(&h);
    read_block(&b, ":path=/", true);
    CU_ASSERT(http2_head_trailers(&b, &out, &why) < 0 && why.status == 400);
    read_block(&b, "X=1", true);
    CU_ASSERT(http2_head_trailers(&b, &out, &why) < 0 && why.status == 400);
    http2_head_free(&b);
    buf_free(&out);
}

void suite_http2_head(void)
{
    CU_pSuite s = CU_add_suite("http2_head", NULL, NULL);
    CU_add_test(s, "extended CONNECT (RFC 8441)", test_connect);
    CU_add_test(s, "pseudo-fields: known, once, in front", test_pseudo);
    CU_add_test(s, "the scheme is the connection's", test_schemes);
    CU_add_test(s, "a request line cannot be split", test_line);
    CU_add_test(s, "fields that HTTP/2 must not carry", test_fields);
    CU_add_test(s, "blanks around a value", test_blanks);
    CU_add_test(s, "sizes", test_sizes);
    CU_add_test(s, "what is accepted reads as HTTP/1 does", test_accepted);
    CU_add_test(s, "trailers", test_trailers);
}

void tap_suites(void)
{
    suite_http2_head();
}
