/* What a rule says of calls to a model (`llm`), and what is known of one call. The gate and the
 * injector read requests with it; budgets of tokens and money go by what the injector read. */
#ifndef DURWARD_LLM_H
#define DURWARD_LLM_H

#include <jansson.h>

#include "inspect.h"

enum {
    LLM_API_OPENAI = 1,
    LLM_API_ANTHROPIC = 2,
    LLM_API_GEMINI = 4,
    LLM_API_BEDROCK = 8,
    LLM_API_AZURE = 16,
    LLM_API_OLLAMA = 32,
    LLM_APIS = 6,
    LLM_SESSION_APIS = LLM_API_OPENAI | LLM_API_AZURE /* with sessions over a WebSocket */
};

enum {
    LLM_ASSUMED = 4096,        /* tokens of an answer for which no maximum was asked */
    LLM_TOKENS_MAX = 1 << 30,  /* that are counted of one call */
    LLM_ENCODED_MIN = 4096,    /* an image or a file in letters or by its URL, as long as this, */
    LLM_ENCODED_TOKENS = 2048, /* counts so many */
};

struct llm_rules {
    unsigned apis; /* a mask of LLM_API_* */
    bool by_model, tools_any;
    struct word_list models; /* patterns */
    uint64_t max_tokens;     /* that may be asked for; 0: any */
    uint64_t assumed;
    bool request_usage; /* of streams whose clients do not ask for it (llm_usage.h) */
};

extern const char *const llm_api_names[LLM_APIS]; /* in the order of their bits */

/* Which form the call has at this path; 0: no call to a model is there. free: it costs nothing.
 * model: its name, where it stands in the path, as it stands there, or empty. */
enum llm_form llm_form_of(const struct llm_rules *r, struct slice path, bool *free,
                          struct slice *model);
/* A word that asks for no other price than a model's: of a tier, a speed, a place. */
bool llm_price_is_plain(struct slice word);
/* The rule restricts calls, so that what cannot be read is refused. */
bool llm_is_limited(const struct llm_rules *r);

#endif
