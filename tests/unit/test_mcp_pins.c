/* What tools of MCP servers were: hashes, changes, bounds. */
#include "mcp_message.h"
#include "mcp_pins.h"
#include "tap_main.h"

#include <stdio.h>
#include <string.h>

void tap_suites(void);

static json_t *tool(const char *text)
{
    json_t *t = json_loads(text, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    return t;
}

static void hash_of(const char *text, char *hash)
{
    json_t *t = tool(text);
    CU_ASSERT(mcp_pin_hash(t, hash));
    json_decref(t);
}

static void test_hash(void)
{
    char a[MCP_PIN_TEXT + 1], b[MCP_PIN_TEXT + 1];
    hash_of("{\"name\":\"x\",\"description\":\"d\"}", a);
    CU_ASSERT_EQUAL(strlen(a), MCP_PIN_TEXT);
    hash_of("{ \"description\" : \"\\u0064\", \"name\":\"x\" }", b);
    CU_ASSERT_STRING_EQUAL(a, b);
    hash_of("{\"name\":\"x\",\"description\":\"d\",\"_meta\":{\"at\":1}}", b);
    CU_ASSERT_STRING_EQUAL(a, b);
    hash_of("{\"name\":\"x\",\"description\":\"D\"}", b);
    CU_ASSERT_STRING_NOT_EQUAL(a, b);
    hash_of("{\"name\":\"x\",\"description\":\"d\",\"inputSchema\":{}}", b);
    CU_ASSERT_STRING_NOT_EQUAL(a, b);
}

static void test_changes(void)
{
    struct mcp_pins *p = mcp_pins_new();
    char one[MCP_PIN_TEXT + 1], two[MCP_PIN_TEXT + 1];
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    CU_ASSERT(mcp_pin_place("a.example.com:443", SLICE("/mcp"), one));
    CU_ASSERT(mcp_pin_place("b.example.com:443", SLICE("/mcp"), two));
    CU_ASSERT_STRING_NOT_EQUAL(one, two);
    CU_ASSERT(!mcp_pins_changed(p, one, "x"));
    CU_ASSERT_EQUAL(mcp_pins_see(p, one, "x", "11"), MCP_PIN_NEW);
    CU_ASSERT_EQUAL(mcp_pins_see(p, one, "x", "11"), MCP_PIN_SAME);
    CU_ASSERT_EQUAL(mcp_pins_see(p, two, "x", "22"), MCP_PIN_NEW);
    CU_ASSERT_EQUAL(mcp_pins_see(p, one, "x", "12"), MCP_PIN_CHANGED);
    CU_ASSERT(mcp_pins_changed(p, one, "x") && !mcp_pins_changed(p, two, "x"));
    CU_ASSERT_EQUAL(mcp_pins_see(p, one, "x", "11"), MCP_PIN_SAME);
    CU_ASSERT(!mcp_pins_changed(p, one, "x"));
    mcp_pins_mark(p, one, "x", true);
    CU_ASSERT(mcp_pins_changed(p, one, "x"));
    mcp_pins_free(p);
}

static void test_bounds(void)
{
    struct mcp_pins *p = mcp_pins_new();
    unsigned taken = 0;
    char place[32], name[32];
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    for (unsigned i = 0; i <= MCP_PINS_SERVER; i++) {
        snprintf(name, sizeof name, "t%u", i);
        taken += mcp_pins_see(p, "one", name, "h") == MCP_PIN_NEW;
    }
    CU_ASSERT_EQUAL(taken, MCP_PINS_SERVER);
    CU_ASSERT_EQUAL(mcp_pins_see(p, "two", "x", "h"), MCP_PIN_NEW);
    for (unsigned i = 0; i < 2 * MCP_PINS_MAX; i++) {
        snprintf(place, sizeof place, "p%u", i);
        (void)mcp_pins_see(p, place, "x", "h");
    }
    CU_ASSERT_EQUAL(mcp_pins_see(p, "last", "x", "h"), MCP_PIN_FULL);
    CU_ASSERT_EQUAL(mcp_pins_see(p, "two", "x", "i"), MCP_PIN_CHANGED);
    mcp_pins_free(p);
}

/* What cannot be remembered is not taken for what it was. */
static void test_full(void)
{
    static const struct mcp_tool tools[] = {{.name = "*"}};
    static const struct mcp_rules rules = {
        .tools = tools, .n_tools = 1, .changed = MCP_CHANGED_REFUSE};
    struct mcp_pins *p = mcp_pins_new();
    struct mcp_view view = {.rules = &rules, .pins = p, .place = "one"};
    struct mcp_changes changes = {.hidden = 0};
    json_t *list = json_array(), *m;
    for (unsigned i = 0; i <= MCP_PINS_SERVER; i++)
        json_array_append_new(list, json_pack("{s:o}", "name", json_sprintf("t%u", i)));
    m = json_pack("{s:s, s:i, s:{s:o}}", "jsonrpc", "2.0", "id", 1, "result", "tools", list);
    CU_ASSERT(mcp_message_change(&view, m, &changes));
    CU_ASSERT_EQUAL(changes.hidden, 1);
    CU_ASSERT_EQUAL(changes.changed, 1);
    CU_ASSERT(strlen(changes.notes) < MCP_NOTES_MAX &&
              strncmp(changes.notes, "pinned t0 ", 10) == 0);
    json_decref(m);
    mcp_pins_free(p);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("mcp_pins", NULL, NULL);
    CU_add_test(s, "hash", test_hash);
    CU_add_test(s, "changes", test_changes);
    CU_add_test(s, "bounds", test_bounds);
    CU_add_test(s, "full", test_full);
}
