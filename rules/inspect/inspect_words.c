/* What readers of rules ask for, apart from what reads bodies: a program that only knows the
 * configuration is not linked with that, nor with OpenSSL for it. */
#include "inspect.h"
#include "llm.h"

const char *const llm_api_names[LLM_APIS] = {"openai",  "anthropic", "gemini",
                                             "bedrock", "azure",     "ollama"};

bool words_have(const struct word_list *w, struct slice word)
{
    for (size_t i = 0; i < w->n; i++)
        if (slice_eq_str(word, w->list[i]))
            return true;
    return false;
}
