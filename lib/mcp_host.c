/* Names of MCP servers as hosts, and back. */
#include "mcp_host.h"

#include <stdio.h>
#include <string.h>

bool mcp_host_name_ok(struct slice name)
{
    if (name.n == 0 || name.n > MCP_HOST_NAME_MAX || name.p[0] == '-' || name.p[name.n - 1] == '-')
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (!ascii_is_alnum(name.p[i]) && name.p[i] != '-')
            return false;
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] != ascii_lower(name.p[i]))
            return false;
    return true;
}

bool mcp_host_is(const struct authority *a)
{
    return a->kind == HOST_NAME && slice_ends(slice_str(a->host), SLICE(MCP_HOST_SUFFIX));
}

bool mcp_host_server(const struct authority *a, char name[MCP_HOST_NAME_MAX + 1])
{
    struct slice host = slice_str(a->host), suffix = SLICE(MCP_HOST_SUFFIX);
    if (!mcp_host_is(a) || a->scheme != SCHEME_HTTP || a->port != 80)
        return false;
    struct slice first = {host.p, host.n - suffix.n};
    if (!mcp_host_name_ok(first))
        return false;
    snprintf(name, MCP_HOST_NAME_MAX + 1, "%.*s", SL(first));
    return true;
}

void mcp_host_authority(struct slice name, struct authority *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->scheme = SCHEME_HTTP;
    ret->kind = HOST_NAME;
    ret->port = 80;
    snprintf(ret->host, sizeof ret->host, "%.*s%s", SL(name), MCP_HOST_SUFFIX);
}
