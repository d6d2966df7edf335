/* A message of a server, or a batch, cut to what a rule lets its client see. */
#ifndef DURWARD_MCP_MESSAGE_H
#define DURWARD_MCP_MESSAGE_H

#include "mcp.h"

struct mcp_changes {
    unsigned hidden;  /* entries of lists */
    unsigned refused; /* requests of the server */
};

/* False: it cannot be read with certainty, or memory is out. */
bool mcp_message_change(const struct mcp_rules *rules, json_t *root, struct mcp_changes *changes);

#endif
