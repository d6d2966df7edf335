/* The Model Context Protocol over HTTP: JSON-RPC messages, single or in a batch. */
#include "inspect_internal.h"

#include <string.h>

static const char code[] = "mcp";

static bool always_passes(const char *method)
{
    static const char *const names[] = {"initialize", "ping", "tools/list"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(method, names[i]) == 0)
            return true;
    return strncmp(method, "notifications/", 14) == 0;
}

static enum inspect_answer judge_call(const struct inspection *in, const json_t *params,
                                      struct inspect_result *ret)
{
    const char *name = json_string_value(json_object_get(params, "name"));
    if (name == NULL || body_json_twisted(params, "name"))
        return inspect_refuse(ret, 403, code, "tools/call without one name");
    return words_have(&in->tools, slice_str(name)) ? INSPECT_PASS
                                                   : inspect_refuse(ret, 403, code, name);
}

static enum inspect_answer judge_message(const struct inspection *in, const json_t *m,
                                         struct inspect_result *ret)
{
    static const char *const keys[] = {"jsonrpc", "id", "method", "params", "result", "error"};
    if (!json_is_object(m) || !body_json_only(m, keys, ARRAY_LEN(keys)))
        return inspect_refuse(ret, 403, code, "no JSON-RPC message");
    const json_t *method = json_object_get(m, "method");
    bool answers = json_object_get(m, "result") || json_object_get(m, "error");
    if (method == NULL && answers) /* to what the server asked */
        return INSPECT_PASS;
    if (!json_is_string(method) || answers)
        return inspect_refuse(ret, 403, code, "no JSON-RPC message");
    const char *name = json_string_value(method);
    if (strcmp(name, "tools/call") == 0)
        return judge_call(in, json_object_get(m, "params"), ret);
    if (always_passes(name) || words_have(&in->methods, slice_str(name)))
        return INSPECT_PASS;
    return inspect_refuse(ret, 403, code, name);
}

enum inspect_answer inspect_mcp_body(const struct inspection *in, struct slice body,
                                     struct inspect_result *ret)
{
    json_t *root;
    if (inspect_json(body, &root, ret) < 0)
        return INSPECT_REFUSED;
    enum inspect_answer a = INSPECT_PASS;
    if (!json_is_array(root))
        a = judge_message(in, root, ret);
    else if (json_array_size(root) == 0)
        a = inspect_refuse(ret, 403, code, "no JSON-RPC message");
    for (size_t i = 0; a == INSPECT_PASS && i < json_array_size(root); i++)
        a = judge_message(in, json_array_get(root, i), ret);
    json_decref(root);
    return a;
}
