/* durward mcp --operator: the daemon's API as an MCP server on standard input and output, for an
 * operator's own agent. What it may do is what the socket's owner, or the token, may. */
#include "api_client.h"
#include "commands.h"
#include "out.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 1 << 20, TEXT_MAX_BYTES = 4 << 20 };

struct asked {
    bool operates, reads, changes;
};

static int cmd_mcp(int argc, char **argv);

static const struct arg_option options[] = {
    {0, "operator", NULL, "the tools of an operator: the log, approvals, sandboxes",
     offsetof(struct asked, operates)},
    {0, "read-only", NULL, "only those that change nothing (the default)",
     offsetof(struct asked, reads)},
    {0, "allow-changes", NULL, "approvals and the end of sandboxes too",
     offsetof(struct asked, changes)},
    {0},
};

const struct command command_mcp = {
    "mcp",
    "--operator [--allow-changes] [--socket PATH]",
    "Be an MCP server for an operator's own agent.",
    options,
    "Speaks the Model Context Protocol on standard input and output. Its tools are calls to the\n"
    "daemon's API: whoever starts it has the rights of the socket's owner, or of DURWARD_TOKEN's\n"
    "scopes. Sandboxes wrote part of what it tells, and a model may take that for a word of "
    "yours:\n"
    "so its tools change nothing unless you say --allow-changes. Agents in sandboxes do not use\n"
    "it; they ask http://durward.internal/.\n\n"
    "  claude mcp add durward -- durward mcp --operator\n",
    cmd_mcp,
};

/* ---- the tools ---- */

enum { PARAMS = 14 };

static const struct tool {
    const char *name, *about, *method, *path; /* path: "{}" stands for the argument `id` */
    bool changes;
    const char *params[PARAMS]; /* of the query; NULL ends them */
} tools[] = {
    {"audit_search",
     "Searches the log of what sandboxes did and what was refused.",
     "GET",
     "/v1/audit/query",
     false,
     {"since", "until", "kind", "sandbox", "policy", "host", "method", "rule", "credential",
      "status", "code", "id", "text", NULL}},
    {"audit_case",
     "All that the log has around one record or sandbox, in order.",
     "GET",
     "/v1/audit/case",
     false,
     {"since", "until", "sandbox", "policy", "host", "code", "id", "text", NULL}},
    {"approvals", "Requests that wait for somebody's word.", "GET", "/v1/approvals", false, {NULL}},
    {"approval_allow",
     "Lets a waiting request go.",
     "POST",
     "/v1/approvals/{}/allow",
     true,
     {NULL}},
    {"approval_deny", "Refuses a waiting request.", "POST", "/v1/approvals/{}/deny", true, {NULL}},
    {"sandboxes", "The daemon's sandboxes.", "GET", "/v1/sandboxes", false, {"state", NULL}},
    {"sandbox", "One sandbox.", "GET", "/v1/sandboxes/{}", false, {NULL}},
    {"sandbox_delete",
     "Ends a sandbox and removes its files.",
     "DELETE",
     "/v1/sandboxes/{}",
     true,
     {NULL}},
};

static bool takes_id(const struct tool *t)
{
    return strstr(t->path, "{}") != NULL;
}

static bool may(const struct asked *o, const struct tool *t)
{
    return !t->changes || (o->changes && !o->reads);
}

static json_t *tool_listed(const struct tool *t)
{
    json_t *properties = json_object();
    for (size_t i = 0; t->params[i]; i++)
        json_object_set_new(properties, t->params[i], json_pack("{s:s}", "type", "string"));
    if (takes_id(t))
        json_object_set_new(properties, "id", json_pack("{s:s}", "type", "string"));
    json_t *schema = json_pack("{s:s, s:o, s:b}", "type", "object", "properties", properties,
                               "additionalProperties", 0);
    if (takes_id(t))
        json_object_set_new(schema, "required", json_pack("[s]", "id"));
    return json_pack("{s:s, s:s, s:o, s:{s:b, s:b}}", "name", t->name, "description", t->about,
                     "inputSchema", schema, "annotations", "readOnlyHint", !t->changes,
                     "destructiveHint", t->changes);
}

static const struct tool *tool_find(const struct asked *o, const char *name)
{
    for (size_t i = 0; name && i < ARRAY_LEN(tools); i++)
        if (strcmp(tools[i].name, name) == 0 && may(o, &tools[i]))
            return &tools[i];
    return NULL;
}

/* The path with id and query, each percent-encoded. -1: an argument is missing, or none that it
 * takes. */
static int tool_path(const struct tool *t, const json_t *arguments, struct buf *to, struct err *err)
{
    const char *mark = strstr(t->path, "{}"), *key;
    const char *id = json_string_value(json_object_get(arguments, "id"));
    size_t query = 0;
    json_t *value;
    if (mark && (id == NULL || id[0] == 0))
        return err_set(err, ERR_PARSE, "'id' is missing");
    int r = buf_append(to, t->path, mark ? (size_t)(mark - t->path) : strlen(t->path));
    if (mark)
        api_quote(to, id);
    if (mark && r == 0)
        r = buf_append_str(to, mark + 2);
    json_object_foreach((json_t *)(uintptr_t)arguments, key, value)
    {
        bool known = mark && strcmp(key, "id") == 0;
        for (size_t i = 0; !known && t->params[i]; i++)
            if (strcmp(t->params[i], key) == 0 && json_is_string(value)) {
                r |= buf_printf(to, "%c%s=", query++ ? '&' : '?', key);
                api_quote(to, json_string_value(value));
                known = true;
            }
        if (!known)
            return err_set(err, ERR_PARSE, "'%.60s' is not a text that this tool takes", key);
    }
    return r < 0 || buf_append(to, "", 1) < 0 ? err_set(err, ERR_LIMIT, "too long") : 0;
}

static json_t *result(const char *text, bool error)
{
    return json_pack("{s:[{s:s, s:s}], s:b}", "content", "type", "text", "text", text, "isError",
                     error);
}

static json_t *tool_call(const struct args *a, const struct tool *t, const json_t *arguments)
{
    struct err err = {0};
    struct buf path;
    json_t *reply = NULL, *ret;
    buf_init(&path, 16 * 1024);
    int bad = tool_path(t, arguments, &path, &err) < 0 ||
              api_call(a->socket, t->method, (const char *)buf_data(&path), NULL, &reply, &err) < 0;
    buf_free(&path);
    char *text = bad ? NULL : json_dumps(reply, JSON_INDENT(1) | JSON_ENCODE_ANY);
    if (text && strlen(text) > TEXT_MAX_BYTES)
        ret = result("the answer is longer than 4 MiB: ask for less", true);
    else
        ret = result(bad ? err.text : text ? text : "", bad);
    free(text);
    json_decref(reply);
    return ret;
}

/* ---- the protocol ---- */

static json_t *begin(const json_t *params)
{
    static const char *const known[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};
    const char *asked = json_string_value(json_object_get(params, "protocolVersion"));
    const char *version = known[ARRAY_LEN(known) - 1];
    for (size_t i = 0; asked && i < ARRAY_LEN(known); i++)
        if (strcmp(asked, known[i]) == 0)
            version = known[i];
    return json_pack("{s:s, s:{s:{}}, s:{s:s, s:s}}", "protocolVersion", version, "capabilities",
                     "tools", "serverInfo", "name", "durward", "version", "1");
}

static json_t *list(const struct asked *o)
{
    json_t *all = json_array();
    for (size_t i = 0; i < ARRAY_LEN(tools); i++)
        if (may(o, &tools[i]))
            json_array_append_new(all, tool_listed(&tools[i]));
    return json_pack("{s:o}", "tools", all);
}

/* NULL: the method, or the tool, is not there. */
static json_t *answer(const struct args *a, const struct asked *o, const json_t *m)
{
    const char *method = json_string_value(json_object_get(m, "method"));
    const json_t *params = json_object_get(m, "params");
    if (strcmp(method, "initialize") == 0)
        return begin(params);
    if (strcmp(method, "ping") == 0)
        return json_object();
    if (strcmp(method, "tools/list") == 0)
        return list(o);
    const struct tool *t = tool_find(o, json_string_value(json_object_get(params, "name")));
    return strcmp(method, "tools/call") == 0 && t
               ? tool_call(a, t, json_object_get(params, "arguments"))
               : NULL;
}

static int say(json_t *m)
{
    char *text = m ? json_dumps(m, JSON_COMPACT) : NULL;
    int r = text && puts(text) >= 0 && fflush(stdout) == 0 ? 0 : -1;
    free(text);
    json_decref(m);
    return r;
}

static json_t *failed(json_t *id, int code, const char *text)
{
    return json_pack("{s:s, s:O, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", id, "error", "code", code,
                     "message", text);
}

/* -1: nobody reads any more. */
static int take(const struct args *a, const struct asked *o, const char *line, size_t n)
{
    json_t *m = json_loadb(line, n, JSON_REJECT_DUPLICATES, NULL), *null = json_null();
    json_t *id = json_object_get(m, "id");
    bool good = json_is_string(json_object_get(m, "method"));
    int r = 0;
    if (!good && !(json_is_object(m) && id)) /* an answer to what was not asked is dropped */
        r = say(failed(null, -32700, "that is not a message of JSON-RPC"));
    else if (good && id) {
        json_t *got = answer(a, o, m);
        r = say(got ? json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", got)
                    : failed(id, -32601, "there is no such method or tool"));
    }
    json_decref(m);
    return r;
}

static int serve(const struct args *a, const struct asked *o)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int r = 0;
    while (r == 0 && (n = getline(&line, &room, stdin)) > 0) {
        if (n > LINE_MAX_BYTES) {
            out_error("a message is longer than 1 MiB");
            r = -1;
        } else if (line[strspn(line, " \t\r\n")] != 0) {
            r = take(a, o, line, (size_t)n);
        }
    }
    free(line);
    return r == 0 ? EXIT_OK : EXIT_NO;
}

static int cmd_mcp(int argc, char **argv)
{
    struct args a = {.cmd = &command_mcp, .argc = argc, .argv = argv};
    struct asked o = {false, false, false};
    int code = args_into(&a, &o);
    if (code != ARGS_END)
        return code;
    if (!o.operates)
        return args_usage(
            a.cmd, "--operator is needed: it says that the server is for an operator's agent");
    if (a.next != argc)
        return args_usage(a.cmd, "unexpected argument %s", argv[a.next]);
    return serve(&a, &o);
}
