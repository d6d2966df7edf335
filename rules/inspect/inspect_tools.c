/* Tools that a model's provider runs itself, asked for in a request to the model: what they fetch
 * or execute passes no gate of ours. Every tool that is not known to be run by the client counts,
 * wherever in the body it stands (batches and sessions nest requests). */
#include "inspect_internal.h"

#include <stdio.h>
#include <string.h>

static const char code[] = "server_tool";

/* Types of tools that the client runs, or that only choose among those; "*" ends a family. */
static const char *const client_types[] = {
    "function",      "custom",   "local_shell",  "apply_patch", "bash_*",
    "text_editor_*", "memory_*", "computer_20*", "namespace",   "tool_search*",
};

/* Keys of a tool without a type: Anthropic's own shape, and Google's declarations. */
static const char *const client_keys[] = {
    "name",
    "description",
    "input_schema",
    "cache_control",
    "strict",
    "defer_loading",
    "allowed_callers",
    "input_examples",
    "eager_input_streaming",
    "function_declarations",
    "functionDeclarations",
};

/* Keys of a request that ask for such a tool without naming it in `tools`. */
static const struct {
    const char *key, *tool; /* lower case */
} switches[] = {
    {"mcp_servers", "mcp_servers"},
    {"web_search_options", "web_search"},
    {"search_parameters", "web_search"},
    {"input_file_id", "batch"},
};

struct walk {
    const struct inspection *in;
    struct inspect_result *ret;
};

/* "web_search" in a rule is also web_search_20250305 and web_search_preview. */
static bool tool_allowed(const struct inspection *in, const char *type)
{
    for (size_t i = 0; i < in->tools.n; i++) {
        const char *known = in->tools.list[i];
        size_t n = strlen(known);
        if (strncmp(type, known, n) == 0 && (type[n] == 0 || type[n] == '_'))
            return true;
    }
    return false;
}

static bool client_type(const char *type)
{
    for (size_t i = 0; i < ARRAY_LEN(client_types); i++) {
        const char *known = client_types[i];
        size_t n = strlen(known);
        if (known[n - 1] == '*' ? strncmp(type, known, n - 1) == 0 : strcmp(type, known) == 0)
            return true;
    }
    return false;
}

static bool client_key(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(client_keys); i++)
        if (strcmp(key, client_keys[i]) == 0)
            return true;
    return false;
}

static enum inspect_answer want_tool(const struct walk *w, const char *name)
{
    return tool_allowed(w->in, name) ? INSPECT_PASS : inspect_refuse(w->ret, 403, code, name);
}

static enum inspect_answer judge_tool(const struct walk *w, const json_t *tool)
{
    const json_t *type = json_object_get(tool, "type");
    enum inspect_answer a = INSPECT_PASS;
    if (!json_is_object(tool) || body_json_twisted(tool, "type") || (type && !json_is_string(type)))
        return inspect_refuse(w->ret, 403, code, "a tool of no known form");
    if (type)
        return client_type(json_string_value(type)) ? INSPECT_PASS
                                                    : want_tool(w, json_string_value(type));
    for (void *it = json_object_iter((json_t *)(uintptr_t)tool); it && a == INSPECT_PASS;
         it = json_object_iter_next((json_t *)(uintptr_t)tool, it))
        if (!client_key(json_object_iter_key(it)))
            a = want_tool(w, json_object_iter_key(it));
    return a;
}

/* Google's reader takes one object for a list of one. A schema may have a property of this name, so
 * that only the names it knows count here. */
static enum inspect_answer judge_single(const struct walk *w, const json_t *tool)
{
    static const char *const names[] = {"google",         "code_execution", "codeExecution",
                                        "url_context",    "urlContext",     "computer_use",
                                        "computerUse",    "file_search",    "fileSearch",
                                        "enterprise_web", "enterpriseWeb"};
    for (void *it = json_object_iter((json_t *)(uintptr_t)tool); it;
         it = json_object_iter_next((json_t *)(uintptr_t)tool, it)) {
        const char *key = json_object_iter_key(it);
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
            if (strncmp(key, names[i], strlen(names[i])) == 0 && want_tool(w, key) != INSPECT_PASS)
                return INSPECT_REFUSED;
    }
    return INSPECT_PASS;
}

/* OpenRouter's: the web is searched for a model of that name. */
static enum inspect_answer judge_model(const struct walk *w, const json_t *v)
{
    static const char online[] = ":online";
    const char *name = json_string_value(v);
    size_t n = json_string_length(v), end = sizeof online - 1;
    return name && n >= end && body_json_same(name + n - end, online) ? want_tool(w, "web_search")
                                                                      : INSPECT_PASS;
}

/* OpenRouter's too: a list of objects. Other things have this name in what tools take. */
static bool is_plugins(const char *key, const json_t *v)
{
    bool some = false;
    for (size_t i = 0; json_is_array(v) && i < json_array_size(v); i++)
        some = some || json_is_object(json_array_get(v, i));
    return some && body_json_same(key, "plugins");
}

static bool is_empty(const json_t *v)
{
    return json_is_null(v) || (json_is_array(v) && json_array_size(v) == 0);
}

static enum inspect_answer judge_member(const struct walk *w, const char *key, const json_t *v)
{
    enum inspect_answer a = INSPECT_PASS;
    for (size_t i = 0; i < ARRAY_LEN(switches) && a == INSPECT_PASS; i++)
        if (body_json_same(key, switches[i].key) && !is_empty(v))
            a = want_tool(w, switches[i].tool);
    if (a == INSPECT_PASS && is_plugins(key, v))
        a = want_tool(w, "web_search");
    if (a == INSPECT_PASS && body_json_same(key, "model"))
        a = judge_model(w, v);
    if (body_json_same(key, "models"))
        for (size_t i = 0; json_is_array(v) && a == INSPECT_PASS && i < json_array_size(v); i++)
            a = judge_model(w, json_array_get(v, i));
    if (!body_json_same(key, "tools"))
        return a;
    if (json_is_object(v) && a == INSPECT_PASS)
        a = judge_single(w, v);
    for (size_t i = 0; json_is_array(v) && a == INSPECT_PASS && i < json_array_size(v); i++)
        a = judge_tool(w, json_array_get(v, i));
    return a;
}

/* Depth is bounded by the JSON reader's own bound. */
static enum inspect_answer walk(const struct walk *w, const json_t *v)
{
    enum inspect_answer a = INSPECT_PASS;
    for (size_t i = 0; json_is_array(v) && a == INSPECT_PASS && i < json_array_size(v); i++)
        a = walk(w, json_array_get(v, i));
    if (!json_is_object(v))
        return a;
    for (void *it = json_object_iter((json_t *)(uintptr_t)v); it && a == INSPECT_PASS;
         it = json_object_iter_next((json_t *)(uintptr_t)v, it)) {
        a = judge_member(w, json_object_iter_key(it), json_object_iter_value(it));
        if (a == INSPECT_PASS)
            a = walk(w, json_object_iter_value(it));
    }
    return a;
}

enum inspect_answer inspect_tools_judge(const struct inspection *in, const json_t *root,
                                        struct inspect_result *ret)
{
    struct walk w = {in, ret};
    return walk(&w, root);
}

enum inspect_answer inspect_tools_body(const struct inspection *in, struct slice body,
                                       struct inspect_result *ret)
{
    json_t *root;
    if (inspect_json(body, &root, ret) < 0)
        return INSPECT_REFUSED;
    enum inspect_answer a = inspect_tools_judge(in, root, ret);
    json_decref(root);
    return a;
}
