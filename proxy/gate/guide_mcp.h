/* The guide as an MCP server (`POST http://durward.internal/mcp`): one message of JSON-RPC at a
 * time, without sessions. Its tools are the guide's pages, so they tell no more than those do.
 *
 * A message is read strictly: known members, no name twice or in other letters, an id that every
 * reader takes for the same. What comes of it stands in `guide.c`. */
#ifndef DURWARD_GUIDE_MCP_H
#define DURWARD_GUIDE_MCP_H

#include <jansson.h>

#include "slice.h"

enum {
    GUIDE_MCP_MAX = 16 * 1024, /* bytes of a message */
    GUIDE_MCP_ID = 128         /* bytes of an id that is a text */
};

enum guide_tool {
    GUIDE_TOOL_RULES = 0,
    GUIDE_TOOL_REFUSED,
    GUIDE_TOOL_PLACEHOLDERS,
    GUIDE_TOOL_PROPOSE, /* the last: not every sandbox has it */
    GUIDE_TOOLS
};

/* ANSWER: it is answered, and the answer is there. NOTED: a notification, or an answer of the
 * client's. CALL: a tool, whose result guide_mcp_result makes. BAD: no message; the answer is
 * there.
 */
enum guide_mcp_end { GUIDE_MCP_ANSWER = 0, GUIDE_MCP_NOTED, GUIDE_MCP_CALL, GUIDE_MCP_BAD };

struct guide_mcp {
    json_t *id;
    json_t *answer;    /* NULL with ANSWER or BAD: memory is out */
    json_t *arguments; /* CALL: an object with members of the tool's only, each a text */
    enum guide_tool tool;
};

/* proposes: the last tool is there. policy: for the words about this server. */
enum guide_mcp_end guide_mcp_read(struct slice body, const char *policy, bool proposes,
                                  struct guide_mcp *ret);
void guide_mcp_free(struct guide_mcp *m); /* what was read; once more is fine */
/* An argument, or "". */
const char *guide_mcp_argument(const struct guide_mcp *m, const char *name);
/* The answer to a CALL: what its page says. NULL: memory is out. */
json_t *guide_mcp_result(const struct guide_mcp *m, const char *text, bool failed);

#endif
