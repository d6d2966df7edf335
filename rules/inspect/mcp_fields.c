/* The fields of a request that repeat what its message says (2026-07-28): whoever goes by them must
 * see the same. Which argument an Mcp-Param repeats stands in the tool's schema, which is not known
 * here. So it has to be the value of some argument; and where the tool's arguments are decided, of
 * one by the same name, so that no field says of a decided argument what that does not. */
#include "base64.h"
#include "buf.h"
#include "inspect_internal.h"
#include "mcp.h"

#include <stdio.h>
#include <string.h>

/* Of an argument, and of all below it. */
struct mcp_param {
    const struct inspect_field *field;
    bool said;           /* some argument has this value */
    bool named, differs; /* some has this name; and another value */
};

/* Plain, or "=?base64?...?=" of it. */
static bool mcp_field_is(struct slice field, const char *text)
{
    static const char begin[] = "=?base64?", end[] = "?=";
    struct buf decoded;
    if (!slice_starts(field, SLICE("=?base64?")))
        return slice_eq_str(field, text);
    if (field.n < sizeof begin + sizeof end - 2 || !slice_ends(field, SLICE("?=")))
        return false;
    struct slice inner = {field.p + sizeof begin - 1, field.n - (sizeof begin + sizeof end - 2)};
    buf_init(&decoded, MCP_VALUE_MAX);
    bool same = base64_decode(&decoded, inner) == 0 && slice_eq_str(buf_slice(&decoded), text);
    buf_free(&decoded);
    return same;
}

static bool mcp_scalar_is(struct slice field, const json_t *v)
{
    char number[32];
    if (json_is_boolean(v))
        return mcp_field_is(field, json_is_true(v) ? "true" : "false");
    if (json_is_integer(v)) {
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        return mcp_field_is(field, number);
    }
    return json_is_string(v) && mcp_field_is(field, json_string_value(v));
}

static bool mcp_joins(char c)
{
    return c == '-' || c == '_';
}

/* "tenant_id" is Tenant-Id, and tenantId. */
static bool mcp_same_name(struct slice a, const char *b)
{
    size_t i = 0;
    for (;;) {
        while (i < a.n && mcp_joins(a.p[i]))
            i++;
        while (mcp_joins(*b))
            b++;
        if (i == a.n || *b == 0)
            return i == a.n && *b == 0;
        if (ascii_lower(a.p[i++]) != ascii_lower(*b++))
            return false;
    }
}

/* Mappings alone: no element of a list is repeated. As deep as a body may be. */
static void mcp_param_look(struct mcp_param *p, const json_t *arguments)
{
    for (void *it = json_object_iter((json_t *)(uintptr_t)arguments); it;
         it = json_object_iter_next((json_t *)(uintptr_t)arguments, it)) {
        const json_t *v = json_object_iter_value(it);
        bool named = mcp_same_name(p->field->name, json_object_iter_key(it)),
             same = mcp_scalar_is(p->field->value, v);
        p->said = p->said || same;
        p->named = p->named || named;
        p->differs = p->differs || (named && !same);
        mcp_param_look(p, v);
    }
}

static bool mcp_params_agree(const struct mcp_rules *rules, const struct inspect_request *head,
                             const char *method, const json_t *params)
{
    const char *name = json_string_value(json_object_get(params, "name"));
    if (head->n_mcp_params == 0)
        return true;
    if (head->n_mcp_params > INSPECT_MCP_PARAMS || name == NULL ||
        strcmp(method, "tools/call") != 0)
        return false;
    const struct mcp_tool *tool = mcp_tool_find(rules, slice_str(name));
    for (size_t i = 0; i < head->n_mcp_params && i < INSPECT_MCP_PARAMS; i++) {
        struct mcp_param p = {.field = &head->mcp_params[i]};
        for (size_t k = 0; k < i; k++)
            if (slice_eq(p.field->name, head->mcp_params[k].name))
                return false;
        mcp_param_look(&p, json_object_get(params, "arguments"));
        if (!p.said || (tool && tool->n_conditions && (!p.named || p.differs)))
            return false;
    }
    return true;
}

bool mcp_fields_agree(const struct mcp_rules *rules, const struct inspect_request *head,
                      const json_t *m)
{
    static const char *const named[] = {"tools/call", "prompts/get", "resources/read"};
    const char *method = json_string_value(json_object_get(m, "method"));
    const json_t *params = json_object_get(m, "params");
    if (head->n_mcp_methods + head->n_mcp_names + head->n_mcp_params == 0)
        return true;
    if (head->n_mcp_methods > 1 || head->n_mcp_names > 1 || method == NULL ||
        (head->n_mcp_methods && !slice_eq_str(head->mcp_method, method)))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(named) && head->n_mcp_names; i++) {
        const char *name = json_string_value(json_object_get(params, i == 2 ? "uri" : "name"));
        if (strcmp(method, named[i]) == 0 && (name == NULL || !mcp_field_is(head->mcp_name, name)))
            return false;
    }
    return mcp_params_agree(rules, head, method, params);
}
