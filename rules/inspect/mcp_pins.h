/* What the tools of MCP servers were when they were first listed: a server that changes what it
 * says of a tool (name, description, schemas, all but `_meta`) is seen. Kept by the injector for as
 * long as it runs; bounded as a whole and for each server. */
#ifndef DURWARD_MCP_PINS_H
#define DURWARD_MCP_PINS_H

#include <jansson.h>

#include "slice.h"

enum {
    MCP_PINS_MAX = 8192,
    MCP_PINS_SERVER = 512, /* of one place */
    MCP_PIN_HASH = 32,
    MCP_PIN_TEXT = 2 * MCP_PIN_HASH, /* in hexadecimal digits */
    MCP_PIN_LEAST = 32               /* of those, in a policy */
};

/* FULL: there is no room to remember another. */
enum mcp_pin { MCP_PIN_NEW = 0, MCP_PIN_SAME, MCP_PIN_CHANGED, MCP_PIN_FULL };

struct mcp_pins;

struct mcp_pins *mcp_pins_new(void); /* NULL: out of memory */
void mcp_pins_free(struct mcp_pins *p);
/* SHA-256 of a tool as it is listed, whatever the order of its members. False: memory is out. */
bool mcp_pin_hash(const json_t *tool, char text[MCP_PIN_TEXT + 1]);
/* A server, by where it is asked. False: memory is out. */
bool mcp_pin_place(const char *host, struct slice path, char place[MCP_PIN_TEXT + 1]);
/* The tool of the server at this place is now listed so. What was first is kept. */
enum mcp_pin mcp_pins_see(struct mcp_pins *p, const char *place, const char *tool,
                          const char *hash);
/* It is not what it was, by the last list of it. */
bool mcp_pins_changed(const struct mcp_pins *p, const char *place, const char *tool);
/* The same, whatever was first (a policy says what it has to be). */
void mcp_pins_mark(struct mcp_pins *p, const char *place, const char *tool, bool changed);

#endif
