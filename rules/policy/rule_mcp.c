/* `mcp` of a rule: tools with what is asked of their arguments, methods, resources, prompts, what
 * a refusal is, and what the server may ask of the client. */
#include "arena.h"
#include "budget.h"
#include "mcp.h"
#include "mcp_pins.h"
#include "rule.h"

#include <math.h>
#include <string.h>

static int read_scalar(struct arena *a, const struct node *n, struct mcp_scalar *ret,
                       struct err *err)
{
    const json_t *v = n->value;
    *ret = (struct mcp_scalar){.kind = MCP_NULL};
    if (json_is_string(v)) {
        ret->kind = MCP_TEXT;
        ret->text = arena_str(a, json_string_value(v));
    } else if (json_is_number(v)) {
        ret->kind = MCP_NUMBER;
        ret->number = json_number_value(v);
        json_int_t whole = json_is_integer(v) ? json_integer_value(v) : 0,
                   most = (json_int_t)1 << 53;
        if (whole > most || whole < -most || !isfinite(ret->number) ||
            fabs(ret->number) > (double)most)
            return node_fail(n, err, "a number is at most 2^53");
    } else if (json_is_boolean(v)) {
        ret->kind = json_is_true(v) ? MCP_TRUE : MCP_FALSE;
    } else if (!json_is_null(v)) {
        return node_fail(n, err, "a text, a number, true, false or null");
    }
    return 0;
}

static int read_one_of(struct arena *a, const struct node *n, struct mcp_condition *c,
                       struct err *err)
{
    size_t count = json_array_size(n->value);
    if (node_is_array(n, err) < 0)
        return -1;
    if (count == 0 || count > 256)
        return node_fail(n, err, "one to 256 values");
    struct mcp_scalar *values = arena_zalloc(a, count, sizeof *values);
    for (size_t i = 0; i < count; i++) {
        struct node item = node_item(n, i);
        if (read_scalar(a, &item, &values[i], err) < 0)
            return -1;
    }
    c->values = values;
    c->n_values = count;
    return 0;
}

static int read_equals(struct arena *a, const struct node *n, struct mcp_condition *c,
                       struct err *err)
{
    struct mcp_scalar *value = arena_zalloc(a, 1, sizeof *value);
    c->values = value;
    c->n_values = 1;
    return read_scalar(a, n, value, err);
}

static int read_range(const struct node *n, struct mcp_condition *c, struct err *err)
{
    const json_t *least = json_array_get(n->value, 0), *most = json_array_get(n->value, 1);
    if (json_array_size(n->value) != 2 || !json_is_number(least) || !json_is_number(most) ||
        json_number_value(least) > json_number_value(most))
        return node_fail(n, err, "'range' is a list of two numbers, the smaller one first");
    c->least = json_number_value(least);
    c->most = json_number_value(most);
    return 0;
}

static const struct key condition_keys[] = {
    KEY("equals", OWN, "", ""), KEY("one_of", OWN, "", ""),      KEY("pattern", OWN, "", ""),
    KEY("range", OWN, "", ""),  KEY("absent", AS(bool), "", ""),
};

/* {one_of: [a, b], absent: true} */
static int read_condition(struct arena *a, const struct node *n, struct mcp_condition *c,
                          struct err *err)
{
    struct node equals, one_of, pattern, range, absent;
    bool is_absent = false;
    if (node_is_object(n, err) < 0 || node_keys(n, KEYS(condition_keys), err) < 0)
        return -1;
    bool has[] = {node_get(n, "equals", &equals), node_get(n, "one_of", &one_of),
                  node_get(n, "pattern", &pattern), node_get(n, "range", &range)};
    if (node_get(n, "absent", &absent) && node_bool(&absent, &is_absent, err) < 0)
        return -1;
    int tests = has[0] + has[1] + has[2] + has[3];
    if (tests > 1 || (tests == 0 && !is_absent))
        return node_fail(n, err,
                         "say one of equals, one_of, pattern and range; 'absent: true' goes alone "
                         "or beside one");
    c->may_be_absent = is_absent;
    c->test = has[0] || has[1] ? MCP_IS_ONE_OF
              : has[2]         ? MCP_MATCHES
              : has[3]         ? MCP_IN_RANGE
                               : MCP_IS_ABSENT;
    if (has[0])
        return read_equals(a, &equals, c, err);
    if (has[1])
        return read_one_of(a, &one_of, c, err);
    if (has[2])
        return rule_words_read(a, &pattern, RULE_WORDS_PATTERNS, &c->patterns, err);
    return has[3] ? read_range(&range, c, err) : 0;
}

static int check_pointer(const struct node *n, const char *p, struct err *err)
{
    if (p[0] != '/' || strlen(p) > MCP_POINTER_MAX)
        return node_fail(n, err, "'%.60s' is not a JSON pointer; write /NAME, at most %d bytes", p,
                         MCP_POINTER_MAX);
    for (const char *t = strchr(p, '~'); t; t = strchr(t + 1, '~'))
        if (t[1] != '0' && t[1] != '1')
            return node_fail(n, err, "'%.60s': '~' is written ~0, '/' in a name ~1", p);
    return 0;
}

static int read_arguments(struct arena *a, const struct node *n, struct mcp_tool *tool,
                          struct err *err)
{
    if (node_is_object(n, err) < 0)
        return -1;
    size_t count = json_object_size(n->value), i = 0;
    if (count == 0 || count > MCP_CONDITIONS)
        return node_fail(n, err, "one to %d arguments", MCP_CONDITIONS);
    struct mcp_condition *list = arena_zalloc(a, count, sizeof *list);
    const char *pointer;
    json_t *value;
    json_object_foreach(n->value, pointer, value)
    {
        struct node at;
        (void)node_get(n, pointer, &at);
        if (check_pointer(&at, pointer, err) < 0 || read_condition(a, &at, &list[i], err) < 0)
            return -1;
        list[i++].pointer = arena_str(a, pointer);
    }
    tool->conditions = list;
    tool->n_conditions = count;
    return 0;
}

static const struct key tool_keys[] = {
    KEY("name", OWN, "", ""),      KEY("ask", AS(bool), "", ""), KEY("sha256", OWN, "", ""),
    KEY("arguments", OWN, "", ""), KEY("calls", OWN, "", ""),
};

/* A counter is of this tool at what the rule names: another rule's tool of that name has its own,
 * and who changes an amount goes on with the count. */
static int read_calls(struct arena *a, const struct node *n, const struct node *tool,
                      const struct node *rule, struct mcp_tool *ret, struct err *err)
{
    static const char *const targets[] = {"allow", "ask"};
    struct node of = *tool, at;
    of.value = json_copy(tool->value);
    for (size_t i = 0; i < ARRAY_LEN(targets); i++)
        if (node_get(rule, targets[i], &at))
            json_object_set(of.value, targets[i], at.value);
    json_object_set_new(of.value, "of", json_string("tool"));
    int r = of.value ? budget_read_calls(a, n, &of, &ret->budget, err) : -1;
    json_decref(of.value);
    return r;
}

/* As the log has it: hexadecimal digits, all or the first of them. */
static int read_hash(struct arena *a, const struct node *n, struct mcp_tool *tool, struct err *err)
{
    const char *text;
    if (node_string(n, &text, err) < 0)
        return -1;
    size_t len = strlen(text);
    if (strspn(text, "0123456789abcdef") != len || len < MCP_PIN_LEAST || len > MCP_PIN_TEXT)
        return node_fail(n, err, "'sha256' is %d to %d hexadecimal digits, in small letters",
                         MCP_PIN_LEAST, MCP_PIN_TEXT);
    tool->sha256 = arena_str(a, text);
    return 0;
}

/* NAME, or {name: NAME, ask: true, arguments: {...}, calls: 10/h} */
static int read_tool(struct arena *a, const struct node *n, const struct node *rule,
                     struct mcp_tool *tool, struct err *err)
{
    struct node name = *n, at;
    const char *text;
    if (json_is_object(n->value)) {
        if (node_keys(n, KEYS(tool_keys), err) < 0)
            return -1;
        if (!node_get(n, "name", &name))
            return node_fail(n, err, "a tool needs a 'name'");
        if (node_get(n, "ask", &at) && node_bool(&at, &tool->ask, err) < 0)
            return -1;
        if (node_get(n, "sha256", &at) && read_hash(a, &at, tool, err) < 0)
            return -1;
        if (node_get(n, "arguments", &at) && read_arguments(a, &at, tool, err) < 0)
            return -1;
        if (node_get(n, "calls", &at) && read_calls(a, &at, n, rule, tool, err) < 0)
            return -1;
    }
    if (node_string(&name, &text, err) < 0)
        return -1;
    if (strlen(text) > MCP_PATTERN_MAX)
        return node_fail(&name, err, "'%.60s...' is longer than %d bytes", text, MCP_PATTERN_MAX);
    tool->name = arena_str(a, text);
    return 0;
}

static int read_tools(struct arena *a, const struct node *n, const struct node *rule,
                      struct mcp_rules *m, struct inspection *in, struct err *err)
{
    bool one = json_is_string(n->value);
    if (!one && node_is_array(n, err) < 0)
        return -1;
    size_t count = one ? 1 : json_array_size(n->value);
    if (count > MCP_TOOLS)
        return node_fail(n, err, "more than %d tools", MCP_TOOLS);
    struct mcp_tool *tools = arena_zalloc(a, count + 1, sizeof *tools);
    const char **names = arena_zalloc(a, count + 1, sizeof *names);
    for (size_t i = 0; i < count; i++) {
        struct node item = one ? *n : node_item(n, i);
        if (read_tool(a, &item, rule, &tools[i], err) < 0)
            return -1;
        names[i] = tools[i].name;
    }
    m->tools = tools;
    m->n_tools = count;
    in->tools = (struct word_list){names, count};
    return 0;
}

static const struct key server_keys[] = {
    KEY("sampling", WORDS("pass", "refuse"), "", ""),
    KEY("elicitation", WORDS("pass", "refuse"), "", ""),
    KEY("roots", WORDS("pass", "refuse"), "", ""),
};

/* What a server asks of its client: {sampling: refuse} */
static int read_server(const struct node *n, struct mcp_rules *m, struct err *err)
{
    bool *to[] = {&m->no_sampling, &m->no_elicitation, &m->no_roots};
    if (node_is_object(n, err) < 0 || node_keys(n, KEYS(server_keys), err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(server_keys); i++) {
        size_t word = 0;
        if (node_key_word(n, &server_keys[i], server_keys[i].name, &word, err) < 0)
            return -1;
        *to[i] = word == 1;
    }
    return 0;
}

static int read_lists(struct arena *a, const struct node *n, struct mcp_rules *m, struct err *err)
{
    struct node methods, resources, prompts;
    if (node_get(n, "methods", &methods) &&
        rule_words_read(a, &methods, RULE_WORDS_PATTERNS, &m->methods, err) < 0)
        return -1;
    if (words_have(&m->methods, SLICE("tools/call")))
        return node_fail(&methods, err, "'tools/call' is what 'tools' is about; name the tools");
    m->by_resource = node_get(n, "resources", &resources);
    m->by_prompt = node_get(n, "prompts", &prompts);
    if (m->by_resource &&
        rule_words_read(a, &resources, RULE_WORDS_PATTERNS, &m->resources, err) < 0)
        return -1;
    return m->by_prompt ? rule_words_read(a, &prompts, RULE_WORDS_PATTERNS, &m->prompts, err) : 0;
}

static const struct key mcp_keys[] = {
    KEY("tools", OWN, "", ""),
    KEY("methods", OWN, "", ""),
    KEY("resources", OWN, "", ""),
    KEY("prompts", OWN, "", ""),
    KEY("on_refused", WORDS("error", "result"), "", ""),
    KEY("changed", WORDS("pass", "ask", "refuse"), "", ""),
    KEY("server", OWN, "", ""),
};

int rule_mcp_read(struct arena *a, const struct node *n, const struct node *rule,
                  struct inspection *in, struct err *err)
{
    struct mcp_rules *m = arena_zalloc(a, 1, sizeof *m);
    struct node tools, at;
    size_t word = 0;
    in->kind = INSPECT_MCP;
    in->mcp = m;
    if (node_is_object(n, err) < 0 || node_keys(n, KEYS(mcp_keys), err) < 0)
        return -1;
    if (!node_get(n, "tools", &tools))
        return node_fail(n, err, "'mcp' needs 'tools'; [] allows none");
    if (read_tools(a, &tools, rule, m, in, err) < 0 || read_lists(a, n, m, err) < 0)
        return -1;
    if (node_key_word(n, mcp_keys, "on_refused", &word, err) < 0)
        return -1;
    size_t changed = MCP_CHANGED_PASS;
    for (size_t i = 0; i < m->n_tools; i++)
        if (m->tools[i].sha256)
            changed = MCP_CHANGED_REFUSE;
    if (node_key_word(n, mcp_keys, "changed", &changed, err) < 0)
        return -1;
    m->changed = (enum mcp_changed)changed;
    m->on_refused = word == 1 ? MCP_REFUSAL_RESULT : MCP_REFUSAL_ERROR;
    return node_get(n, "server", &at) ? read_server(&at, m, err) : 0;
}
