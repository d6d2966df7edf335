/* A message of a server, or a batch, cut to what a rule lets its client see. */
#ifndef DURWARD_MCP_MESSAGE_H
#define DURWARD_MCP_MESSAGE_H

#include "mcp.h"
#include "mcp_pins.h"

enum { MCP_NOTES_MAX = 1024 };

struct mcp_changes {
    unsigned hidden;           /* entries of lists */
    unsigned refused;          /* requests of the server */
    unsigned changed;          /* tools that are not what they were */
    char notes[MCP_NOTES_MAX]; /* "pinned NAME HASH; changed NAME HASH": as many as there is room */
};

/* Whose message it is. */
struct mcp_view {
    const struct mcp_rules *rules;
    struct mcp_pins *pins; /* NULL: nothing is remembered */
    const char *sandbox;
    bool
        failed; /* the reply's status is no success: what is no message there goes without a body */
    /* What a server says goes into the log: does this hold a secret? NULL: there is none. */
    bool (*holds_secret)(void *arg, struct slice text);
    void *arg;
    char place[MCP_PIN_TEXT + 1];
};

/* False: it cannot be read with certainty, or memory is out. */
bool mcp_message_change(const struct mcp_view *view, json_t *root, struct mcp_changes *changes);

#endif
