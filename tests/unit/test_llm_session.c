/* Sessions with a model over a WebSocket: which may begin, what each of the client's events asks
 * for, and what the provider's say of tokens. */
#include "inspect.h"
#include "llm.h"
#include "llm_session.h"
#include "tap_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const allowed[] = {"gpt-rt*", "scribe"};
static const struct llm_rules limited = {.apis = LLM_API_OPENAI | LLM_API_AZURE,
                                         .by_model = true,
                                         .tools_any = true,
                                         .models = {allowed, 2},
                                         .max_tokens = 100,
                                         .assumed = 4096},
                              open_rules = {.apis = LLM_API_OPENAI,
                                            .tools_any = true,
                                            .assumed = 4096},
                              tools = {.apis = LLM_API_OPENAI, .assumed = 4096};

static const char *begin(struct llm_session *s, const struct llm_rules *r, const char *path,
                         const char *query)
{
    static char said[LLM_MODELS_MAX + INSPECT_DETAIL_MAX];
    struct inspection in = {.kind = INSPECT_LLM, .llm = r};
    struct inspect_result why = {.rpc_id = ""};
    struct inspect_request q = {.method = SLICE("GET"),
                                .path = slice_str(path),
                                .query = slice_str(query),
                                .has_query = query[0] != 0,
                                .upgrade = true};
    if (llm_session_begin(s, &in, &q, &why) == INSPECT_PASS)
        snprintf(said, sizeof said, "%s", why.call.models);
    else
        snprintf(said, sizeof said, "%u %s %s", why.status, why.code, why.detail);
    return said;
}

static void test_begin(void)
{
    static const struct {
        const char *path, *query, *want;
    } rows[] = {
        {"/v1/realtime", "model=gpt-rt-1", "gpt-rt-1"},
        {"/v1/realtime", "a=b&model=gpt%2Drt", "gpt-rt"},
        {"/openai/realtime", "api-version=1&deployment=gpt-rt", "gpt-rt"},
        {"/openai/v1/realtime", "model=gpt-rt", "gpt-rt"},
        {"/v1/responses", "", ""},
        {"/openai/v1/responses", "", ""},
        {"/backend-api/codex/responses", "", ""},
        {"/v1/realtime", "model=gpt-5", "403 llm model gpt-5"},
        {"/v1/realtime", "", "403 llm no model is named"},
        {"/v1/realtime", "models=gpt-rt", "403 llm no model is named"},
        {"/openai/realtime", "model=gpt-rt", "400 body_ambiguous model"},
        {"/v1/responses", "model=gpt-rt", "400 body_ambiguous model"},
        {"/v1/realtime", "model=gpt-rt&model=gpt-rt", "400 body_ambiguous model"},
        {"/v1/realtime", "Model=gpt-rt", "400 body_ambiguous model"},
        {"/v1/realtime", "mode%6c=gpt-5&model=gpt-rt", "400 body_ambiguous model"},
        {"/v1/realtime", "x;model=gpt-5&model=gpt-rt", "403 llm model gpt-5"},
        {"/v1/realtime", "model[]=gpt-5&model=gpt-rt", "400 body_ambiguous model"},
        {"/v1/realtime", "model=gpt-rt&deployment=x", "400 body_ambiguous model"},
        {"/v1/realtime", "model=", "400 body_ambiguous model"},
        {"/v1/realtime", "model=gpt-rt+x", "400 body_ambiguous model"},
        {"/v1/realtime", "model=gpt-rt%00", "403 llm a model of no such name"},
        {"/v1/realtime/calls", "model=gpt-rt",
         "403 llm no session with a model that the rule knows"},
        {"/v1/%72ealtime", "model=gpt-rt", "403 llm no session with a model that the rule knows"},
    };
    struct llm_session s;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *said = begin(&s, &limited, rows[i].path, rows[i].query);
        if (strcmp(said, rows[i].want) != 0)
            printf("# %s?%s: %s\n", rows[i].path, rows[i].query, said);
        CU_ASSERT_STRING_EQUAL(said, rows[i].want);
    }
    CU_ASSERT_STRING_EQUAL(begin(&s, &open_rules, "/v1/realtime", "call_id=x"), "");
    CU_ASSERT(strncmp(begin(&s, &open_rules, "/openai/realtime", ""), "403", 3) ==
              0); /* not said */
}

static const char *event(struct llm_session *s, const struct llm_rules *r, const char *text)
{
    static char said[64 + INSPECT_DETAIL_MAX];
    struct inspection in = {.kind = INSPECT_LLM, .llm = r};
    struct inspect_result why = {.rpc_id = ""};
    enum llm_asks asks;
    if (llm_session_event(s, &in, slice_str(text), &asks, &why) == INSPECT_PASS)
        snprintf(said, sizeof said, "%s%s%llu", asks == LLM_ASKS_ANSWER ? "answer " : "",
                 asks == LLM_ASKS_PERHAPS ? "perhaps " : "",
                 (unsigned long long)(why.call.max_said ? why.call.max : 0));
    else
        snprintf(said, sizeof said, "%u %s %s", why.status, why.code, why.detail);
    return said;
}

static void test_events(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"{\"type\":\"response.create\",\"response\":{\"max_output_tokens\":100}}", "answer 100"},
        {"{\"type\":\"response.create\",\"response\":{\"max_output_tokens\":101}}",
         "403 llm too many tokens are asked for"},
        {"{\"type\":\"response.create\"}",
         "403 llm no maximum of tokens is asked for: max_output_tokens"},
        {"{\"type\":\"response.create\",\"response\":null}",
         "403 llm no maximum of tokens is asked for: max_output_tokens"},
        {"{\"type\":\"response.create\",\"response\":{\"max_output_tokens\":\"inf\"}}",
         "403 llm no maximum of tokens is asked for: max_output_tokens"},
        {"{\"type\":\"response.create\",\"response\":{\"max_output_tokens\":50,"
         "\"max_response_output_tokens\":\"inf\"}}",
         "403 llm no maximum of tokens is asked for: max_output_tokens"},
        {"{\"type\":\"response.create\",\"response\":{\"max_output_tokens\":0}}",
         "403 llm no maximum of tokens is asked for: max_output_tokens"},
        {"{\"type\":\"response.create\",\"response\":{\"max_output_tokens\":\"5\"}}",
         "400 body_ambiguous max_output_tokens"},
        {"{\"type\":\"response.create\",\"response\":{\"Max_output_tokens\":5}}",
         "400 body_ambiguous max_output_tokens"},
        {"{\"type\":\"response.create\",\"response\":[]}", "400 body_ambiguous response"},
        {"{\"type\":\"response.create\",\"Response\":{\"max_output_tokens\":9}}",
         "400 body_ambiguous response"},
        {"{\"type\":\"session.update\",\"session\":{\"model\":\"gpt-rt-2\"}}", "0"},
        {"{\"type\":\"session.update\",\"session\":{\"model\":\"gpt-5\"}}", "403 llm model gpt-5"},
        {"{\"type\":\"session.update\",\"session\":{\"a\":[{\"b\":{\"model\":\"gpt-5\"}}]}}",
         "403 llm model gpt-5"},
        {"{\"type\":\"session.update\",\"session\":{\"t\":{\"model\":\"scribe\"}}}", "0"},
        {"{\"type\":\"session.update\",\"session\":{\"moDel\":\"scribe\"}}",
         "400 body_ambiguous model"},
        {"{\"type\":\"session.update\",\"session\":{\"p\":{\"model\":{\"type\":\"string\"}}}}",
         "0"},
        {"{\"type\":\"input_audio_buffer.append\",\"audio\":\"AAAA\"}",
         "403 llm an answer that audio begins has no maximum of tokens"},
        {"{\"type\":\"input_audio_buffer.clear\"}", "0"},
        {"{\"type\":\"something.new\",\"x\":1}", "0"},
        {"{\"x\":1}", "400 body_ambiguous type"},
        {"{\"type\":5}", "400 body_ambiguous type"},
        {"{\"type\":\"a\",\"TYPE\":\"response.create\"}", "400 body_ambiguous type"},
        {"{\"type\":\"a\",\"type\":\"response.create\"}", "400 body_ambiguous "},
        {"[]", "400 body_ambiguous type"},
        {"", "400 body_ambiguous "},
        {"{\"type\":\"a\"} {}", "400 body_ambiguous "},
    };
    struct llm_session s;
    CU_ASSERT_STRING_EQUAL(begin(&s, &limited, "/v1/realtime", "model=gpt-rt"), "gpt-rt");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *said = event(&s, &limited, rows[i].text);
        if (strcmp(said, rows[i].want) != 0)
            printf("# %s: %s\n", rows[i].text, said);
        CU_ASSERT_STRING_EQUAL(said, rows[i].want);
    }
    CU_ASSERT_STRING_EQUAL(s.models, "gpt-rt\ngpt-rt-2\nscribe"); /* each once; none refused */
}

static void test_audio_and_tools(void)
{
    struct llm_session s;
    uint64_t before;
    (void)begin(&s, &open_rules, "/v1/realtime", "model=m");
    CU_ASSERT_STRING_EQUAL(event(&s, &open_rules, "{\"type\":\"input_audio_buffer.append\"}"),
                           "perhaps 0");
    CU_ASSERT_STRING_EQUAL(event(&s, &open_rules, "{\"type\":\"input_audio_buffer.commit\"}"),
                           "perhaps 0");
    before = s.context;
    CU_ASSERT_STRING_EQUAL(event(&s, &open_rules, "{\"type\":\"response.create\"}"), "answer 0");
    CU_ASSERT(s.context > before);
    (void)begin(&s, &tools, "/v1/realtime", "model=m");
    CU_ASSERT(
        strncmp(event(&s, &tools,
                      "{\"type\":\"session.update\",\"session\":{\"tools\":[{\"type\":\"mcp\","
                      "\"server_label\":\"x\",\"server_url\":\"https://x\"}]}}"),
                "403 server_tool", 15) == 0);
    CU_ASSERT_STRING_EQUAL(
        event(&s, &tools,
              "{\"type\":\"session.update\",\"session\":{\"tools\":[{\"type\":\"function\","
              "\"name\":\"x\"}]}}"),
        "0");
}

/* The responses API by events: each names its model. */
static void test_responses(void)
{
    struct llm_session s;
    CU_ASSERT_STRING_EQUAL(begin(&s, &limited, "/v1/responses", ""), "");
    CU_ASSERT_STRING_EQUAL(event(&s, &limited,
                                 "{\"type\":\"response.create\",\"model\":\"gpt-rt\","
                                 "\"max_output_tokens\":7}"),
                           "answer 7");
    CU_ASSERT_STRING_EQUAL(event(&s, &limited,
                                 "{\"type\":\"response.create\",\"model\":\"gpt-5\","
                                 "\"max_output_tokens\":7}"),
                           "403 llm model gpt-5");
    CU_ASSERT_STRING_EQUAL(event(&s, &limited,
                                 "{\"type\":\"response.create\",\"max_output_tokens\":7,"
                                 "\"tools\":[{\"x\":{\"model\":\"gpt-rt\"}}]}"),
                           "403 llm no model is named");
}

static enum llm_tells tell(const char *text, size_t step, struct llm_usage *u)
{
    struct llm_events e = {.open = false};
    for (size_t i = 0, all = strlen(text); i < all; i += step) {
        size_t n = all - i;
        llm_events_feed(&e, (struct slice){text + i, n < step ? n : step});
    }
    return llm_events_end(&e, u);
}

static void test_told(void)
{
    static const struct {
        const char *text;
        enum llm_tells tells;
        bool known;
        unsigned in, cached, out, seen;
    } rows[] = {
        {"{\"type\":\"response.created\",\"response\":{\"usage\":null}}", LLM_TELLS_BEGUN, false, 0,
         0, 0, 0},
        {"{\"type\":\"response.done\",\"response\":{\"usage\":{\"input_tokens\":12,\"output_"
         "tokens\":3,"
         "\"input_token_details\":{\"cached_tokens\":4}}}}",
         LLM_TELLS_ENDED, true, 12, 4, 3, 0},
        {"{\"response\":{\"usage\":{\"output_tokens\":3,\"input_tokens\":12,"
         "\"input_tokens_details\":{\"cached_tokens\":5}}},\"type\":\"response.completed\"}",
         LLM_TELLS_ENDED, true, 12, 5, 3, 0},
        {"{\"type\":\"response.done\",\"response\":{\"usage\":null}}", LLM_TELLS_ENDED, false, 0, 0,
         0, 0},
        {"{\"type\":\"response.done\",\"response\":{\"status\":\"failed\",\"usage\":null}}",
         LLM_TELLS_ENDED, true, 0, 0, 0, 0},
        {"{\"type\":\"response.done\",\"response\":{\"usage\":{\"input_tokens\":12}}}",
         LLM_TELLS_ENDED, false, 12, 0, 0, 0},
        {"{\"type\":\"response.done\",\"response\":{\"usage\":{\"input_tokens\":1,\"input_tokens\":"
         "12,\"output_tokens\":3}}}",
         LLM_TELLS_ENDED, false, 1, 0, 3, 0},
        {"{\"type\":\"response.done\",\"response\":{\"usage\":{\"input_tokens\":-1,\"output_"
         "tokens\":3}}}",
         LLM_TELLS_ENDED, false, 0, 0, 3, 0},
        {"{\"type\":\"conversation.item.input_audio_transcription.completed\",\"usage\":{\"type\":"
         "\"tokens\","
         "\"input_tokens\":9,\"output_tokens\":2}}",
         LLM_TELLS_HEARD, true, 9, 0, 2, 0},
        {"{\"type\":\"conversation.item.input_audio_transcription.completed\",\"usage\":{\"type\":"
         "\"duration\",\"seconds\":2.5}}",
         LLM_TELLS_HEARD, false, 30, 0, 0, 0},
        {"{\"type\":\"error\",\"error\":{\"message\":\"x\"}}", LLM_TELLS_ERROR, false, 0, 0, 0, 0},
        {"{\"type\":\"response.output_text.delta\",\"delta\":\"12345\"}", LLM_TELLS_NOTHING, false,
         0, 0, 0, 2},
        {"{\"delta\":\"12345678\",\"type\":\"response.output_audio.delta\"}", LLM_TELLS_NOTHING,
         false, 0, 0, 0, 1},
        {"{\"type\":\"response.done\",", LLM_TELLS_NOTHING, false, 0, 0, 0, 0},
        {"", LLM_TELLS_NOTHING, false, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t step = 1; step < 200; step = step * 3 + 1) {
            struct llm_usage u;
            enum llm_tells tells = tell(rows[i].text, step, &u);
            bool same =
                tells == rows[i].tells && u.seen == rows[i].seen &&
                (tells == LLM_TELLS_NOTHING ||
                 ((tells == LLM_TELLS_HEARD || u.known == rows[i].known) && u.in == rows[i].in &&
                  u.cached == rows[i].cached && u.out == rows[i].out));
            if (!same)
                printf("# %s by %zu: %d %d %llu %llu %llu %llu\n", rows[i].text, step, (int)tells,
                       u.known, (unsigned long long)u.in, (unsigned long long)u.cached,
                       (unsigned long long)u.out, (unsigned long long)u.seen);
            CU_ASSERT(same);
        }
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("sessions with a model", NULL, NULL);
    CU_add_test(s, "which may begin", test_begin);
    CU_add_test(s, "what an event asks for", test_events);
    CU_add_test(s, "audio and tools", test_audio_and_tools);
    CU_add_test(s, "the responses API by events", test_responses);
    CU_add_test(s, "what the provider tells", test_told);
}
