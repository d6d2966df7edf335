/* inspect_body: any bytes against each kind of rule. The first byte picks it. */
#include "inspect.h"
#include "policy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"a"};
static const struct inspection kinds[] = {
    {.kind = INSPECT_GRAPHQL, .read_only = true},
    {.kind = INSPECT_GRAPHQL, .by_name = true, .operations = {names, 1}},
    {.kind = INSPECT_GRAPHQL, .by_field = true, .fields = {names, 1}},
    {.kind = INSPECT_MCP, .tools = {names, 1}, .methods = {names, 1}},
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
