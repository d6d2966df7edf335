/* Reads media type, coding and length of a body from the fields of its request. */
#include "body_facts.h"

static bool body_coded(const struct head *h)
{
    for (size_t i = 0; i < h->n; i++)
        if (slice_eq_str(h->fields[i].name, "content-encoding") &&
            !slice_ieq_str(h->fields[i].value, "identity"))
            return true;
    return false;
}

static struct slice first_value(const struct head *h, const char *name)
{
    const struct field *f = http_head_find(h, name);
    return f ? f->value : (struct slice){"", 0};
}

static void take_params(const struct head *h, struct inspect_request *r)
{
    struct slice begin = SLICE("mcp-param-");
    for (size_t i = 0; i < h->n; i++) {
        struct slice name = h->fields[i].name;
        if (!slice_starts(name, begin))
            continue;
        if (r->n_mcp_params < INSPECT_MCP_PARAMS)
            r->mcp_params[r->n_mcp_params] =
                (struct inspect_field){{name.p + begin.n, name.n - begin.n}, h->fields[i].value};
        r->n_mcp_params++;
    }
}

struct inspect_request body_facts(const struct head *h)
{
    struct inspect_request r = {.method = h->method,
                                .path = h->path,
                                .query = h->query,
                                .has_query = h->has_query,
                                .n_types = http_head_count(h, "content-type"),
                                .coded = body_coded(h),
                                .has_body = h->body != BODY_NONE && h->upgrade == UPGRADE_NONE,
                                .upgrade = h->upgrade != UPGRADE_NONE,
                                .length = h->body == BODY_LENGTH ? h->length : 0};
    r.type = first_value(h, "content-type");
    r.n_mcp_methods = http_head_count(h, "mcp-method");
    r.n_mcp_names = http_head_count(h, "mcp-name");
    r.mcp_method = first_value(h, "mcp-method");
    r.mcp_name = first_value(h, "mcp-name");
    take_params(h, &r);
    return r;
}
