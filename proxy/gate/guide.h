/* The host `durward.internal`, which a gate answers itself: what the policy allows, and what was
 * refused, and why. It is for the program inside; nothing of it leaves the machine.
 *
 * GET /              what this is
 * GET /rules         the first rules that allow, and how many more there are (unless the policy
 *                    says `guide: none`)
 * GET /placeholders  the sandbox's placeholders, and the rules that take them
 * GET /refusals      the latest GUIDE_KEPT refusals of this sandbox
 * GET /refusals/ID   one of them, with the way out
 * POST /proposals    asks the operator to allow a request (guide_proposal.h); not with
 *                    `guide: none`. One at a time: the controller bounds how many
 *
 * POST /mcp          the same as tools of an MCP server (guide_mcp.h); a local sandbox's alone
 * /mcp/NAME          an MCP server of the configuration: no page, but a request to be decided
 *
 * Text, or JSON where the Accept field asks for it. Refusals are kept for a local sandbox alone,
 * whose gate serves nobody else: no sandbox can push another's out. */
#ifndef DURWARD_GUIDE_H
#define DURWARD_GUIDE_H

#include "requester.h"
#include "gate.h"
#include "ipc_msg.h"

#define GUIDE_HOST     "durward.internal"
#define GUIDE_MCP_PATH "/mcp"

struct guide;

enum { GUIDE_KEPT = 64, GUIDE_BODY_MAX = 256 * 1024 };

/* NULL: out of memory. */
struct guide *guide_new(void);
void guide_free(struct guide *g); /* NULL is fine */

/* This authority is the guide's own: http, port 80. */
bool guide_is(const struct authority *a);

/* /mcp/NAME there is an MCP server of ours: the request goes on as one to its own name
 * (lib/mcp_host.h), which is decided as any. */
bool guide_server(struct head *h, struct authority *ret);

/* Keeps what a refusal said. g may be NULL: nothing is kept. a may have no host yet; id may be "-".
 */
void guide_refused(struct guide *g, const char *id, unsigned status, const char *code,
                   struct slice method, const struct authority *a, const char *detail);

/* W_PROPOSED; -1: a bad message. */
int guide_proposed(struct guide *g, struct msg *m);
/* Nobody answers a proposal that was sent. */
void guide_controller_gone(struct guide *g);

/* Answers a GET or HEAD without a body, a proposal, and a message: reply, data and end reach the
 * downstream later, never from within this call. False: it is no such request, and nothing was
 * done. */
bool guide_start(struct gate *g, const struct identity *who, const struct requester *by,
                 const struct head *h);

#endif
