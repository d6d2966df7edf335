/* Reads the head of a session, and the client's events as whole JSON texts. Events of unknown types
 * pass: whatever names a model or a tool is looked at in all. */
#include "llm_session.h"

#include "llm_reading.h"

#include <stdio.h>
#include <string.h>

enum { AUDIO_IN = 1067 /* letters of base64 to a token, in the densest format */ };
enum { NAME_MAX_ = 16 };

/* model: the parameter of the query that names it; NULL: each event does. */
static const struct {
    unsigned api;
    const char *end, *model;
    enum llm_form form;
} paths[] = {
    {LLM_API_AZURE, "/openai/realtime", "deployment", LLM_EVENTS},
    {LLM_API_AZURE, "/openai/v1/realtime", "model", LLM_EVENTS},
    {LLM_API_AZURE, "/openai/v1/responses", NULL, LLM_RESPONSES},
    {LLM_API_OPENAI, "/v1/realtime", "model", LLM_EVENTS},
    {LLM_API_OPENAI, "/v1/responses", NULL, LLM_RESPONSES},
    {LLM_API_OPENAI, "/backend-api/codex/responses", NULL, LLM_RESPONSES}, /* a subscription's */
};

/* ---- its head ---- */

static int hex(char c)
{
    return c >= '0' && c <= '9'                             ? c - '0'
           : ascii_lower(c) >= 'a' && ascii_lower(c) <= 'f' ? ascii_lower(c) - 'a' + 10
                                                            : -1;
}

/* A parameter's name as every server reads it, its escapes resolved; longer ones are cut. */
static void read_name(struct slice s, char to[NAME_MAX_ + 1])
{
    size_t n = 0;
    for (size_t i = 0; i < s.n && n < NAME_MAX_; i++) {
        char c = s.p[i];
        if (c == '%' && i + 2 < s.n && hex(s.p[i + 1]) >= 0 && hex(s.p[i + 2]) >= 0) {
            c = (char)(hex(s.p[i + 1]) << 4 | hex(s.p[i + 2]));
            i += 2;
        }
        to[n++] = c;
    }
    to[n] = 0;
}

/* One that some server could take for a model's. */
static bool names_model(struct slice name)
{
    char text[NAME_MAX_ + 1];
    read_name(name, text);
    struct slice s = slice_trim(slice_str(text));
    return slice_ieq_str(s, "model") || slice_ieq_str(s, "deployment") ||
           slice_ieq_str(s, "model[]") || slice_ieq_str(s, "deployment[]");
}

static enum inspect_answer read_parameter(const struct llm_reading *r, struct slice parameter,
                                          const char *model)
{
    ssize_t eq = slice_find(parameter, '=');
    struct slice name = {parameter.p, eq < 0 ? parameter.n : (size_t)eq};
    if (!names_model(name))
        return INSPECT_PASS;
    struct slice value = {parameter.p + name.n + 1, eq < 0 ? 0 : parameter.n - name.n - 1};
    if (model == NULL || !slice_eq_str(name, model) || r->call->models[0] || value.n == 0 ||
        slice_find(value, '+') >= 0)
        return llm_doubt(r, "model");
    return llm_add_written_model(r, value);
}

static enum inspect_answer read_query(const struct llm_reading *r, struct slice q,
                                      const char *model)
{
    while (q.n > 0) {
        size_t n = 0;
        while (n < q.n && q.p[n] != '&' && q.p[n] != ';')
            n++;
        enum inspect_answer a = read_parameter(r, (struct slice){q.p, n}, model);
        if (a != INSPECT_PASS)
            return a;
        n += n < q.n;
        q = (struct slice){q.p + n, q.n - n};
    }
    return INSPECT_PASS;
}

enum inspect_answer llm_session_begin(struct llm_session *s, const struct inspection *in,
                                      const struct inspect_request *r, struct inspect_result *ret)
{
    size_t i = 0;
    struct llm_reading reading = {in->llm, NULL, &ret->call, ret, false};
    memset(&ret->call, 0, sizeof ret->call);
    while (i < ARRAY_LEN(paths) &&
           !((in->llm->apis & paths[i].api) && slice_ends(r->path, slice_str(paths[i].end))))
        i++;
    if (i == ARRAY_LEN(paths))
        return llm_refuse(&reading, "no session with a model that the rule knows", "");
    enum inspect_answer a = read_query(&reading, r->query, paths[i].model);
    if (a != INSPECT_PASS)
        return a;
    if (paths[i].model && ret->call.models[0] == 0 && in->llm->by_model)
        return llm_refuse(&reading, "no model is named", "");
    ret->call.form = paths[i].form;
    *s = (struct llm_session){.form = paths[i].form};
    memcpy(s->models, ret->call.models, sizeof s->models);
    return INSPECT_PASS;
}

/* ---- the client's events ---- */

/* Wherever a text of that name stands: of the session, of an answer, of who writes down audio. */
static enum inspect_answer read_models(const struct llm_reading *r, const json_t *v)
{
    enum inspect_answer a = INSPECT_PASS;
    for (size_t i = 0; a == INSPECT_PASS && json_is_array(v) && i < json_array_size(v); i++)
        a = read_models(r, json_array_get(v, i));
    if (!json_is_object(v))
        return a;
    for (void *it = json_object_iter((json_t *)(uintptr_t)v); it && a == INSPECT_PASS;
         it = json_object_iter_next((json_t *)(uintptr_t)v, it)) {
        const char *key = json_object_iter_key(it),
                   *text = json_string_value(json_object_iter_value(it));
        if (text == NULL || !body_json_same(key, "model"))
            a = read_models(r, json_object_iter_value(it));
        else
            a = strcmp(key, "model") ? llm_doubt(r, "model") : llm_add_model(r, text);
    }
    return a;
}

static enum inspect_answer read_maximum(const struct llm_reading *r, const json_t *answer)
{
    static const char *const names[2] = {"max_output_tokens", "max_response_output_tokens"};
    bool limitless = false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *const one[2] = {names[i], NULL}, *text;
        text = json_string_value(json_object_get(answer, names[i]));
        if (text && strcmp(text, "inf") == 0) {
            limitless = true;
            continue;
        }
        const char *bad =
            llm_read_counts(r, answer, one, &r->call->max, &r->call->max_said, &limitless);
        if (bad)
            return llm_doubt(r, bad);
    }
    if (limitless) {
        r->call->max_said = false;
        r->call->max = 0;
    }
    if (r->rules->max_tokens && !r->call->max_said)
        return llm_refuse(r, "no maximum of tokens is asked for:", names[0]);
    return r->rules->max_tokens && r->call->max > r->rules->max_tokens
               ? llm_refuse(r, "too many tokens are asked for", "")
               : INSPECT_PASS;
}

/* An answer by realtime's `response.create`. */
static enum inspect_answer read_answer(const struct llm_reading *r, const json_t *root)
{
    const json_t *answer = json_object_get(root, "response");
    if (body_json_twisted(root, "response") ||
        (answer && !json_is_object(answer) && !json_is_null(answer)))
        return llm_doubt(r, "response");
    return read_maximum(r, answer);
}

/* Audio in pieces: each would count as a file. */
static uint64_t count_audio(const json_t *root)
{
    return json_string_length(json_object_get(root, "audio")) / AUDIO_IN + 1;
}

static enum inspect_answer read_event(struct llm_session *s, struct llm_reading *r,
                                      const json_t *root, enum llm_asks *asks)
{
    const char *type = json_string_value(json_object_get(root, "type"));
    bool realtime = s->form == LLM_EVENTS;
    if (type == NULL || body_json_twisted(root, "type"))
        return llm_doubt(r, "type");
    bool create = strcmp(type, "response.create") == 0;
    enum inspect_answer a =
        create && !realtime ? llm_read_body(r, LLM_RESPONSES, root) : INSPECT_PASS;
    if (a == INSPECT_PASS)
        a = read_models(r, root);
    if (a != INSPECT_PASS)
        return a;
    memcpy(s->models, r->call->models, sizeof s->models);
    bool piece = strcmp(type, "input_audio_buffer.append") == 0;
    s->context += piece ? count_audio(root) : llm_count(root, NULL);
    r->call->estimate = s->context;
    if (create) {
        *asks = LLM_ASKS_ANSWER;
        return realtime ? read_answer(r, root) : INSPECT_PASS;
    }
    if (!realtime || !(piece || strcmp(type, "input_audio_buffer.commit") == 0))
        return INSPECT_PASS;
    *asks = LLM_ASKS_PERHAPS;
    return r->rules->max_tokens
               ? llm_refuse(r, "an answer that audio begins has no maximum of tokens", "")
               : INSPECT_PASS;
}

enum inspect_answer llm_session_event(struct llm_session *s, const struct inspection *in,
                                      struct slice event, enum llm_asks *asks,
                                      struct inspect_result *ret)
{
    json_t *root;
    struct llm_reading reading = {in->llm, NULL, &ret->call, ret, false};
    *asks = LLM_ASKS_NOTHING;
    memset(&ret->call, 0, sizeof ret->call);
    ret->call.form = s->form;
    ret->call.many = 1;
    if (event.n > LLM_EVENT_MAX)
        return inspect_refuse(ret, 413, "too_large_to_inspect", "");
    if (s->form == LLM_EVENTS)
        memcpy(ret->call.models, s->models, sizeof s->models);
    if (inspect_json(event, &root, ret) < 0)
        return INSPECT_REFUSED;
    enum inspect_answer a = !json_is_object(root) ? llm_doubt(&reading, "type")
                            : in->llm->tools_any  ? INSPECT_PASS
                                                  : inspect_tools_judge(in, root, ret);
    if (a == INSPECT_PASS)
        a = read_event(s, &reading, root, asks);
    json_decref(root);
    return a;
}
