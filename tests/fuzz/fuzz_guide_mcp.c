/* What a program in a sandbox says to the guide's MCP server: any bytes as the body. What is
 * answered is one message with the id that was asked with; a call has texts for arguments only. */
#include "guide_mcp.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

static void is_answer(const json_t *answer, const json_t *id)
{
    const json_t *said = json_object_get(answer, "id");
    require(json_is_object(answer) && json_object_size(answer) == 3);
    require(id ? json_equal(said, id) : json_is_null(said));
    require((json_object_get(answer, "result") == NULL) !=
            (json_object_get(answer, "error") == NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct guide_mcp m;
    struct slice body = {(const char *)data, size};
    bool proposes = size % 2;
    enum guide_mcp_end end = guide_mcp_read(body, "coder", proposes, &m);
    require(end != GUIDE_MCP_NOTED || (m.id == NULL && m.answer == NULL));
    if (end == GUIDE_MCP_ANSWER || end == GUIDE_MCP_BAD)
        is_answer(m.answer, m.id);
    if (end == GUIDE_MCP_CALL) {
        const char *key;
        json_t *v;
        require(m.id && m.answer == NULL && (proposes || m.tool != GUIDE_TOOL_PROPOSE));
        json_object_foreach(m.arguments, key, v) require(json_is_string(v));
        json_t *result = guide_mcp_result(&m, guide_mcp_argument(&m, "id"), false);
        is_answer(result, m.id);
        json_decref(result);
    }
    guide_mcp_free(&m);
    return 0;
}
