/* A session with a model: the provider's events, whole and in pieces, tell the same; a client's
 * event that passes is JSON to another reader, has one type, and no model beside those allowed. The
 * first byte picks who speaks and the size of pieces. */
#include "llm.h"
#include "llm_session.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum llm_tells told(struct slice text, size_t piece, struct llm_usage *u)
{
    struct llm_events e = {.open = false};
    while (text.n > 0) {
        size_t n = piece < text.n ? piece : text.n;
        llm_events_feed(&e, (struct slice){text.p, n});
        text = (struct slice){text.p + n, text.n - n};
    }
    return llm_events_end(&e, u);
}

static void provider(struct slice text, size_t piece)
{
    struct llm_usage a, b;
    enum llm_tells x = told(text, text.n + 1, &a), y = told(text, piece, &b);
    if (x != y || a.known != b.known || a.in != b.in || a.out != b.out || a.cached != b.cached ||
        a.seen != b.seen || a.cached > a.in)
        abort();
}

static void no_model_beside(const json_t *v)
{
    const char *model = json_string_value(json_object_get(v, "model"));
    if (model && strcmp(model, "m") != 0)
        abort();
    for (size_t i = 0; json_is_array(v) && i < json_array_size(v); i++)
        no_model_beside(json_array_get(v, i));
    for (void *it = json_is_object(v) ? json_object_iter((json_t *)(uintptr_t)v) : NULL; it;
         it = json_object_iter_next((json_t *)(uintptr_t)v, it))
        no_model_beside(json_object_iter_value(it));
}

static void client(struct slice text, enum llm_form form)
{
    static const char *const models[] = {"m"};
    static const struct llm_rules rules = {.apis = LLM_API_OPENAI,
                                           .by_model = true,
                                           .tools_any = true,
                                           .models = {models, 1},
                                           .max_tokens = 10,
                                           .assumed = 10};
    const struct inspection in = {.kind = INSPECT_LLM, .llm = &rules};
    struct llm_session s = {.form = form, .models = "m"};
    struct inspect_result why = {.rpc_id = ""};
    enum llm_asks asks;
    if (llm_session_event(&s, &in, text, &asks, &why) != INSPECT_PASS)
        return;
    json_t *root = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    if (!json_is_string(json_object_get(root, "type")))
        abort();
    no_model_beside(root);
    if (asks == LLM_ASKS_ANSWER && (!why.call.max_said || why.call.max > 10))
        abort();
    json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct slice text = {(const char *)data + 1, size - 1};
    if (data[0] & 1)
        client(text, data[0] & 2 ? LLM_RESPONSES : LLM_EVENTS);
    else
        provider(text, 1 + (data[0] >> 1) % 16);
    return 0;
}
