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

static enum mcp_pin see(struct mcp_pins *p, const char *sandbox, const char *place,
                        const char *name, const char *hash)
{
    return mcp_pins_see(p, &(struct mcp_tool_at){sandbox, place, name, NULL}, hash);
}

static enum mcp_pin look(struct mcp_pins *p, const char *sandbox, const char *place,
                         const char *name)
{
    return mcp_pins_look(p, &(struct mcp_tool_at){sandbox, place, name, NULL});
}

/* A list that has the first one again, on another page or a second time, takes nothing back. */
static void test_changes(void)
{
    struct mcp_pins *p = mcp_pins_new();
    char one[MCP_PIN_TEXT + 1], two[MCP_PIN_TEXT + 1], own[MCP_PIN_TEXT + 1];
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    CU_ASSERT(mcp_pin_place("a.example.com:443", SLICE("/mcp"), "", one));
    CU_ASSERT(mcp_pin_place("b.example.com:443", SLICE("/mcp"), "", two));
    CU_ASSERT(mcp_pin_place("a.example.com:443", SLICE("/mcp"), "box", own));
    CU_ASSERT(strcmp(one, two) != 0 && strcmp(one, own) != 0);
    CU_ASSERT_EQUAL(look(p, "box", one, "x"), MCP_PIN_NEW);
    CU_ASSERT_EQUAL(see(p, "box", one, "x", "11"), MCP_PIN_NEW);
    CU_ASSERT_EQUAL(see(p, "other", one, "x", "11"), MCP_PIN_SAME);
    CU_ASSERT_EQUAL(see(p, "box", two, "x", "22"), MCP_PIN_NEW);
    CU_ASSERT_EQUAL(see(p, "box", one, "x", "12"), MCP_PIN_CHANGED);
    CU_ASSERT_EQUAL(look(p, "box", one, "x"), MCP_PIN_CHANGED);
    CU_ASSERT_EQUAL(look(p, "box", two, "x"), MCP_PIN_SAME);
    CU_ASSERT_EQUAL(see(p, "box", one, "x", "11"), MCP_PIN_CHANGED);
    CU_ASSERT_EQUAL(look(p, "box", one, "x"), MCP_PIN_CHANGED);
    mcp_pins_free(p);
}

/* What a policy says counts, not what was first; with another hash in it, nothing was listed yet.
 */
static void test_policy(void)
{
    struct mcp_pins *p = mcp_pins_new();
    const struct mcp_tool_at right = {"box", "one", "x", "ab"}, wrong = {"box", "one", "x", "cd"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    CU_ASSERT_EQUAL(mcp_pins_look(p, &right), MCP_PIN_NEW);
    CU_ASSERT_EQUAL(mcp_pins_see(p, &right, "ab11"), MCP_PIN_NEW);
    CU_ASSERT_EQUAL(mcp_pins_see(p, &right, "ab12"), MCP_PIN_SAME);
    CU_ASSERT_EQUAL(mcp_pins_look(p, &wrong), MCP_PIN_NEW);
    CU_ASSERT_EQUAL(mcp_pins_see(p, &wrong, "ab11"), MCP_PIN_CHANGED);
    CU_ASSERT_EQUAL(mcp_pins_look(p, &wrong), MCP_PIN_CHANGED);
    CU_ASSERT_EQUAL(mcp_pins_see(p, &right, "ee"), MCP_PIN_CHANGED);
    CU_ASSERT_EQUAL(mcp_pins_see(p, &right, "ab11"), MCP_PIN_CHANGED);
    mcp_pins_free(p);
}

static unsigned fill(struct mcp_pins *p, const char *sandbox)
{
    unsigned taken = 0;
    char place[96];
    for (unsigned i = 0; i < MCP_PINS_MAX; i++) {
        snprintf(place, sizeof place, "%s-%u", sandbox, i);
        taken += see(p, sandbox, place, "x", "h") == MCP_PIN_NEW;
    }
    return taken;
}

/* No room: taken for changed, whether it is listed or called. */
static void test_bounds(void)
{
    struct mcp_pins *p = mcp_pins_new();
    unsigned taken = 0;
    char name[32];
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    for (unsigned i = 0; i <= MCP_PINS_SERVER; i++) {
        snprintf(name, sizeof name, "t%u", i);
        taken += see(p, "box", "one", name, "h") == MCP_PIN_NEW;
    }
    CU_ASSERT_EQUAL(taken, MCP_PINS_SERVER);
    CU_ASSERT_EQUAL(look(p, "box", "one", "another"), MCP_PIN_FULL);
    CU_ASSERT_EQUAL(look(p, "box", "two", "another"), MCP_PIN_NEW);
    CU_ASSERT(fill(p, "box") < MCP_PINS_SANDBOX);
    CU_ASSERT_EQUAL(see(p, "box", "last", "x", "h"), MCP_PIN_FULL);
    CU_ASSERT_EQUAL(look(p, "box", "last", "x"), MCP_PIN_FULL);
    CU_ASSERT_EQUAL(see(p, "next", "last", "x", "h"), MCP_PIN_NEW); /* others have room */
    CU_ASSERT_EQUAL(see(p, "box", "one", "t0", "i"), MCP_PIN_CHANGED);
    mcp_pins_free(p);
}

/* What a sandbox that is gone has listed makes room, and only then. */
static void test_gone(void)
{
    struct mcp_pins *p = mcp_pins_new();
    char name[32], place[40];
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    CU_ASSERT_EQUAL(see(p, "kept", "kept", "x", "h"), MCP_PIN_NEW);
    for (unsigned i = 0; i < 24; i++) {
        snprintf(name, sizeof name, "box-%u", i);
        snprintf(place, sizeof place, "box-%u-0", i);
        CU_ASSERT(fill(p, name) > 0);
        CU_ASSERT_EQUAL(look(p, name, place, "x"), MCP_PIN_SAME);
        mcp_pins_gone(p, name);
        CU_ASSERT_EQUAL(look(p, name, place, "x"), MCP_PIN_SAME);
    }
    CU_ASSERT_EQUAL(look(p, "kept", "kept", "x"), MCP_PIN_SAME);
    mcp_pins_free(p);
}

static bool holds(void *arg, struct slice text)
{
    ++*(unsigned *)arg;
    return slice_find_slice(text, SLICE("s3cret")) >= 0;
}

/* A name that a server chose goes into the log without the secret that it holds. */
static void test_names(void)
{
    static const struct mcp_tool tools[] = {{.name = "*"}};
    static const struct mcp_rules rules = {.tools = tools, .n_tools = 1};
    unsigned asked = 0;
    struct mcp_pins *p = mcp_pins_new();
    struct mcp_view view = {.rules = &rules,
                            .pins = p,
                            .place = "one",
                            .sandbox = "box",
                            .holds_secret = holds,
                            .arg = &asked};
    struct mcp_changes changes = {.hidden = 0};
    json_t *m = json_pack("{s:s, s:i, s:{s:[{s:s}, {s:s}]}}", "jsonrpc", "2.0", "id", 1, "result",
                          "tools", "name", "a-s3cret", "name", "plain");
    CU_ASSERT(mcp_message_change(&view, m, &changes));
    CU_ASSERT_EQUAL(asked, 2);
    CU_ASSERT_PTR_NULL(strstr(changes.notes, "s3cret"));
    CU_ASSERT(strncmp(changes.notes, "pinned (withheld) ", 18) == 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(changes.notes, "; pinned plain "));
    json_decref(m);
    mcp_pins_free(p);
}

/* What cannot be remembered is not taken for what it was. */
static void test_full(void)
{
    static const struct mcp_tool tools[] = {{.name = "*"}};
    static const struct mcp_rules rules = {
        .tools = tools, .n_tools = 1, .changed = MCP_CHANGED_REFUSE};
    struct mcp_pins *p = mcp_pins_new();
    struct mcp_view view = {.rules = &rules, .pins = p, .place = "one", .sandbox = "box"};
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
    CU_add_test(s, "what a policy says", test_policy);
    CU_add_test(s, "a sandbox that is gone", test_gone);
    CU_add_test(s, "names in the log", test_names);
    CU_add_test(s, "full", test_full);
}
