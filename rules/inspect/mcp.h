/* What a rule allows of the Model Context Protocol (`mcp`), and whether an argument of a call, a
 * name or a URI is such as it says. Pure, and the gate and the injector both decide by it. */
#ifndef DURWARD_MCP_H
#define DURWARD_MCP_H

#include <jansson.h>

#include "inspect.h"

enum {
    MCP_PATTERN_MAX = 256,
    MCP_VALUE_MAX = 4096,  /* of a text that a pattern is asked about */
    MCP_POINTER_MAX = 128, /* of a JSON pointer */
    MCP_CONDITIONS = 16,   /* of a tool */
    MCP_TOOLS = 256
};

/* What becomes of a tool that is listed otherwise than before (mcp_pins.h), or than `sha256` says.
 */
enum mcp_changed { MCP_CHANGED_PASS = 0, MCP_CHANGED_ASK, MCP_CHANGED_REFUSE };
enum mcp_refusal { MCP_REFUSAL_ERROR = 0, MCP_REFUSAL_RESULT };
enum mcp_test { MCP_IS_ABSENT = 0, MCP_IS_ONE_OF, MCP_MATCHES, MCP_IN_RANGE };
enum mcp_scalar_kind { MCP_TEXT = 0, MCP_NUMBER, MCP_TRUE, MCP_FALSE, MCP_NULL };

struct mcp_scalar {
    enum mcp_scalar_kind kind;
    const char *text;
    double number;
};

/* What one argument has to be. */
struct mcp_condition {
    const char *pointer; /* RFC 6901, from `arguments` */
    enum mcp_test test;
    bool may_be_absent; /* beside another test */
    const struct mcp_scalar *values;
    size_t n_values;
    struct word_list patterns;
    double least, most;
};

struct budget;

struct mcp_tool {
    const char *name;   /* a pattern */
    const char *sha256; /* what it has to be, or how that begins; NULL: what it was first */
    bool ask;           /* somebody has to approve each call */
    const struct budget *budget; /* of calls; NULL: none */
    const struct mcp_condition *conditions;
    size_t n_conditions;
};

struct mcp_rules {
    enum mcp_refusal on_refused;
    enum mcp_changed changed;
    const struct mcp_tool *tools; /* the first whose name fits decides */
    size_t n_tools;
    struct word_list methods; /* patterns, beside those that always pass */
    bool by_resource, by_prompt;
    struct word_list resources, prompts;        /* patterns of URIs and names */
    bool no_sampling, no_elicitation, no_roots; /* requests of the server that the client never
                                                 * sees */
};

/* `*` is any run of bytes; in_path: any without "/", and `**` is any with it. */
bool mcp_pattern_fits(const char *pattern, struct slice text, bool in_path);
bool mcp_name_allowed(const struct word_list *patterns, struct slice name);
/* A text with a dot segment, however escaped, fits none of the patterns that have a star. */
bool mcp_text_allowed(const struct word_list *patterns, struct slice text);
/* NULL: no entry has that name. */
const struct mcp_tool *mcp_tool_find(const struct mcp_rules *r, struct slice name);
/* NULL: each holds; else the first that does not. arguments may be NULL. */
const struct mcp_condition *mcp_unmet(const struct mcp_tool *t, const json_t *arguments);

#endif
