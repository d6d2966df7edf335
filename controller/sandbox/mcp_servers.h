/* MCP servers (`mcp_servers`): one for each sandbox that uses it, in a sandbox of its own, which is
 * made for the first connection and ends after its idle time, or with who uses it.
 *
 *   ABSENT ──► MAKING ──► LAUNCHING ──► READY ──► ENDING ──► ABSENT
 *
 *   MAKING      its sandbox is on its way
 *   LAUNCHING   durward-mcp was started in it; waits for its word that it listens
 *   READY       each connection is made by durward-init, and its descriptor goes to the dialer
 *   ENDING      its sandbox is being taken down
 *
 * Two sandboxes never share one: what one of them says to it the other would read. */
#ifndef DURWARD_MCP_SERVERS_H
#define DURWARD_MCP_SERVERS_H

#include "sandbox.h"

struct controller;
struct mcp_servers;

enum {
    MCP_SERVERS_MAX = 512, /* that run, of all sandboxes */
    MCP_SERVERS_EACH = 64, /* of one, and never more than are left for others */
    MCP_WAITS_MAX = 64     /* connections of one that are being made */
};

struct mcp_servers *mcp_servers_new(struct controller *c); /* NULL: out of memory */
void mcp_servers_free(struct mcp_servers *all);            /* NULL is fine; before the sandboxes */
/* W_MCP_DIAL; -1: bad. */
int mcp_servers_message(struct mcp_servers *all, struct msg *m);
/* What a sandbox tells of itself; false: it is no server's. */
bool mcp_servers_running(struct mcp_servers *all, struct sandbox *s);
bool mcp_servers_said(struct mcp_servers *all, struct sandbox *s, struct msg *m, int *bad);
bool mcp_servers_have(const struct mcp_servers *all, const struct sandbox *s);
/* It is about to be freed: a server's own, or one that used servers. */
void mcp_servers_gone(struct mcp_servers *all, struct sandbox *s);

#endif
