/* What a rule asks of a request's body (or GraphQL's query parameter), and the answer to a body.
 *
 * The gate reads bodies. Those of `mcp` and `llm` the injector reads again and decides by itself;
 * for the other kinds it relays what it is given, so a conquered gate gets past those. What is here
 * is pure: the caller holds the bytes. */
#ifndef DURWARD_INSPECT_H
#define DURWARD_INSPECT_H

#include "slice.h"

enum inspection_kind {
    INSPECT_GRAPHQL = 1,
    INSPECT_MCP,
    INSPECT_SERVER_TOOLS,
    INSPECT_GIT,
    INSPECT_LLM
};

struct word_list {
    const char *const *list;
    size_t n;
};

struct budget;
struct mcp_pins;
struct mcp_rules;
struct llm_rules;

struct inspection {
    enum inspection_kind kind;
    bool read_only;              /* graphql: queries alone */
    bool by_name, by_field;      /* graphql: operations, fields are given */
    struct word_list operations; /* graphql: by the name that the client gives them */
    struct word_list fields;     /* graphql: at the top of each operation */
    struct word_list tools;      /* server_tools, llm; mcp: their names, for people */
    const struct mcp_rules *mcp; /* mcp.h */
    const struct llm_rules *llm; /* llm.h */
    bool push;                   /* git: git-lfs uploads */
    bool refs_given;             /* git: what is pushed is asked about */
    struct word_list refs;       /* git: patterns of references that may be pushed */
    bool force;                  /* git: also an update that is not shown to be a fast-forward */
    bool deletes;                /* git: a reference may be deleted */
};

enum inspect_answer {
    INSPECT_PASS = 0, /* nothing more is read */
    INSPECT_MORE,     /* of the body */
    INSPECT_REFUSED,
};

enum {
    INSPECT_DETAIL_MAX = 160,
    INSPECT_RPC_ID = 20,
    INSPECT_CALLS = 2048,
    INSPECT_SMALL = 64 * 1024,
    INSPECT_LARGE = 8 << 20,
    LLM_MODEL_MAX = 256,
    LLM_MODELS_MAX = 1024 /* of all that one call names */
};

/* The shape of a call to a model, and of its reply. */
enum llm_form {
    LLM_NONE = 0,
    LLM_CHAT, /* OpenAI's chat completions, and those of who speaks as they do */
    LLM_EMBEDDINGS,
    LLM_RESPONSES,
    LLM_MESSAGES, /* Anthropic's */
    LLM_GEMINI,
    LLM_CONVERSE, /* Bedrock's */
    LLM_OLLAMA,
    LLM_FORMS,
    LLM_EVENTS /* of a session over a WebSocket (llm_session.h) */
};

/* What a request asks of a model. */
struct llm_call {
    enum llm_form form;              /* LLM_NONE: it is no call, or costs nothing */
    char models[LLM_MODELS_MAX + 1]; /* one a line: that is asked, and those in its place */
    unsigned tools;                  /* offered */
    bool streamed, max_said;
    const char *hides; /* what keeps its reply from saying what it took; NULL: nothing */
    const char *dear;  /* what asks for another price than its models'; NULL: nothing */
    uint64_t max;  /* tokens of an answer, asked for; not max_said: some servers do not read it */
    uint64_t many; /* answers */
    uint64_t estimate; /* tokens of what is sent, by its length */
};

struct inspect_result {
    unsigned status;
    const char *code;                /* constant */
    char detail[INSPECT_DETAIL_MAX]; /* for the record: names as the client wrote them, no value */
    char rpc_id[INSPECT_RPC_ID];     /* mcp: the number of a single message; "": it has none */
    /* mcp: each request among the messages as "c" (tools/call) or "r", its id as JSON in ASCII, and
     * a line feed. An id is at most 128 bytes of text, or a whole number up to 2^53. */
    char calls[INSPECT_CALLS];
    bool batch;                  /* mcp: the messages stood in an array */
    const struct budget *budget; /* mcp: of the tool that is called; NULL: none. The rule's */
    bool ask;                    /* mcp: INSPECT_PASS if somebody approves; detail says of what */
    bool pack;                   /* INSPECT_PASS of a push if its pack shows only fast-forwards */
    struct llm_call call;        /* llm */
};

enum { INSPECT_MCP_PARAMS = 16 };

struct inspect_field {
    struct slice name, value;
};

/* Of the request's head. */
struct inspect_request {
    struct slice method, path, query;
    bool has_query;
    size_t n_types; /* Content-Type fields */
    struct slice type;
    /* Mcp-Method and Mcp-Name: how many, and the first of each */
    size_t n_mcp_methods, n_mcp_names;
    struct slice mcp_method, mcp_name;
    size_t n_mcp_params; /* fields Mcp-Param-NAME; there may be more than are kept */
    struct inspect_field mcp_params[INSPECT_MCP_PARAMS]; /* by NAME */
    bool coded; /* a Content-Encoding other than identity */
    /* What the tools of this server were (mcp_pins.h); NULL: not known here */
    const struct mcp_pins *pins;
    const char *place, *sandbox;
    bool has_body;
    bool upgrade;    /* it asks for a WebSocket */
    uint64_t length; /* of the body when the head says it, else 0 */
};

bool words_have(const struct word_list *w, struct slice word);
/* The head says that the body is JSON, and says it so that nobody can read something else. */
bool inspect_is_json(const struct inspect_request *r);
/* How much of a body is held at most. */
size_t inspect_bound(const struct inspection *in);
/* "GraphQL: queries only", for people. Returns buf. */
char *inspection_text(const struct inspection *in, char *buf, size_t size);
/* By the head alone. INSPECT_MORE: the body is needed. */
enum inspect_answer inspect_head(const struct inspection *in, const struct inspect_request *r,
                                 struct inspect_result *ret);
/* By what is there of the body, from its beginning; whole: that is all of it. */
enum inspect_answer inspect_body(const struct inspection *in, const struct inspect_request *r,
                                 struct slice body, bool whole, struct inspect_result *ret);

#endif
