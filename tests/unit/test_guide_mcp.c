/* The guide's MCP server: which messages it takes, and what it says to them. */
#include "guide_mcp.h"
#include "tap_main.h"

#include <stdio.h>
#include <string.h>

void tap_suites(void);

static enum guide_mcp_end read_one(const char *text, bool proposes, struct guide_mcp *m)
{
    return guide_mcp_read(slice_str(text), "coder", proposes, m);
}

/* The code of the error that it is answered with; 0: with a result, 1: with nothing. */
static int said(const char *text)
{
    struct guide_mcp m;
    enum guide_mcp_end end = read_one(text, true, &m);
    int code = end == GUIDE_MCP_NOTED || end == GUIDE_MCP_CALL ? 1 : 0;
    json_t *error = json_object_get(m.answer, "error");
    if (error)
        code = (int)json_integer_value(json_object_get(error, "code"));
    guide_mcp_free(&m);
    return code;
}

static void test_messages(void)
{
    static const struct {
        const char *text;
        int code;
    } rows[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", 0},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\",\"params\":{}}", 0},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", 0},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", 1},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 1},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}", -32601},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"Ping\"}", -32601},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":1,\"method\":\"ping\"}", -32700},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} x", -32700},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"ID\":2,\"method\":\"ping\"}", -32600},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"ping\"}", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"result\":1}", -32600},
        {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600},
        {"1", -32700},
        {"{}", -32600},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int code = said(rows[i].text);
        CU_ASSERT_EQUAL(code, rows[i].code);
        if (code != rows[i].code)
            printf("# %s: %d\n", rows[i].text, code);
    }
}

static int call(const char *params, bool proposes, struct guide_mcp *m)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":%s}", params);
    return (int)read_one(text, proposes, m);
}

static void test_calls(void)
{
    static const char *const bad[] = {
        "{}",
        "{\"name\":\"other\"}",
        "{\"name\":\"what_may_i_do\",\"NAME\":\"other\"}",
        "{\"name\":\"what_may_i_do\",\"arguments\":[]}",
        "{\"name\":\"what_may_i_do\",\"arguments\":{\"x\":\"y\"}}",
        "{\"name\":\"why_was_it_refused\",\"arguments\":{\"id\":7}}",
        "{\"name\":\"propose_rule\",\"arguments\":{\"path\":\"/\"}}",
    };
    struct guide_mcp m;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CU_ASSERT_EQUAL(call(bad[i], true, &m), GUIDE_MCP_ANSWER);
        CU_ASSERT_PTR_NOT_NULL(json_object_get(m.answer, "error"));
        guide_mcp_free(&m);
    }
    CU_ASSERT_EQUAL(
        call("{\"name\":\"why_was_it_refused\",\"arguments\":{\"id\":\"7-1\"}}", true, &m),
        GUIDE_MCP_CALL);
    CU_ASSERT_EQUAL(m.tool, GUIDE_TOOL_REFUSED);
    CU_ASSERT_STRING_EQUAL(guide_mcp_argument(&m, "id"), "7-1");
    CU_ASSERT_STRING_EQUAL(guide_mcp_argument(&m, "host"), "");
    guide_mcp_free(&m);
    CU_ASSERT_EQUAL(call("{\"name\":\"propose_rule\",\"arguments\":{\"host\":\"a.b\"}}", false, &m),
                    GUIDE_MCP_ANSWER);
    guide_mcp_free(&m);
    CU_ASSERT_EQUAL(call("{\"name\":\"propose_rule\",\"arguments\":{\"host\":\"a.b\"}}", true, &m),
                    GUIDE_MCP_CALL);
    guide_mcp_free(&m);
}

static void test_initialize(void)
{
    static const char *const versions[][2] = {
        {"2025-06-18", "2025-06-18"}, {"2025-03-26", "2025-03-26"}, {"2031-01-01", "2025-11-25"}};
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        char text[256];
        struct guide_mcp m;
        snprintf(text, sizeof text,
                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":"
                 "{\"protocolVersion\":\"%s\",\"capabilities\":{}}}",
                 versions[i][0]);
        CU_ASSERT_EQUAL(read_one(text, true, &m), GUIDE_MCP_ANSWER);
        json_t *result = json_object_get(m.answer, "result");
        CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(result, "protocolVersion")),
                               versions[i][1]);
        guide_mcp_free(&m);
    }
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("guide_mcp", NULL, NULL);
    CU_add_test(s, "messages", test_messages);
    CU_add_test(s, "calls", test_calls);
    CU_add_test(s, "initialize", test_initialize);
}
