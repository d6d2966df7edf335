/* The Model Context Protocol over HTTP: JSON-RPC messages, single or in a batch, each decided by
 * itself. What two readers of JSON could take for different messages is refused. */
#include "inspect_internal.h"
#include "mcp.h"
#include "mcp_pins.h"

#include <stdio.h>
#include <string.h>

enum { MESSAGES_MAX = 64, DEPTH_MAX = 64, ID_MAX = 128, NAME_SHOWN = 64, NAMES_SHOWN = 8 };

static const char code[] = "mcp", no_message[] = "no JSON-RPC message",
                  mcp_unlisted[] = "not_listed_yet";

struct mcp_reading {
    const struct mcp_rules *rules;
    const struct inspect_request *head;
    struct inspect_result *ret;
    size_t n_calls; /* bytes of ret->calls */
    bool refused;   /* by an earlier message: its detail stays */
};

/* ---- what is said of a message: method, name, names of arguments; never a value ---- */

static void mcp_put(char *to, const char *text, size_t most)
{
    size_t at = strlen(to), n = 0;
    for (; text[n] && n < most && at + 1 < INSPECT_DETAIL_MAX; n++, at++) {
        char c = text[n];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     strchr("_-./:", c);
        to[at] = plain ? c : '?';
    }
    to[at] = 0;
}

static void mcp_put_plain(char *to, const char *text)
{
    size_t at = strlen(to);
    snprintf(to + at, INSPECT_DETAIL_MAX - at, "%s", text);
}

static void mcp_put_arguments(char *to, const json_t *arguments)
{
    size_t n = 0;
    for (void *it = json_object_iter((json_t *)(uintptr_t)arguments); it && n < NAMES_SHOWN;
         it = json_object_iter_next((json_t *)(uintptr_t)arguments, it), n++) {
        mcp_put_plain(to, n ? ", " : " (");
        mcp_put(to, json_object_iter_key(it), NAME_SHOWN / 2);
    }
    if (n)
        mcp_put_plain(to, json_object_size(arguments) > n ? ", ...)" : ")");
}

/* pointer: the condition that did not hold, or NULL. */
static void mcp_describe(const struct mcp_reading *r, const char *method, const char *name,
                         const json_t *arguments, const char *pointer)
{
    char *to = r->ret->detail;
    to[0] = 0;
    mcp_put(to, method, NAME_SHOWN);
    if (name) {
        mcp_put_plain(to, " ");
        mcp_put(to, name, NAME_SHOWN);
    }
    if (pointer) {
        mcp_put_plain(to, ": ");
        mcp_put(to, pointer, NAME_SHOWN / 2);
    }
    mcp_put_arguments(to, arguments);
}

static enum inspect_answer mcp_refuse(struct mcp_reading *r, const char *method, const char *name,
                                      const json_t *arguments, const char *pointer)
{
    if (!r->refused)
        mcp_describe(r, method, name, arguments, pointer);
    r->refused = true;
    r->ret->status = 403;
    r->ret->code = code;
    return INSPECT_REFUSED;
}

/* ---- one message ---- */

/* "tools/call" in other letters: a server that folds case would act on it. */
static bool mcp_is(const char *method, const char *name, bool *doubtful)
{
    if (strcmp(method, name) == 0)
        return true;
    *doubtful = *doubtful || body_json_same(method, name);
    return false;
}

static const char *mcp_text_of(const json_t *params, const char *key)
{
    const char *text = json_string_value(json_object_get(params, key));
    return text && !body_json_twisted(params, key) ? text : NULL;
}

/* Why the tool is not to be taken for what a list showed; NULL: nothing speaks against it. */
static const char *mcp_doubt(const struct mcp_reading *r, const struct mcp_tool *tool,
                             const char *name)
{
    const struct inspect_request *head = r->head;
    if (r->rules->changed == MCP_CHANGED_PASS || head->pins == NULL)
        return NULL;
    const struct mcp_tool_at at = {head->sandbox, head->place, name, tool->sha256};
    enum mcp_pin pin = mcp_pins_look(head->pins, &at);
    if (pin == MCP_PIN_NEW)
        return tool->sha256 ? mcp_unlisted : NULL;
    return pin == MCP_PIN_SAME ? NULL : "changed";
}

static enum inspect_answer mcp_call(struct mcp_reading *r, const json_t *params)
{
    static const char method[] = "tools/call";
    const char *name = mcp_text_of(params, "name");
    const json_t *arguments = json_object_get(params, "arguments");
    if (name == NULL || body_json_twisted(params, "arguments") ||
        (arguments && !json_is_object(arguments)))
        return mcp_refuse(r, method, name, NULL, NULL);
    const struct mcp_tool *tool = mcp_tool_find(r->rules, slice_str(name));
    if (tool == NULL)
        return mcp_refuse(r, method, name, arguments, NULL);
    const struct mcp_condition *unmet = mcp_unmet(tool, arguments);
    if (unmet)
        return mcp_refuse(r, method, name, arguments, unmet->pointer);
    const char *doubt = mcp_doubt(r, tool, name);
    if (doubt && (doubt == mcp_unlisted || r->rules->changed == MCP_CHANGED_REFUSE))
        return mcp_refuse(r, method, name, arguments, doubt);
    bool ask = tool->ask || doubt;
    if (ask && r->ret->ask) /* whoever approves is shown one call, and would allow two */
        return mcp_refuse(r, method, name, arguments, NULL);
    if (tool->budget && r->ret->budget) /* one question to the ledger is one call */
        return mcp_refuse(r, method, name, arguments, NULL);
    if (tool->budget)
        r->ret->budget = tool->budget;
    if (!r->refused && (r->ret->detail[0] == 0 || (ask && !r->ret->ask)))
        mcp_describe(r, method, name, arguments, doubt);
    r->ret->ask = r->ret->ask || ask;
    return INSPECT_PASS;
}

static bool mcp_always_passes(const struct mcp_rules *rules, const char *method, bool *doubtful)
{
    static const char *const all[] = {"initialize", "ping", "tools/list", "server/discover",
                                      "subscriptions/listen"};
    static const char *const resources[] = {"resources/list", "resources/templates/list"};
    bool is = strncmp(method, "notifications/", 14) == 0;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        is = is || mcp_is(method, all[i], doubtful);
    for (size_t i = 0; i < ARRAY_LEN(resources) && rules->by_resource; i++)
        is = is || mcp_is(method, resources[i], doubtful);
    return is || (rules->by_prompt && mcp_is(method, "prompts/list", doubtful));
}

static enum inspect_answer mcp_named(struct mcp_reading *r, const char *method, const char *name,
                                     bool allowed)
{
    if (!allowed)
        return mcp_refuse(r, method, name, NULL, NULL);
    if (!r->refused && r->ret->detail[0] == 0)
        mcp_describe(r, method, name, NULL, NULL);
    return INSPECT_PASS;
}

/* What it subscribes to are resources, as in resources/subscribe of older versions. */
static bool mcp_listens_allowed(const struct mcp_rules *rules, const json_t *params)
{
    const json_t *wanted = json_object_get(params, "notifications");
    const json_t *list = json_object_get(wanted, "resourceSubscriptions");
    if (body_json_twisted(params, "notifications") ||
        (wanted && body_json_twisted(wanted, "resourceSubscriptions")) ||
        (list && !json_is_array(list)))
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *uri = json_string_value(json_array_get(list, i));
        if (uri == NULL || !rules->by_resource ||
            !mcp_text_allowed(&rules->resources, slice_str(uri)))
            return false;
    }
    return true;
}

static enum inspect_answer mcp_method(struct mcp_reading *r, const char *method,
                                      const json_t *params)
{
    static const char *const reading[] = {"resources/read", "resources/subscribe",
                                          "resources/unsubscribe"};
    bool doubtful = false, reads = false;
    if (mcp_is(method, "tools/call", &doubtful))
        return mcp_call(r, params);
    for (size_t i = 0; i < ARRAY_LEN(reading); i++)
        reads = mcp_is(method, reading[i], &doubtful) || reads;
    if (reads && r->rules->by_resource) {
        const char *uri = mcp_text_of(params, "uri");
        return mcp_named(r, method, uri,
                         uri && mcp_text_allowed(&r->rules->resources, slice_str(uri)));
    }
    if (mcp_is(method, "prompts/get", &doubtful) && r->rules->by_prompt) {
        const char *name = mcp_text_of(params, "name");
        return mcp_named(r, method, name,
                         name && mcp_name_allowed(&r->rules->prompts, slice_str(name)));
    }
    if (mcp_is(method, "subscriptions/listen", &doubtful) && !mcp_listens_allowed(r->rules, params))
        return mcp_refuse(r, method, NULL, NULL, NULL);
    bool passes = mcp_always_passes(r->rules, method, &doubtful) ||
                  mcp_name_allowed(&r->rules->methods, slice_str(method));
    return mcp_named(r, method, NULL, passes && !doubtful);
}

/* "r17\n": for the answer, should we give one. 0, or -1 when it is no id. */
static int mcp_note_id(struct mcp_reading *r, const json_t *id, bool call)
{
    const json_int_t most = (json_int_t)1 << 53; /* what every reader of JSON takes for the same */
    char *to = r->ret->calls;
    if (json_is_integer(id) ? json_integer_value(id) > most || json_integer_value(id) < -most
                            : !json_is_string(id) || json_string_length(id) > ID_MAX)
        return -1;
    if (r->n_calls + 3 >= INSPECT_CALLS)
        return -1;
    size_t room = INSPECT_CALLS - r->n_calls - 3;
    size_t n = json_dumpb(id, to + r->n_calls + 1, room, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    if (n == 0 || n > room)
        return -1;
    to[r->n_calls] = call ? 'c' : 'r';
    r->n_calls += n + 1;
    to[r->n_calls++] = '\n';
    to[r->n_calls] = 0;
    return 0;
}

static bool mcp_is_message(const json_t *m)
{
    static const char *const keys[] = {"jsonrpc", "id", "method", "params", "result", "error"};
    const char *version = json_string_value(json_object_get(m, "jsonrpc"));
    const json_t *params = json_object_get(m, "params");
    return json_is_object(m) && body_json_only(m, keys, ARRAY_LEN(keys)) && version &&
           strcmp(version, "2.0") == 0 && (params == NULL || json_is_object(params));
}

/* -1: it is none, and the whole body is refused without an id. */
static int mcp_message(struct mcp_reading *r, const json_t *m)
{
    if (!mcp_is_message(m))
        return -1;
    const json_t *method = json_object_get(m, "method"), *id = json_object_get(m, "id");
    bool answers = json_object_get(m, "result") || json_object_get(m, "error");
    if (method == NULL)
        return answers && !json_object_get(m, "params") ? 0 : -1; /* to what the server asked */
    if (!json_is_string(method) || answers)
        return -1;
    const char *name = json_string_value(method);
    bool notifies = strncmp(name, "notifications/", 14) == 0;
    if (notifies != (id == NULL)) /* what would be done, and never answered */
        return -1;
    if (id && mcp_note_id(r, id, strcmp(name, "tools/call") == 0) < 0)
        return -1;
    (void)mcp_method(r, name, json_object_get(m, "params"));
    return 0;
}

/* ---- the body ---- */

/* How deep brackets stand in one another outside of texts. */
static bool mcp_too_deep(struct slice s)
{
    size_t depth = 0;
    bool in = false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (in && c == '\\')
            i++;
        else if (c == '"')
            in = !in;
        else if (!in && (c == '[' || c == '{') && ++depth > DEPTH_MAX)
            return true;
        else if (!in && (c == ']' || c == '}') && depth > 0)
            depth--;
    }
    return false;
}

static enum inspect_answer mcp_no_message(struct inspect_result *ret)
{
    ret->calls[0] = 0;
    ret->ask = false;
    return inspect_refuse(ret, 403, code, no_message);
}

/* For an answer with another status than 200. */
static void mcp_note_number(const json_t *id, struct inspect_result *ret)
{
    const json_int_t most = (json_int_t)1 << 53;
    if (json_is_integer(id) && json_integer_value(id) >= 0 && json_integer_value(id) <= most)
        snprintf(ret->rpc_id, sizeof ret->rpc_id, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
}

static enum inspect_answer mcp_messages(const struct inspection *in,
                                        const struct inspect_request *head, const json_t *root,
                                        struct inspect_result *ret)
{
    struct mcp_reading r = {.rules = in->mcp, .head = head, .ret = ret};
    bool batch = json_is_array(root);
    size_t n = batch ? json_array_size(root) : 1;
    ret->batch = batch;
    mcp_note_number(json_object_get(root, "id"), ret);
    if (n > MESSAGES_MAX)
        return inspect_refuse(ret, 413, "too_large_to_inspect", "messages");
    for (size_t i = 0; i < n; i++)
        if (mcp_message(&r, batch ? json_array_get(root, i) : root) < 0)
            return mcp_no_message(ret);
    if (n == 0)
        return mcp_no_message(ret);
    if (!mcp_fields_agree(in->mcp, head, root) && !r.refused)
        return inspect_refuse(ret, 403, code,
                              "Mcp-Method, Mcp-Name or Mcp-Param is not the message's");
    if (n > 1 && !r.refused) { /* for whoever is asked because the rule asks of all */
        char first[INSPECT_DETAIL_MAX];
        memcpy(first, ret->detail, sizeof first);
        snprintf(ret->detail, sizeof ret->detail, "%zu messages, one is %.100s", n, first);
    }
    return r.refused ? INSPECT_REFUSED : INSPECT_PASS;
}

enum inspect_answer inspect_mcp_body(const struct inspection *in, const struct inspect_request *r,
                                     struct slice body, struct inspect_result *ret)
{
    json_t *root;
    *ret = (struct inspect_result){.rpc_id = ""};
    if (mcp_too_deep(body))
        return inspect_refuse(ret, 400, "body_ambiguous", "nested too deep");
    if (inspect_json(body, &root, ret) < 0)
        return INSPECT_REFUSED;
    enum inspect_answer a = mcp_messages(in, r, root, ret);
    json_decref(root);
    return a;
}
