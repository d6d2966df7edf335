/* The origin behind which an MCP server of ours stands: NAME.mcp.durward.internal, port 80 in
 * clear, path /mcp. No resolver is ever asked for it: the dialer has the controller connect. Inside
 * a sandbox http://durward.internal/mcp/NAME is another spelling of it. */
#ifndef DURWARD_MCP_HOST_H
#define DURWARD_MCP_HOST_H

#include "authority.h"

#define MCP_HOST_SUFFIX ".mcp.durward.internal"
#define MCP_HOST_PATH   "/mcp"

enum { MCP_HOST_NAME_MAX = 32 };

/* [a-z0-9]([a-z0-9-]*[a-z0-9])? of at most MCP_HOST_NAME_MAX: a label of a name, in lower case. */
bool mcp_host_name_ok(struct slice name);
/* Below mcp.durward.internal, whatever the scheme and port: nobody else's, so never resolved. */
bool mcp_host_is(const struct authority *a);
/* The server that this origin stands for: http, port 80. False: it is none. */
bool mcp_host_server(const struct authority *a, char name[MCP_HOST_NAME_MAX + 1]);
/* The whole of it. */
void mcp_host_authority(struct slice name, struct authority *ret);

#endif
