/* Calls to a model: which path is one (rules/inspect/llm.h), and what its body asks for, as data of
 * each vendor's form. Keys that a reader could take for others are refused; an answer's maximum
 * that is said twice counts as the larger. */
#include "llm_reading.h"
#include "llm_session.h"
#include "mcp.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char code[] = "llm";

/* Ends of paths. models: what stands before the model's name in the path; NULL: it is in the body.
 * The first row that fits counts. Where an API has the model in the path of some calls, its calls
 * with the model in the body are named by more of their path. */
static const struct {
    unsigned apis;
    const char *end, *models;
    enum llm_form form;
    bool free;
} rows[] = {
    {LLM_API_AZURE, "/chat/completions", "/deployments/", LLM_CHAT, false},
    {LLM_API_AZURE, "/completions", "/deployments/", LLM_CHAT, false},
    {LLM_API_AZURE, "/embeddings", "/deployments/", LLM_EMBEDDINGS, false},
    {LLM_API_AZURE, "/openai/v1/chat/completions", NULL, LLM_CHAT, false},
    {LLM_API_AZURE, "/openai/v1/completions", NULL, LLM_CHAT, false},
    {LLM_API_AZURE, "/openai/v1/embeddings", NULL, LLM_EMBEDDINGS, false},
    {LLM_API_AZURE, "/openai/v1/responses", NULL, LLM_RESPONSES, false},
    {LLM_API_AZURE, "/openai/responses", NULL, LLM_RESPONSES, false},
    {LLM_API_AZURE, "/openai/v1/responses/compact", NULL, LLM_RESPONSES, false},
    {LLM_API_AZURE, "/openai/responses/compact", NULL, LLM_RESPONSES, false},
    {LLM_API_AZURE, "/models/chat/completions", NULL, LLM_CHAT, false},
    {LLM_API_AZURE, "/models/embeddings", NULL, LLM_EMBEDDINGS, false},
    {LLM_API_GEMINI, "/openai/chat/completions", NULL, LLM_CHAT, false},
    {LLM_API_GEMINI, "/openai/embeddings", NULL, LLM_EMBEDDINGS, false},
    {LLM_API_GEMINI, "/endpoints/openapi/chat/completions", NULL, LLM_CHAT, false},
    {LLM_API_GEMINI, "/endpoints/openapi/embeddings", NULL, LLM_EMBEDDINGS, false},
    {LLM_API_OPENAI | LLM_API_OLLAMA, "/chat/completions", NULL, LLM_CHAT, false},
    {LLM_API_OPENAI | LLM_API_OLLAMA, "/completions", NULL, LLM_CHAT, false},
    {LLM_API_OPENAI | LLM_API_OLLAMA, "/embeddings", NULL, LLM_EMBEDDINGS, false},
    {LLM_API_OPENAI, "/responses", NULL, LLM_RESPONSES, false},
    {LLM_API_OPENAI, "/responses/compact", NULL, LLM_RESPONSES, false},
    {LLM_API_OPENAI, "/responses/input_tokens", NULL, LLM_RESPONSES, true},
    {LLM_API_ANTHROPIC | LLM_API_OLLAMA, "/messages", NULL, LLM_MESSAGES, false},
    {LLM_API_ANTHROPIC, "/messages/count_tokens", NULL, LLM_MESSAGES, true},
    {LLM_API_GEMINI, ":generateContent", "/models/", LLM_GEMINI, false},
    {LLM_API_GEMINI, ":streamGenerateContent", "/models/", LLM_GEMINI, false},
    {LLM_API_GEMINI, ":countTokens", "/models/", LLM_GEMINI, true},
    {LLM_API_GEMINI, ":rawPredict", "/models/", LLM_MESSAGES, false},
    {LLM_API_GEMINI, ":streamRawPredict", "/models/", LLM_MESSAGES, false},
    {LLM_API_BEDROCK, "/converse", "/model/", LLM_CONVERSE, false},
    {LLM_API_BEDROCK, "/converse-stream", "/model/", LLM_CONVERSE, false},
    {LLM_API_BEDROCK, "/invoke", "/model/", LLM_MESSAGES, false},
    {LLM_API_BEDROCK, "/invoke-with-response-stream", "/model/", LLM_MESSAGES, false},
    {LLM_API_BEDROCK, "/count-tokens", "/model/", LLM_CONVERSE, true},
    {LLM_API_OLLAMA, "/api/chat", NULL, LLM_OLLAMA, false},
    {LLM_API_OLLAMA, "/api/generate", NULL, LLM_OLLAMA, false},
    {LLM_API_OLLAMA, "/api/embed", NULL, LLM_EMBEDDINGS, false},
};

/* What the body of each form says where. holders: members that hold the maxima, or "" for the body
 * itself; every name of a maximum is looked for in each. */
static const struct llm_keys {
    const char *model; /* NULL: it stands in the path */
    const char *stream;
    bool streams; /* where nothing is said */
    const char *tools, *in_tools;
    const char *holders[2], *max[2], *many[2];
} keys[LLM_FORMS] = {
    [LLM_CHAT] = {"model",
                  "stream",
                  false,
                  "tools",
                  NULL,
                  {"", NULL},
                  {"max_tokens", "max_completion_tokens"},
                  {"n", "best_of"}},
    [LLM_EMBEDDINGS] = {"model", NULL, false, NULL, NULL, {NULL}, {NULL}, {NULL}},
    [LLM_RESPONSES] =
        {"model", "stream", false, "tools", NULL, {"", NULL}, {"max_output_tokens", NULL}, {NULL}},
    [LLM_MESSAGES] =
        {"model", "stream", false, "tools", NULL, {"", NULL}, {"max_tokens", NULL}, {NULL}},
    [LLM_GEMINI] = {NULL,
                    NULL,
                    false,
                    "tools",
                    NULL,
                    {"generationConfig", "generation_config"},
                    {"maxOutputTokens", "max_output_tokens"},
                    {"candidateCount", "candidate_count"}},
    [LLM_CONVERSE] = {NULL,
                      NULL,
                      false,
                      "toolConfig",
                      "tools",
                      {"inferenceConfig", NULL},
                      {"maxTokens", NULL},
                      {NULL}},
    [LLM_OLLAMA] =
        {"model", "stream", true, "tools", NULL, {"options", NULL}, {"num_predict", NULL}, {NULL}},
};

bool llm_is_limited(const struct llm_rules *r)
{
    return r->by_model || r->max_tokens > 0;
}

static bool has_folded(struct slice path, struct slice what)
{
    for (size_t i = 0; i + what.n <= path.n; i++)
        if (slice_ieq((struct slice){path.p + i, what.n}, what))
            return true;
    return false;
}

/* before: up to the slash that begins the model's marker, or the call's end.
 * Nothing before the model or the call reads otherwise elsewhere: where an API of the rule has
 * models in the path, there is no escape, no parameter and no other place of a model. */
static bool is_plain(unsigned apis, struct slice before)
{
    bool by_path = false;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if ((apis & rows[i].apis) == 0 || rows[i].models == NULL)
            continue;
        by_path = true;
        if (has_folded(before, slice_str(rows[i].models)))
            return false;
    }
    for (size_t i = 0; by_path && i < before.n; i++)
        if (strchr("%;\\", before.p[i]) || (unsigned char)before.p[i] >= 0x80)
            return false;
    return true;
}

/* The segment between the last `marker` and the end, and what stands before it. Empty: there is
 * none. */
static struct slice model_in(struct slice path, struct slice marker, struct slice *before)
{
    for (size_t i = path.n; i-- > 0;)
        if (i + marker.n <= path.n && memcmp(path.p + i, marker.p, marker.n) == 0) {
            struct slice s = {path.p + i + marker.n, path.n - i - marker.n};
            *before = (struct slice){path.p, i + 1};
            return slice_find(s, '/') < 0 ? s : (struct slice){"", 0};
        }
    return (struct slice){"", 0};
}

enum llm_form llm_form_of(const struct llm_rules *r, struct slice path, bool *free,
                          struct slice *model)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct slice end = slice_str(rows[i].end);
        if ((r->apis & rows[i].apis) == 0 || !slice_ends(path, end))
            continue;
        struct slice before = {path.p, path.n - end.n};
        *model = (struct slice){"", 0};
        if (rows[i].models) {
            *model = model_in(before, slice_str(rows[i].models), &before);
            if (model->n == 0)
                continue;
        }
        *free = rows[i].free;
        return is_plain(r->apis, rows[i].models ? before : (struct slice){path.p, before.n + 1})
                   ? rows[i].form
                   : LLM_NONE;
    }
    return LLM_NONE;
}

/* ---- refusals: names and numbers, no other value ---- */

enum inspect_answer llm_refuse(const struct llm_reading *r, const char *what, const char *which)
{
    char text[INSPECT_DETAIL_MAX];
    size_t n = (size_t)snprintf(text, sizeof text, "%s%s", what, which[0] ? " " : "");
    for (; *which && n + 1 < sizeof text; which++, n++) {
        char c = *which;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     strchr("_-./:@", c);
        text[n] = plain ? c : '?';
    }
    text[n] = 0;
    return inspect_refuse(r->ret, 403, code, text);
}

enum inspect_answer llm_doubt(const struct llm_reading *r, const char *key)
{
    return inspect_refuse(r->ret, 400, "body_ambiguous", key);
}

/* ---- models ---- */

static bool is_named(const char *models, const char *name)
{
    for (size_t n = 0; *models; models += n + (models[n] != 0)) {
        n = strcspn(models, "\n");
        if (strlen(name) == n && memcmp(models, name, n) == 0)
            return true;
    }
    return false;
}

enum inspect_answer llm_add_model(const struct llm_reading *r, const char *name)
{
    char *to = r->call->models;
    size_t at = strlen(to), n = strlen(name);
    if (n > 0 && is_named(to, name))
        return INSPECT_PASS;
    if (n == 0 || n > LLM_MODEL_MAX || at + n + 1 > LLM_MODELS_MAX || strpbrk(name, "\r\n"))
        return llm_refuse(r, "a model of no such name", "");
    if (r->rules->by_model && !mcp_name_allowed(&r->rules->models, slice_str(name)))
        return llm_refuse(r, "model", name);
    snprintf(to + at, LLM_MODELS_MAX + 1 - at, "%s%s", at ? "\n" : "", name);
    return INSPECT_PASS;
}

static int hex(char c)
{
    return c >= '0' && c <= '9'                             ? c - '0'
           : ascii_lower(c) >= 'a' && ascii_lower(c) <= 'f' ? ascii_lower(c) - 'a' + 10
                                                            : -1;
}

/* What a reader makes of an escape inside of the name is not left open. Names of Amazon's have a
 * slash (ARNs), which stands there escaped. */
enum inspect_answer llm_add_written_model(const struct llm_reading *r, struct slice s)
{
    char name[LLM_MODEL_MAX + 1];
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '%' && i + 2 < s.n && hex(s.p[i + 1]) >= 0 && hex(s.p[i + 2]) >= 0) {
            c = (char)(hex(s.p[i + 1]) << 4 | hex(s.p[i + 2]));
            i += 2;
        }
        bool plain = c > ' ' && c < 0x7f && !strchr("%;?#\\", c);
        if (n == LLM_MODEL_MAX || !plain || (c == '/' && (r->rules->apis & LLM_API_BEDROCK) == 0))
            return llm_refuse(r, "a model of no such name", "");
        name[n++] = c;
    }
    name[n] = 0;
    return llm_add_model(r, name);
}

/* Members in which somebody speaks to a model, or describes what it may say or be given: what is
 * named in there is nobody's choice. */
static bool is_spoken(const char *key)
{
    static const char *const names[] = {"messages",
                                        "input",
                                        "prompt",
                                        "system",
                                        "instructions",
                                        "contents",
                                        "metadata",
                                        "functions",
                                        "response_format",
                                        "text",
                                        "systemInstruction",
                                        "system_instruction",
                                        "format",
                                        "output_config",
                                        "output_format",
                                        "documents",
                                        "input_schema",
                                        "parameters",
                                        "function",
                                        "input_examples",
                                        "responseSchema",
                                        "response_schema"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(key, names[i]) == 0)
            return true;
    return false;
}

/* The member by which a call asks to be served at another price than its models', or NULL. */
static const char *dear_key(const char *key)
{
    static const struct {
        const char *folded, *said;
    } names[] = {{"service_tier", "service_tier"},
                 {"servicetier", "serviceTier"},
                 {"speed", "speed"},
                 {"inference_geo", "inference_geo"},
                 {"performanceconfig", "performanceConfig"}};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (body_json_same(key, names[i].folded))
            return names[i].said;
    return NULL;
}

bool llm_price_is_plain(struct slice word)
{
    static const char *const words[] = {"auto",
                                        "default",
                                        "standard",
                                        "standard_only",
                                        "flex",
                                        "global",
                                        "service_tier_standard",
                                        "service_tier_flex"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (slice_ieq_str(word, words[i]))
            return true;
    return false;
}

/* Amazon's have a mapping there, of one word. */
static void note_price(const struct llm_reading *r, const char *key, const json_t *v)
{
    const char *dear = dear_key(key);
    if (dear && json_is_string(v) && !llm_price_is_plain(slice_str(json_string_value(v))))
        r->call->dear = dear;
    for (void *it = dear ? json_object_iter((json_t *)(uintptr_t)v) : NULL; it;
         it = json_object_iter_next((json_t *)(uintptr_t)v, it))
        note_price(r, key, json_object_iter_value(it));
}

static bool names_others(const char *key)
{
    return body_json_same(key, "models") || body_json_same(key, "fallbacks");
}

/* One member, or what stands in it: of a router, of a plugin, of a tool that has a model of its own
 * (for images, for advice), of what goes on to a provider. others: it names those that may answer
 * instead, one, a list, or a mapping of what each is for; a mapping that has a `model` is one. The
 * word that lets the provider choose ("default") is a name like any other. */
static enum inspect_answer read_member(const struct llm_reading *r, const char *key,
                                       const json_t *v, bool others)
{
    enum inspect_answer a = INSPECT_PASS;
    if (!others && is_spoken(key))
        return INSPECT_PASS;
    note_price(r, key, v);
    others = others || (r->keys->model && names_others(key));
    if (others && json_object_get(v, "model"))
        v = json_object_get(v, "model");
    if (r->keys->model && json_is_string(v) && (others || body_json_same(key, "model")))
        return others || strcmp(key, "model") == 0 ? llm_add_model(r, json_string_value(v))
                                                   : llm_doubt(r, "model");
    for (size_t i = 0; json_is_array(v) && a == INSPECT_PASS && i < json_array_size(v); i++)
        a = read_member(r, others ? key : "", json_array_get(v, i), others);
    for (void *it = json_object_iter((json_t *)(uintptr_t)v); it && a == INSPECT_PASS;
         it = json_object_iter_next((json_t *)(uintptr_t)v, it))
        a = read_member(r, others ? key : json_object_iter_key(it), json_object_iter_value(it),
                        others);
    return a;
}

static enum inspect_answer read_models(const struct llm_reading *r, const json_t *root)
{
    const char *name = r->keys->model;
    const json_t *v = name ? json_object_get(root, name) : NULL;
    enum inspect_answer a = INSPECT_PASS;
    if (json_is_string(v)) /* before those in its place: the record has the first */
        a = llm_add_model(r, json_string_value(v));
    else if (v && !json_is_null(v))
        a = llm_doubt(r, name);
    bool named = r->call->models[0] || json_is_array(json_object_get(root, "models"));
    if (a == INSPECT_PASS)
        a = read_member(r, "", root, false);
    return a != INSPECT_PASS || !r->rules->by_model || (named && r->call->models[0])
               ? a
               : llm_refuse(r, "no model is named", "");
}

/* ---- numbers ---- */

static bool read_count(const json_t *v, uint64_t *ret)
{
    double d = json_number_value(v);
    if (!json_is_number(v) || !isfinite(d))
        return false;
    if (d < 0 || d >= LLM_TOKENS_MAX) {
        *ret = d < 0 ? 0 : LLM_TOKENS_MAX;
        return true;
    }
    *ret = (uint64_t)d;
    *ret += d > (double)*ret; /* rounded up */
    return true;
}

/* Servers of Ollama's older than the name pass over it. */
static bool is_passed_over(const struct llm_reading *r, const char *name)
{
    return (r->rules->apis & LLM_API_OLLAMA) && strcmp(name, "max_completion_tokens") == 0;
}

/* The largest of those said in this object. limitless: one of them says that there is none, as APIs
 * take what is below one. */
const char *llm_read_counts(const struct llm_reading *r, const json_t *at,
                            const char *const names[2], uint64_t *ret, bool *said, bool *limitless)
{
    for (size_t i = 0; i < 2 && names[i]; i++) {
        const json_t *v = json_object_get(at, names[i]);
        uint64_t n;
        if (body_json_twisted(at, names[i]))
            return names[i];
        if (v == NULL || json_is_null(v))
            continue;
        if (!read_count(v, &n))
            return names[i];
        *said = *said || !is_passed_over(r, names[i]);
        *limitless = *limitless || json_number_value(v) < 1;
        *ret = n > *ret ? n : *ret;
    }
    return NULL;
}

/* Completions of a list of prompts, each a text or a list of tokens, are so many answers. */
static uint64_t count_prompts(const json_t *prompts)
{
    uint64_t n = 0;
    for (size_t i = 0; json_is_array(prompts) && i < json_array_size(prompts); i++) {
        const json_t *one = json_array_get(prompts, i);
        n += json_is_string(one) || json_is_array(one);
    }
    return n ? n : 1;
}

static enum inspect_answer read_maxima(const struct llm_reading *r, const json_t *root)
{
    bool limitless = false, counted = false, none = false;
    for (size_t i = 0; i < 2 && r->keys->holders[i]; i++) {
        const char *name = r->keys->holders[i], *bad;
        const json_t *at = name[0] ? json_object_get(root, name) : root;
        if (name[0] && body_json_twisted(root, name))
            return llm_doubt(r, name);
        if (at == NULL || json_is_null(at))
            continue;
        if (!json_is_object(at))
            return llm_doubt(r, name);
        bad = llm_read_counts(r, at, r->keys->max, &r->call->max, &r->call->max_said, &limitless);
        if (bad == NULL)
            bad = llm_read_counts(r, at, r->keys->many, &r->call->many, &counted, &none);
        if (bad)
            return llm_doubt(r, bad);
    }
    if (limitless) {
        r->call->max_said = false;
        r->call->max = 0;
    }
    if (r->call->many == 0)
        r->call->many = 1;
    if (r->call->form == LLM_CHAT && body_json_twisted(root, "prompt"))
        return llm_doubt(r, "prompt");
    if (r->call->form == LLM_CHAT)
        r->call->many *= count_prompts(json_object_get(root, "prompt"));
    if (r->rules->max_tokens == 0 || r->keys->max[0] == NULL)
        return INSPECT_PASS;
    if (!r->call->max_said)
        return llm_refuse(r, "no maximum of tokens is asked for:", r->keys->max[0]);
    return r->call->max > r->rules->max_tokens ? llm_refuse(r, "too many tokens are asked for", "")
                                               : INSPECT_PASS;
}

/* ---- the rest ---- */

static unsigned count_tools(const json_t *list)
{
    unsigned n = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *tool = json_array_get(list, i);
        const json_t *many = json_object_get(tool, "functionDeclarations");
        if (many == NULL)
            many = json_object_get(tool, "function_declarations");
        n += json_is_array(many) ? (unsigned)json_array_size(many) : 1;
    }
    return n;
}

static enum inspect_answer read_facts(const struct llm_reading *r, const json_t *root,
                                      struct slice path)
{
    const struct llm_keys *k = r->keys;
    const json_t *tools = k->tools ? json_object_get(root, k->tools) : NULL;
    const json_t *stream = k->stream ? json_object_get(root, k->stream) : NULL;
    if (k->stream && body_json_twisted(root, k->stream))
        return llm_doubt(r, k->stream);
    if (stream && !json_is_boolean(stream) && !json_is_null(stream))
        return llm_doubt(r, k->stream);
    r->call->streamed = json_is_boolean(stream) ? json_is_true(stream) : k->streams;
    if (slice_ends(path, SLICE("stream")) || slice_ends(path, SLICE(":streamGenerateContent")) ||
        slice_ends(path, SLICE(":streamRawPredict")))
        r->call->streamed = true;
    if (r->call->form == LLM_RESPONSES) {
        const json_t *later = json_object_get(root, "background");
        if (body_json_twisted(root, "background") ||
            (later && !json_is_boolean(later) && !json_is_null(later)))
            return llm_doubt(r, "background");
        r->call->hides = json_is_true(later) ? "background" : NULL;
    }
    r->call->tools = count_tools(k->in_tools ? json_object_get(tools, k->in_tools) : tools);
    return INSPECT_PASS;
}

/* ---- the estimate ---- */

/* Names of images and files, in letters or by their URL. */
static bool is_file(const char *key)
{
    static const char *const names[] = {"data",  "url",    "image_url", "file_data",
                                        "bytes", "images", "audio"};
    for (size_t i = 0; key && i < ARRAY_LEN(names); i++)
        if (strcmp(key, names[i]) == 0)
            return true;
    return false;
}

/* Letters of base64, of both alphabets, and of URLs; nothing that stands between words. */
static bool is_encoded(const char *text, size_t n)
{
    if (n >= 9 && strncasecmp(text, "data:text", 9) == 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'z') ||
              (text[i] >= 'A' && text[i] <= 'Z') ||
              (text[i] && strchr("+/=-_:;,.?&%#~@", text[i]))))
            return false;
    return true;
}

/* A source that says of itself that it is text: `type: text`, `media_type: text/plain`. */
static bool says_text(const json_t *object)
{
    for (void *it = json_object_iter((json_t *)(uintptr_t)object); it;
         it = json_object_iter_next((json_t *)(uintptr_t)object, it)) {
        const char *value = json_string_value(json_object_iter_value(it));
        if (value && !is_file(json_object_iter_key(it)) && strncasecmp(value, "text", 4) == 0)
            return true;
    }
    return false;
}

/* Four bytes a token, of names and texts. key: whose value it is, where that is a file's. */
uint64_t llm_count(const json_t *v, const char *key)
{
    uint64_t n = 1;
    if (json_is_string(v)) {
        size_t size = json_string_length(v);
        bool file = is_file(key) && size >= LLM_ENCODED_MIN;
        return file && is_encoded(json_string_value(v), size) ? LLM_ENCODED_TOKENS : (size + 3) / 4;
    }
    for (size_t i = 0; json_is_array(v) && i < json_array_size(v); i++)
        n += llm_count(json_array_get(v, i), key);
    if (!json_is_object(v))
        return n;
    bool text = says_text(v);
    for (void *it = json_object_iter((json_t *)(uintptr_t)v); it;
         it = json_object_iter_next((json_t *)(uintptr_t)v, it)) {
        const char *name = json_object_iter_key(it);
        n += (strlen(name) + 3) / 4 + llm_count(json_object_iter_value(it), text ? NULL : name);
    }
    return n;
}

enum inspect_answer llm_read_body(struct llm_reading *r, enum llm_form form, const json_t *root)
{
    r->keys = &keys[form];
    enum inspect_answer a = read_models(r, root);
    if (a == INSPECT_PASS)
        a = read_maxima(r, root);
    return a == INSPECT_PASS ? read_facts(r, root, SLICE("")) : a;
}

static enum inspect_answer read_call(const struct llm_reading *r, const json_t *root,
                                     struct slice path, struct slice model)
{
    if (!json_is_object(root))
        return llm_refuse(r, "no call to a model", "");
    enum inspect_answer a = model.n > 0 ? llm_add_written_model(r, model) : INSPECT_PASS;
    if (a == INSPECT_PASS)
        a = read_models(r, root);
    if (a != INSPECT_PASS || r->free)
        return a;
    a = read_maxima(r, root);
    return a == INSPECT_PASS ? read_facts(r, root, path) : a;
}

enum inspect_answer inspect_llm_head(const struct inspection *in, const struct inspect_request *r,
                                     struct inspect_result *ret)
{
    struct slice model;
    bool free;
    if (r->upgrade) {
        struct llm_session session;
        return llm_session_begin(&session, in, r, ret);
    }
    if (llm_form_of(in->llm, r->path, &free, &model) == LLM_NONE) {
        if (r->has_body && llm_is_limited(in->llm))
            return inspect_refuse(ret, 403, code, "no call to a model that the rule knows");
        return in->llm->tools_any ? INSPECT_PASS : inspect_tools_head(r, ret);
    }
    if (!r->has_body)
        return INSPECT_PASS; /* nothing is asked of a model: it lists, or it fails */
    enum media m = inspect_media(r);
    return m == MEDIA_JSON || m == MEDIA_NONE ? INSPECT_MORE
                                              : inspect_refuse(ret, 415, "content_type", "");
}

enum inspect_answer inspect_llm_body(const struct inspection *in, const struct inspect_request *r,
                                     struct slice body, struct inspect_result *ret)
{
    struct slice model;
    bool free;
    enum llm_form form = llm_form_of(in->llm, r->path, &free, &model);
    if (form == LLM_NONE)
        return inspect_tools_body(in, body, ret);
    struct llm_reading reading = {in->llm, &keys[form], &ret->call, ret, free};
    json_t *root;
    memset(&ret->call, 0, sizeof ret->call);
    ret->call.form = form;
    if (inspect_json(body, &root, ret) < 0)
        return INSPECT_REFUSED;
    enum inspect_answer a = in->llm->tools_any ? INSPECT_PASS : inspect_tools_judge(in, root, ret);
    if (a == INSPECT_PASS && (!free || in->llm->by_model))
        a = read_call(&reading, root, r->path, model);
    if (a == INSPECT_PASS && !free)
        ret->call.estimate = llm_count(root, NULL);
    if (a != INSPECT_PASS || free)
        ret->call.form = LLM_NONE;
    json_decref(root);
    return a;
}
