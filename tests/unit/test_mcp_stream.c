/* Streams of MCP's older transport: whose message goes where, and between which events an answer
 * stands. */
#include "mcp_stream.h"
#include "tap_main.h"

#include <stdio.h>
#include <string.h>

void tap_suites(void);

struct client {
    char got[4096];
    size_t room;
};

static void client_data(void *self, const void *p, size_t n)
{
    struct client *c = self;
    size_t at = strlen(c->got);
    CU_ASSERT_FATAL(at + n < sizeof c->got);
    memcpy(c->got + at, p, n);
    c->got[at + n] = 0;
}

static size_t client_room(void *self)
{
    return ((struct client *)self)->room;
}

static const struct downstream_ops ops = {.data = client_data, .room = client_room};
static struct mcp_streams all;
static struct authority here;

static struct mcp_stream *stream_of(struct client *c, const char *sandbox)
{
    struct downstream to = {&ops, c};
    struct mcp_stream_at at = {&here, sandbox};
    CU_ASSERT_EQUAL_FATAL(authority_parse(&here, SCHEME_HTTPS, SLICE("mcp.example.com")), 0);
    *c = (struct client){.room = 4096};
    struct mcp_stream *s = mcp_stream_new(&all, &at, &to);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    return s;
}

static void saw(struct mcp_stream *s, const char *text)
{
    for (size_t i = 0; text[i]; i++)
        mcp_stream_saw(s, (struct slice){text + i, 1});
}

static bool found(const char *host, const char *sandbox, const char *path, const char *query)
{
    struct authority a;
    struct head h;
    http_head_init(&h);
    CU_ASSERT_EQUAL_FATAL(authority_parse(&a, SCHEME_HTTPS, slice_str(host)), 0);
    struct mcp_stream_at at = {&a, sandbox};
    h.path = slice_str(path);
    h.has_query = query != NULL;
    h.query = slice_str(query ? query : "");
    bool is = mcp_stream_of(&all, &at, &h) != NULL;
    http_head_free(&h);
    return is;
}

static void test_whose(void)
{
    static const char *const said[] = {
        "event: endpoint\ndata: /messages?s=1\n\n",
        ": hello\r\n\r\nid: 1\r\nevent:endpoint\r\ndata:/messages?s=1\r\n\r\n",
        "event: endpoint\ndata: https://mcp.example.com/messages?s=1\n\n",
        "event: endpoint\ndata: https://MCP.example.com:443/messages?s=1\n\n",
    };
    static const char *const not_said[] = {
        "data: /messages?s=1\n\n",
        "event: endpoint\ndata: /messages?s=1\n",
        "event: message\ndata: /messages?s=1\n\n",
        "event: endpoint\n\ndata: /messages?s=1\n\n",
        "event: endpoint\ndata: https://odd.example.com/messages?s=1\n\n",
        "event: endpoint\ndata: https://mcp.example.com.x/messages?s=1\n\n",
        "event: endpoint\ndata: https:/messages?s=1\n\n",
        "event: endpoint\ndata: http\n\n",
    };
    struct client c;
    for (size_t i = 0; i < ARRAY_LEN(said); i++) {
        struct mcp_stream *s = stream_of(&c, "sb-1");
        saw(s, said[i]);
        CU_ASSERT(found("mcp.example.com", "sb-1", "/messages", "s=1"));
        CU_ASSERT_FALSE(found("mcp.example.com", "sb-2", "/messages", "s=1"));
        CU_ASSERT_FALSE(found("mcp.example.com", NULL, "/messages", "s=1"));
        CU_ASSERT_FALSE(found("other.example.com", "sb-1", "/messages", "s=1"));
        CU_ASSERT_FALSE(found("mcp.example.com", "sb-1", "/messages", "s=12"));
        CU_ASSERT_FALSE(found("mcp.example.com", "sb-1", "/messages", NULL));
        CU_ASSERT_FALSE(found("mcp.example.com", "sb-1", "/message", "s=1"));
        mcp_stream_free(s);
        CU_ASSERT_FALSE(found("mcp.example.com", "sb-1", "/messages", "s=1"));
    }
    for (size_t i = 0; i < ARRAY_LEN(not_said); i++) {
        struct mcp_stream *s = stream_of(&c, NULL);
        saw(s, not_said[i]);
        CU_ASSERT_FALSE(found("mcp.example.com", NULL, "/messages", "s=1"));
        mcp_stream_free(s);
    }
}

static void test_between(void)
{
    struct client c;
    struct mcp_stream *s = stream_of(&c, NULL);
    struct slice ours = SLICE("data: x\n\n");
    CU_ASSERT(mcp_stream_put(s, ours));
    CU_ASSERT_STRING_EQUAL(c.got, "data: x\n\n");
    saw(s, "data: {");
    CU_ASSERT(mcp_stream_put(s, ours) && mcp_stream_put(s, ours));
    saw(s, "}\n");
    CU_ASSERT_STRING_EQUAL(c.got, "data: x\n\n");
    saw(s, "\n");
    CU_ASSERT_STRING_EQUAL(c.got, "data: x\n\ndata: x\n\ndata: x\n\n");
    c.room = 2 * ours.n - 1; /* its client does not read */
    CU_ASSERT(mcp_stream_put(s, ours));
    saw(s, ": ping\r\n\r\n");
    CU_ASSERT_EQUAL(strlen(c.got), 3 * ours.n);
    c.room = 2 * ours.n;
    saw(s, ": ping\r\n\r\n");
    CU_ASSERT_EQUAL(strlen(c.got), 4 * ours.n);
    c.room = 0;
    size_t n = 0;
    while (mcp_stream_put(s, ours))
        n++;
    CU_ASSERT_EQUAL(n, MCP_STREAM_WAITING / ours.n);
    mcp_stream_free(s);
}

static void test_long(void)
{
    static char text[3 * MCP_STREAM_ENDPOINT];
    struct client c;
    struct mcp_stream *s = stream_of(&c, NULL);
    size_t n = (size_t)snprintf(text, sizeof text, "event: endpoint\ndata: /");
    memset(text + n, 'y', 2 * MCP_STREAM_ENDPOINT);
    saw(s, text);
    saw(s, "\n\nevent: endpoint\ndata: /m\n\n");
    CU_ASSERT(found("mcp.example.com", NULL, "/m", NULL));
    mcp_stream_free(s);
    mcp_stream_free(NULL);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("mcp_stream", NULL, NULL);
    CU_add_test(s, "whose", test_whose);
    CU_add_test(s, "between", test_between);
    CU_add_test(s, "long", test_long);
}
