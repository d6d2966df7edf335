/* Connections to MCP servers of ours, which stand in sandboxes of their own: the controller, asked
 * by way of the parent, has each made inside and sends its descriptor. */
#ifndef DURWARD_MCP_DIAL_H
#define DURWARD_MCP_DIAL_H

#include "ipc.h"

struct mcp_dials;
struct mcp_dial;

/* fd >= 0: connected, the callback's; else text says why not. The dial is gone when this runs. */
typedef void (*mcp_dial_fn)(void *arg, int fd, const char *text);

struct mcp_dials *mcp_dials_new(struct ipc *parent);
void mcp_dials_free(struct mcp_dials *m); /* none may be under way; NULL is fine */
/* fn runs later, never within this call. NULL: who pays has its share asked for (what was cancelled
 * and not answered is of it), or memory is out. */
struct mcp_dial *mcp_dial_new(struct mcp_dials *m, const char *payer, const char *sandbox,
                              const char *policy, const char *server, mcp_dial_fn fn, void *arg);
void mcp_dial_cancel(struct mcp_dial *d); /* NULL is fine */
/* W_MCP_DIALED; -1: bad. */
int mcp_dials_message(struct mcp_dials *m, struct msg *msg);

#endif
