/* One message of a server, changed where the rule says so. */
#include <stdio.h>
#include <string.h>

#include "body_json.h"
#include "mcp_error.h"
#include "mcp_message.h"

/* A method that no client knows: it answers the server that it cannot, and the server goes on. */
static const char refused[] = "durward/refused";
enum { URL_ELICITATION = -32042 };

/* ---- what tools were ---- */

static void note(const struct mcp_view *v, struct mcp_changes *changes, const char *what,
                 const char *name, const char *hash)
{
    size_t at = strlen(changes->notes), n = 0;
    char plain[65];
    if (v->holds_secret && v->holds_secret(v->arg, slice_str(name)))
        name = "(withheld)";
    for (; name[n] && n < sizeof plain - 1; n++)
        plain[n] = name[n];
    plain[n] = 0;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)plain[i] < 0x21 || (unsigned char)plain[i] > 0x7e || plain[i] == ';')
            plain[i] = '?';
    if (at + n + strlen(hash) + 16 < sizeof changes->notes)
        snprintf(changes->notes + at, sizeof changes->notes - at, "%s%s %s %s", at ? "; " : "",
                 what, plain, hash);
}

/* By what the policy says it has to be, else by what it was. */
static bool tool_differs(const struct mcp_view *v, const struct mcp_tool *tool, const char *name,
                         const json_t *entry, struct mcp_changes *changes)
{
    char hash[MCP_PIN_TEXT + 1];
    if (!mcp_pin_hash(entry, hash))
        return true;
    enum mcp_pin pin = mcp_pins_see(
        v->pins, &(struct mcp_tool_at){v->sandbox, v->place, name, tool->sha256}, hash);
    bool differs = pin == MCP_PIN_CHANGED || pin == MCP_PIN_FULL;
    changes->changed += differs;
    if (differs || pin == MCP_PIN_NEW)
        note(v, changes, differs ? "changed" : "pinned", name, hash);
    return differs;
}

static bool tool_allowed(const struct mcp_view *v, const char *name, const json_t *entry,
                         struct mcp_changes *changes)
{
    const struct mcp_tool *tool = mcp_tool_find(v->rules, slice_str(name));
    if (tool == NULL || v->pins == NULL)
        return tool != NULL;
    bool differs = tool_differs(v, tool, name, entry, changes);
    return !differs || v->rules->changed != MCP_CHANGED_REFUSE;
}

/* ---- lists ---- */

static bool list_allows(const struct mcp_view *v, const char *list, const json_t *entry,
                        struct mcp_changes *changes)
{
    const struct mcp_rules *rules = v->rules;
    bool tools = strcmp(list, "tools") == 0, resources = strcmp(list, "resources") == 0;
    const char *key = resources ? "uri" : "name";
    const char *name = json_string_value(json_object_get(entry, key));
    if (name == NULL || body_json_twisted(entry, key))
        return false;
    struct slice s = slice_str(name);
    return tools       ? tool_allowed(v, name, entry, changes)
           : resources ? mcp_text_allowed(&rules->resources, s)
                       : mcp_name_allowed(&rules->prompts, s);
}

static void cut_list(const struct mcp_view *v, json_t *result, const char *list,
                     struct mcp_changes *changes)
{
    json_t *entries = json_object_get(result, list);
    size_t n = json_array_size(entries), kept = 0;
    for (size_t i = 0; i < n; i++) {
        json_t *e = json_array_get(entries, i);
        if (list_allows(v, list, e, changes))
            (void)json_array_set(entries, kept++, e); /* kept <= i: each moves once */
    }
    changes->hidden += (unsigned)(n - kept);
    while (json_array_size(entries) > kept)
        (void)json_array_remove(entries, json_array_size(entries) - 1);
}

/* Which request it answers is not asked: a stream that was taken up again does not tell. */
static bool cut_result(const struct mcp_view *v, json_t *result, struct mcp_changes *changes)
{
    const struct mcp_rules *rules = v->rules;
    const struct {
        const char *list;
        bool decided;
    } lists[] = {{"tools", true}, {"resources", rules->by_resource}, {"prompts", rules->by_prompt}};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        if (!lists[i].decided)
            continue;
        if (body_json_twisted(result, lists[i].list))
            return false;
        cut_list(v, result, lists[i].list, changes);
    }
    return true;
}

static bool server_may(const struct mcp_rules *rules, const char *method, bool *doubtful)
{
    const struct {
        const char *method;
        bool no;
    } asked[] = {{"sampling/createmessage", rules->no_sampling},
                 {"elicitation/create", rules->no_elicitation},
                 {"roots/list", rules->no_roots}};
    static const char *const spelled[] = {"sampling/createMessage", "elicitation/create",
                                          "roots/list"};
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        if (!asked[i].no || !body_json_same(method, asked[i].method))
            continue;
        *doubtful = strcmp(method, spelled[i]) != 0;
        return false;
    }
    return true;
}

/* What the client would ask in place of an answer is none of its business. */
static bool put_error(json_t *m, struct mcp_changes *changes)
{
    changes->refused++;
    (void)json_object_del(m, "result");
    return json_object_set_new(m, "error",
                               json_pack("{s:i, s:s}", "code", MCP_ERROR_REFUSED, "message",
                                         "Durward denied this request: the policy does not let the "
                                         "server ask its client for this")) == 0;
}

/* Requests in what should answer, or in what tells of a task (2026-07-28). False: in doubt. */
static bool asks_within(const struct mcp_rules *rules, const json_t *in, bool *refused_one)
{
    json_t *asked = json_object_get(in, "inputRequests");
    bool doubtful = json_is_object(in) && body_json_twisted(in, "inputRequests");
    for (void *it = json_object_iter(asked); it; it = json_object_iter_next(asked, it)) {
        const json_t *request = json_object_iter_value(it);
        const char *method = json_string_value(json_object_get(request, "method"));
        doubtful = doubtful || method == NULL || body_json_twisted(request, "method");
        *refused_one = *refused_one || (method && !server_may(rules, method, &doubtful));
    }
    return !doubtful;
}

/* An error that sends the client's user to a URL, and asks for the request again. */
static bool asks_by_error(const struct mcp_rules *rules, const json_t *error, bool *refused_one)
{
    const json_t *code = json_object_get(error, "code");
    if (!rules->no_elicitation || !json_is_object(error))
        return true;
    *refused_one = json_number_value(code) == URL_ELICITATION;
    return (code == NULL || json_is_number(code)) && !body_json_twisted(error, "code");
}

/* A notification or a request, which may itself be refused, or asks for what is. */
static bool change_method(const struct mcp_rules *rules, json_t *m, const char *method,
                          struct mcp_changes *changes)
{
    bool doubtful = false, refused_one = false;
    if (!asks_within(rules, json_object_get(m, "params"), &refused_one))
        return false;
    if (server_may(rules, method, &doubtful) && !refused_one)
        return true;
    changes->refused++;
    (void)json_object_del(m, "params");
    return !doubtful && json_object_set_new(m, "method", json_string(refused)) == 0;
}

static bool change_one(const struct mcp_view *v, json_t *m, struct mcp_changes *changes)
{
    const struct mcp_rules *rules = v->rules;
    static const char *const names[] = {"jsonrpc", "id", "method", "params", "result", "error"};
    bool refused_one = false;
    if (!json_is_object(m))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (body_json_twisted(m, names[i]))
            return false;
    json_t *method = json_object_get(m, "method"), *result = json_object_get(m, "result");
    if (method && (!json_is_string(method) || result))
        return false;
    if (method)
        return change_method(rules, m, json_string_value(method), changes);
    if ((json_is_object(result) && !cut_result(v, result, changes)) ||
        !asks_within(rules, result, &refused_one) ||
        (!refused_one && !asks_by_error(rules, json_object_get(m, "error"), &refused_one)))
        return false;
    return !refused_one || put_error(m, changes);
}

bool mcp_message_change(const struct mcp_view *view, json_t *root, struct mcp_changes *changes)
{
    if (!json_is_array(root))
        return change_one(view, root, changes);
    for (size_t i = 0; i < json_array_size(root); i++)
        if (!change_one(view, json_array_get(root, i), changes))
            return false;
    return true;
}
