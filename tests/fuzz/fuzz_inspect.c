/* inspect_body: any bytes against each kind of rule. The first byte picks it. */
#include "inspect.h"
#include "mcp.h"
#include "policy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"a"};
static const struct mcp_scalar one = {.kind = MCP_NUMBER, .number = 1};
static const struct mcp_condition asked[] = {
    {.pointer = "/a", .test = MCP_MATCHES, .patterns = {names, 1}, .may_be_absent = true},
    {.pointer = "/n/0",
     .test = MCP_IS_ONE_OF,
     .values = &one,
     .n_values = 1,
     .may_be_absent = true},
    {.pointer = "/r", .test = MCP_IN_RANGE, .least = -1, .most = 1, .may_be_absent = true},
};
static const struct mcp_tool tools[] = {{.name = "a*", .conditions = asked, .n_conditions = 3}};
static const struct mcp_rules mcp = {.tools = tools,
                                     .n_tools = 1,
                                     .methods = {names, 1},
                                     .by_resource = true,
                                     .resources = {names, 1}};
static const struct inspection kinds[] = {
    {.kind = INSPECT_GRAPHQL, .read_only = true},
    {.kind = INSPECT_GRAPHQL, .by_name = true, .operations = {names, 1}},
    {.kind = INSPECT_GRAPHQL, .by_field = true, .fields = {names, 1}},
    {.kind = INSPECT_MCP, .tools = {names, 1}, .mcp = &mcp},
    {.kind = INSPECT_SERVER_TOOLS},
    {.kind = INSPECT_SERVER_TOOLS, .tools = {names, 1}},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct inspect_result why = {0};
    if (size == 0)
        return 0;
    const struct inspection *in = &kinds[data[0] % ARRAY_LEN(kinds)];
    struct slice text = {(const char *)data + 1, size - 1};
    struct inspect_request post = {.method = SLICE("POST"),
                                   .n_types = 1,
                                   .type = SLICE("application/json"),
                                   .has_body = true,
                                   .length = text.n};
    struct inspect_request get = {.method = SLICE("GET"), .query = text, .has_query = true};
    if (inspect_head(in, &post, &why) == INSPECT_MORE &&
        inspect_body(in, &post, text, true, &why) == INSPECT_MORE)
        abort();
    if (inspect_head(in, &get, &why) == INSPECT_MORE)
        abort();
    return 0;
}
