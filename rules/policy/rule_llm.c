/* `llm` of a rule: whose form its calls have, which models, and how many tokens they may ask for.
 * `server_tools` stands beside it, and none is allowed to whoever has our credential unless said.
 */
#include "llm.h"
#include "rule.h"

#include <string.h>

static int read_api(const struct node *n, struct llm_rules *l, struct err *err)
{
    size_t count, word;
    if (node_strings(n, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *text;
        if (node_strings_at(n, i, &item, &text, err) < 0 ||
            node_word(&item, llm_api_names, LLM_APIS, &word, err) < 0)
            return -1;
        l->apis |= 1u << word;
    }
    return 0;
}

static const struct key llm_keys[] = {
    KEY("api", OWN, "required", ""),   KEY("models", OWN, "", ""),
    KEY("max_tokens", OWN, "", ""),    KEY("assume", OWN, "", ""),
    KEY("request_usage", OWN, "", ""),
};

static int read_map(struct arena *a, const struct node *n, struct llm_rules *l, struct err *err)
{
    struct node at;
    unsigned tokens;
    if (node_keys(n, KEYS(llm_keys), err) < 0)
        return -1;
    if (!node_get(n, "api", &at))
        return node_fail(n, err, "'llm' needs 'api': whose form the calls have");
    if (read_api(&at, l, err) < 0)
        return -1;
    l->by_model = node_get(n, "models", &at);
    if (l->by_model && rule_words_read(a, &at, RULE_WORDS_PATTERNS, &l->models, err) < 0)
        return -1;
    if (node_get(n, "max_tokens", &at)) {
        if (node_uint(&at, 1, LLM_TOKENS_MAX, &tokens, err) < 0)
            return -1;
        l->max_tokens = tokens;
    }
    if (node_get(n, "assume", &at)) {
        if (node_uint(&at, 1, LLM_TOKENS_MAX, &tokens, err) < 0)
            return -1;
        l->assumed = tokens;
    }
    if (node_get(n, "request_usage", &at) && node_bool(&at, &l->request_usage, err) < 0)
        return -1;
    return 0;
}

int rule_llm_read(struct arena *a, const struct node *n, const struct node *tools,
                  const struct rule_entry *rule, struct inspection *in, struct err *err)
{
    struct llm_rules *l = arena_zalloc(a, 1, sizeof *l);
    l->assumed = LLM_ASSUMED;
    l->tools_any = rule->rule.credential == NULL;
    if (tools && rule_server_tools_read(a, tools, in, &l->tools_any, err) < 0)
        return -1;
    in->kind = INSPECT_LLM;
    in->llm = l;
    return json_is_object(n->value) ? read_map(a, n, l, err) : read_api(n, l, err);
}
