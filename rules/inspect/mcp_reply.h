/* What a server says to its client, message by message: lists of tools, resources and prompts are
 * cut to what the rule allows, and what the server asks of the client (sampling, elicitation,
 * roots) is taken away where the rule refuses it. What cannot be read with certainty does not pass.
 *
 *   bytes ──► message or event, held until whole ──► out
 *
 * A message in which nothing is changed passes byte for byte. */
#ifndef DURWARD_MCP_REPLY_H
#define DURWARD_MCP_REPLY_H

#include "inspect.h"

enum { MCP_MESSAGE_MAX = 8 << 20, MCP_OUT_MAX = 4 * MCP_MESSAGE_MAX };

/* NONE: no message. JSON: the body is one, or a batch. EVENTS: a stream of server-sent events.
 * DOUBTFUL: some client takes it for one of these, or reads other letters in it. */
enum mcp_form { MCP_FORM_NONE = 0, MCP_FORM_JSON, MCP_FORM_EVENTS, MCP_FORM_DOUBTFUL };
enum mcp_reply_end {
    MCP_REPLY_OK = 0,
    MCP_REPLY_UNREADABLE,
    MCP_REPLY_TOO_LARGE,
    MCP_REPLY_MEMORY
};

struct mcp_reply;

/* Only the media type of the facts is looked at. */
enum mcp_form mcp_reply_form(const struct inspect_request *facts);
struct mcp_view;
struct mcp_reply *mcp_reply_new(const struct mcp_view *view, enum mcp_form form); /* may be NULL */
void mcp_reply_free(struct mcp_reply *r);                                         /* NULL is fine */
enum mcp_reply_end mcp_reply_feed(struct mcp_reply *r, struct slice bytes) WUNUSED;
/* There is no more. What was begun of an event is dropped, as its client would drop it. */
enum mcp_reply_end mcp_reply_close(struct mcp_reply *r) WUNUSED;
struct slice mcp_reply_out(const struct mcp_reply *r); /* what may go on */
void mcp_reply_drain(struct mcp_reply *r, size_t n);   /* n of it went */
size_t mcp_reply_held(const struct mcp_reply *r);      /* bytes in memory */
unsigned mcp_reply_hidden(const struct mcp_reply *r);  /* entries of lists taken out */
/* What was seen of tools, for the record. */
const char *mcp_reply_notes(const struct mcp_reply *r);
unsigned mcp_reply_refused(const struct mcp_reply *r); /* requests of the server taken away */

#endif
