/* A reply of an MCP server: any bytes as JSON or as events, whole and in pieces. The first byte
 * picks the form and the size of the pieces. What goes on is the same however it came. */
#include "mcp.h"
#include "mcp_message.h"
#include "mcp_reply.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"a*", "x"};
static const struct mcp_tool tools[] = {{.name = "a*"}, {.name = "x"}};
static const struct mcp_rules rules = {.tools = tools,
                                       .n_tools = 2,
                                       .by_resource = true,
                                       .resources = {names, 2},
                                       .by_prompt = true,
                                       .prompts = {names, 2},
                                       .no_sampling = true};

static enum mcp_reply_end run(struct mcp_reply *r, struct slice text, size_t piece)
{
    enum mcp_reply_end end = MCP_REPLY_OK;
    while (end == MCP_REPLY_OK && text.n > 0) {
        size_t n = piece < text.n ? piece : text.n;
        end = mcp_reply_feed(r, (struct slice){text.p, n});
        text = (struct slice){text.p + n, text.n - n};
    }
    return end == MCP_REPLY_OK ? mcp_reply_close(r) : end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    enum mcp_form form = data[0] & 1 ? MCP_FORM_EVENTS : MCP_FORM_JSON;
    size_t piece = 1 + (data[0] >> 1) % 16;
    struct slice text = {(const char *)data + 1, size - 1};
    static struct mcp_pins *pins;
    if (pins == NULL && (pins = mcp_pins_new()) == NULL)
        abort();
    /* what the one pins the other meets: nothing is refused for it here */
    const struct mcp_view view = {.rules = &rules, .pins = pins, .sandbox = "sb", .place = "place"};
    struct mcp_reply *whole = mcp_reply_new(&view, form), *cut = mcp_reply_new(&view, form);
    if (whole == NULL || cut == NULL)
        abort();
    enum mcp_reply_end a = run(whole, text, text.n), b = run(cut, text, piece);
    if (a != b || !slice_eq(mcp_reply_out(whole), mcp_reply_out(cut)))
        abort();
    mcp_reply_free(whole);
    mcp_reply_free(cut);
    return 0;
}
