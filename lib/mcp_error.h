/* The number of a JSON-RPC error of ours that says: Durward has refused this. Outside of -32768 to
 * -32000, which JSON-RPC and MCP keep for themselves and in which MCP's libraries have numbers of
 * their own: one of them would take ours for a connection that has ended. */
#ifndef DURWARD_MCP_ERROR_H
#define DURWARD_MCP_ERROR_H

enum { MCP_ERROR_REFUSED = -31403 };

#endif
