/* The answer to refused messages of the Model Context Protocol, on a session that lives on: status
 * 200 and a JSON-RPC error, or the result of a tool that failed, for each request among them. */
#ifndef DURWARD_MCP_ANSWER_H
#define DURWARD_MCP_ANSWER_H

#include "inspect.h"
#include "mcp_stream.h"
#include "stream.h"

struct mcp_refused {
    bool batch, as_result; /* as_result: of a tools/call */
    char calls[INSPECT_CALLS];
};

/* NULL: no message of them wants an answer, or memory is out. */
struct mcp_refused *mcp_refused_new(const struct inspection *in, const struct inspect_result *why);
/* Told to the downstream but for its end. False: not a byte was told; the refusal is none of
 * policy, or memory is out. id: of the record. stream: where its client awaits the answer, and
 * status 202 goes to the downstream; NULL: there. */
bool mcp_answer(const struct mcp_refused *m, struct mcp_stream *stream, const struct downstream *f,
                unsigned status, const char *code, const char *id);

#endif
