/* What the tools of MCP servers were when they were first listed: a server that changes what it
 * says of a tool (name, description, schemas, all but `_meta`) is seen, and that it did is kept.
 * The injector has it for as long as it runs; bounded as a whole, for each server, and for each
 * sandbox by what it was the first to list. What a sandbox that is gone has listed makes room. */
#ifndef DURWARD_MCP_PINS_H
#define DURWARD_MCP_PINS_H

#include <jansson.h>

#include "slice.h"

enum {
    MCP_PINS_MAX = 8192,
    MCP_PINS_SANDBOX = 2048, /* listed by one */
    MCP_PINS_SERVER = 512,   /* of one place */
    MCP_PIN_HASH = 32,
    MCP_PIN_TEXT = 2 * MCP_PIN_HASH, /* in hexadecimal digits */
    MCP_PIN_LEAST = 32               /* of those, in a policy */
};

/* Of which sandbox's asking, of which server, which tool; sha256: what a policy says it has to be,
 * or how that begins, else NULL. */
struct mcp_tool_at {
    const char *sandbox, *place, *tool, *sha256;
};

/* NEW: first listed now, or not yet. FULL: there is no room to remember another. */
enum mcp_pin { MCP_PIN_NEW = 0, MCP_PIN_SAME, MCP_PIN_CHANGED, MCP_PIN_FULL };

struct mcp_pins;

struct mcp_pins *mcp_pins_new(void); /* NULL: out of memory */
void mcp_pins_free(struct mcp_pins *p);
/* SHA-256 of a tool as it is listed, whatever the order of its members. False: memory is out. */
bool mcp_pin_hash(const json_t *tool, char text[MCP_PIN_TEXT + 1]);
/* A server, by where it is asked; sandbox: whose own it is, else "". False: memory is out. */
bool mcp_pin_place(const char *host, struct slice path, const char *sandbox,
                   char place[MCP_PIN_TEXT + 1]);
/* The tool is now listed so. What was first is kept, and that it ever changed. */
enum mcp_pin mcp_pins_see(struct mcp_pins *p, const struct mcp_tool_at *at, const char *hash);
/* What came of all lists so far. */
enum mcp_pin mcp_pins_look(const struct mcp_pins *p, const struct mcp_tool_at *at);
/* A sandbox has left, or its gate has: its part is taken when there is no room. */
void mcp_pins_gone(struct mcp_pins *p, const char *sandbox);

#endif
