/* Reads a message to the guide's MCP server and makes the answers that need nothing of the gate. */
#include "guide_mcp.h"

#include "body_json.h"

#include <string.h>

enum { BAD_JSON = -32700, BAD_MESSAGE = -32600, NO_METHOD = -32601, BAD_PARAMS = -32602 };
enum { ARGUMENTS = 5 };

/* The oldest version with this transport first; the last is offered to who asks for none of them.
 */
static const char *const versions[] = {"2025-03-26", "2025-06-18", "2025-11-25"};

static const struct guide_tool_row {
    const char *name, *about;
    bool changes;
    const char *arguments[ARGUMENTS]; /* the first `needed` of them are required */
    size_t needed;
} tools[GUIDE_TOOLS] = {
    [GUIDE_TOOL_RULES] = {"what_may_i_do",
                          "Which requests this sandbox may make, which of them get a credential, "
                          "and which wait for somebody's approval. What no rule names is denied.",
                          false,
                          {NULL},
                          0},
    [GUIDE_TOOL_REFUSED] =
        {"why_was_it_refused",
         "Why a request was refused, and the way out. id is that of the refusal; "
         "without one, the latest refusals are listed.",
         false,
         {"id", NULL},
         0},
    [GUIDE_TOOL_PLACEHOLDERS] = {"list_placeholders",
                                 "The placeholders of this sandbox: send one where a service wants "
                                 "its credential, and the proxy puts the real one there.",
                                 false,
                                 {NULL},
                                 0},
    [GUIDE_TOOL_PROPOSE] = {"propose_rule",
                            "Asks whoever runs this sandbox to allow a request. Nothing more is "
                            "allowed until they write it into the policy.",
                            true,
                            {"host", "path", "method", "scheme", "reason"},
                            1},
};

void guide_mcp_free(struct guide_mcp *m)
{
    json_decref(m->id);
    json_decref(m->answer);
    json_decref(m->arguments);
    m->id = m->answer = m->arguments = NULL;
}

/* ---- answers ---- */

static json_t *error_of(json_t *id, int code, const char *text)
{
    return json_pack("{s:s, s:O?, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", id ? id : json_null(),
                     "error", "code", code, "message", text);
}

static enum guide_mcp_end bad(struct guide_mcp *m, int code, const char *text)
{
    m->answer = error_of(NULL, code, text);
    return GUIDE_MCP_BAD;
}

static enum guide_mcp_end failed(struct guide_mcp *m, int code, const char *text)
{
    m->answer = error_of(m->id, code, text);
    return GUIDE_MCP_ANSWER;
}

/* The result is taken; NULL: memory is out. */
static enum guide_mcp_end answered(struct guide_mcp *m, json_t *result)
{
    m->answer = result
                    ? json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", m->id, "result", result)
                    : NULL;
    return GUIDE_MCP_ANSWER;
}

static json_t *tool_told(const struct guide_tool_row *t)
{
    json_t *properties = json_object(), *required = json_array();
    for (size_t i = 0; i < ARGUMENTS && t->arguments[i]; i++) {
        json_object_set_new(properties, t->arguments[i], json_pack("{s:s}", "type", "string"));
        if (i < t->needed)
            json_array_append_new(required, json_string(t->arguments[i]));
    }
    return json_pack("{s:s, s:s, s:{s:s, s:o, s:o, s:b}, s:{s:b, s:b, s:b}}", "name", t->name,
                     "description", t->about, "inputSchema", "type", "object", "properties",
                     properties, "required", required, "additionalProperties", 0, "annotations",
                     "readOnlyHint", !t->changes, "destructiveHint", 0, "openWorldHint", 0);
}

static json_t *tools_told(bool proposes)
{
    json_t *list = json_array();
    for (size_t i = 0; i < GUIDE_TOOLS; i++)
        if (proposes || i != GUIDE_TOOL_PROPOSE)
            json_array_append_new(list, tool_told(&tools[i]));
    return json_pack("{s:o}", "tools", list);
}

static json_t *initialized(const json_t *params, const char *policy)
{
    const char *asked = json_string_value(json_object_get(params, "protocolVersion")),
               *version = versions[ARRAY_LEN(versions) - 1];
    for (size_t i = 0; asked && i < ARRAY_LEN(versions); i++)
        if (strcmp(asked, versions[i]) == 0)
            version = versions[i];
    return json_pack(
        "{s:s, s:{s:{}}, s:{s:s, s:s}, s:o}", "protocolVersion", version, "capabilities", "tools",
        "serverInfo", "name", "durward", "version", "1", "instructions",
        json_sprintf("This program runs in a sandbox of Durward, by the policy %s. All "
                     "its traffic passes a proxy that allows what the policy names, "
                     "adds credentials outside the sandbox, and logs every attempt.",
                     policy));
}

json_t *guide_mcp_result(const struct guide_mcp *m, const char *text, bool has_failed)
{
    return json_pack("{s:s, s:O, s:{s:[{s:s, s:s}], s:b}}", "jsonrpc", "2.0", "id", m->id, "result",
                     "content", "type", "text", "text", text, "isError", has_failed);
}

/* ---- a call ---- */

/* Members of the tool's, once and in its letters, each a text. */
static bool arguments_ok(const struct guide_tool_row *t, const json_t *arguments)
{
    size_t n = 0;
    const char *key;
    json_t *v;
    while (n < ARGUMENTS && t->arguments[n])
        n++;
    json_object_foreach((json_t *)(uintptr_t)arguments, key,
                        v) if (!json_is_string(v)) return false;
    for (size_t i = 0; i < t->needed; i++)
        if (json_object_get(arguments, t->arguments[i]) == NULL)
            return false;
    return body_json_only(arguments, t->arguments, n);
}

static enum guide_mcp_end take_call(struct guide_mcp *m, const json_t *params, bool proposes)
{
    const char *name = json_string_value(json_object_get(params, "name"));
    json_t *arguments = json_object_get(params, "arguments");
    size_t i = 0;
    if (name == NULL || body_json_twisted(params, "name") || body_json_twisted(params, "arguments"))
        return failed(m, BAD_PARAMS, "a call names a tool");
    while (i < GUIDE_TOOLS && strcmp(tools[i].name, name) != 0)
        i++;
    if (i == GUIDE_TOOLS || (i == GUIDE_TOOL_PROPOSE && !proposes))
        return failed(m, BAD_PARAMS, "there is no such tool here");
    if (arguments && !json_is_object(arguments))
        return failed(m, BAD_PARAMS, "arguments are an object");
    m->arguments = arguments ? json_incref(arguments) : json_object();
    if (m->arguments == NULL || !arguments_ok(&tools[i], m->arguments))
        return failed(m, BAD_PARAMS, "arguments are those that tools/list names, each a text");
    m->tool = (enum guide_tool)i;
    return GUIDE_MCP_CALL;
}

const char *guide_mcp_argument(const struct guide_mcp *m, const char *name)
{
    const char *text = json_string_value(json_object_get(m->arguments, name));
    return text ? text : "";
}

/* ---- a message ---- */

static bool id_ok(const json_t *id)
{
    const json_int_t most = (json_int_t)1 << 53; /* what every reader takes for the same number */
    return json_is_integer(id) ? json_integer_value(id) <= most && json_integer_value(id) >= -most
                               : json_is_string(id) && json_string_length(id) <= GUIDE_MCP_ID;
}

static enum guide_mcp_end take_request(struct guide_mcp *m, const char *method,
                                       const json_t *params, const char *policy, bool proposes)
{
    if (strcmp(method, "initialize") == 0)
        return answered(m, initialized(params, policy));
    if (strcmp(method, "ping") == 0)
        return answered(m, json_object());
    if (strcmp(method, "tools/list") == 0)
        return answered(m, tools_told(proposes));
    return strcmp(method, "tools/call") == 0 ? take_call(m, params, proposes)
                                             : failed(m, NO_METHOD, "there is no such method here");
}

static enum guide_mcp_end take_message(struct guide_mcp *m, json_t *root, const char *policy,
                                       bool proposes)
{
    static const char *const keys[] = {"jsonrpc", "id", "method", "params", "result", "error"};
    const char *version = json_string_value(json_object_get(root, "jsonrpc"));
    json_t *method = json_object_get(root, "method"), *params = json_object_get(root, "params"),
           *id = json_object_get(root, "id");
    bool answers = json_object_get(root, "result") || json_object_get(root, "error");
    if (!json_is_object(root) || !body_json_only(root, keys, ARRAY_LEN(keys)) || version == NULL ||
        strcmp(version, "2.0") != 0 || (params && !json_is_object(params)) || (id && !id_ok(id)) ||
        (method ? !json_is_string(method) || answers : !answers || params))
        return bad(m, BAD_MESSAGE, "that is not a single message of JSON-RPC 2.0");
    if (method == NULL || id == NULL)
        return GUIDE_MCP_NOTED;
    m->id = json_incref(id);
    return take_request(m, json_string_value(method), params, policy, proposes);
}

enum guide_mcp_end guide_mcp_read(struct slice body, const char *policy, bool proposes,
                                  struct guide_mcp *ret)
{
    json_t *root;
    *ret = (struct guide_mcp){.id = NULL};
    if (body.n > GUIDE_MCP_MAX)
        return bad(ret, BAD_MESSAGE, "a message has 16 KiB at most");
    if (body_json_read(body, &root) != BODY_JSON_OK)
        return bad(ret, BAD_JSON, "that is not JSON that every reader takes for the same");
    enum guide_mcp_end end = take_message(ret, root, policy, proposes);
    json_decref(root);
    return end;
}
