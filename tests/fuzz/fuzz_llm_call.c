/* A call to a model: any path and any body. What passes is JSON to another reader, asks for the
 * model that the rule allows and for no more tokens than it says, and is read the same again. First
 * byte: whose interface; then the path, up to a line's end. */
#include "llm.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 10, ANY_MODEL = 64, ANY_TOOL = 128 };

static void require(bool right)
{
    if (!right)
        abort();
}

static bool is_models(const char *text)
{
    while (strncmp(text, "m\n", 2) == 0)
        text += 2;
    return *text == 0 || strcmp(text, "m") == 0;
}

/* As whoever answers the call reads it. */
static void passes(const struct llm_rules *rules, struct slice body, const struct llm_call *call)
{
    static const char *const maxima[] = {"max_tokens", "max_completion_tokens",
                                         "max_output_tokens"};
    json_t *root = json_loadb(body.p, body.n, JSON_REJECT_DUPLICATES, NULL);
    const char *model = json_string_value(json_object_get(root, "model"));
    bool by_key = call->form == LLM_CHAT || call->form == LLM_RESPONSES ||
                  call->form == LLM_OLLAMA || call->form == LLM_EMBEDDINGS;
    require(root != NULL);
    require(!rules->by_model || (call->models[0] && is_models(call->models)));
    require(!rules->by_model || !by_key || model == NULL || strcmp(model, "m") == 0);
    require(!call->max_said || call->max <= MOST);
    for (size_t i = 0; call->form == LLM_CHAT && i < ARRAY_LEN(maxima); i++)
        require(json_integer_value(json_object_get(root, maxima[i])) <= MOST);
    json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const models[] = {"m"};
    static struct inspect_result first, again;
    if (size < 2)
        return 0;
    struct slice text = {(const char *)data + 1, size - 1};
    ssize_t end = slice_find(text, '\n');
    if (end < 0)
        return 0;
    struct slice path = {text.p, (size_t)end}, body = {text.p + end + 1, text.n - (size_t)end - 1};
    const struct llm_rules rules = {.apis = data[0] & ((1u << LLM_APIS) - 1),
                                    .by_model = !(data[0] & ANY_MODEL),
                                    .tools_any = data[0] & ANY_TOOL,
                                    .models = {models, 1},
                                    .max_tokens = MOST,
                                    .assumed = MOST};
    const struct inspection in = {.kind = INSPECT_LLM, .llm = &rules};
    struct inspect_request post = {.method = SLICE("POST"),
                                   .path = path,
                                   .n_types = 1,
                                   .type = SLICE("application/json"),
                                   .has_body = true,
                                   .length = body.n};
    memset(&first, 0, sizeof first);
    memset(&again, 0, sizeof again);
    if (inspect_head(&in, &post, &first) != INSPECT_MORE)
        return 0;
    enum inspect_answer a = inspect_body(&in, &post, body, true, &first),
                        b = inspect_body(&in, &post, body, true, &again);
    require(a == b && a != INSPECT_MORE &&
            memcmp(&first.call, &again.call, sizeof again.call) == 0);
    if (a == INSPECT_PASS && first.call.form != LLM_NONE)
        passes(&rules, body, &first.call);
    return 0;
}
