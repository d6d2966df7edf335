/* Calls to models: what is read of a request by its rule, and of a reply's usage in the forms of
 * six vendors, whole, cut at each byte, and broken. The streams are made after the vendors'
 * documents. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect.h"
#include "llm.h"
#include "llm_reply.h"
#include "policy.h"
#include "price.h"
#include "tap_main.h"

/* Single quotes for double ones. */
static char *quoted(const char *s)
{
    char *t = strdup(s);
    for (char *p = t; p && *p; p++)
        if (*p == '\'')
            *p = '"';
    return t;
}

static struct policy *policy_of(const char *rest, struct err *err)
{
    char *text = NULL;
    if (asprintf(&text, "{'policy':'p',%s}", rest) < 0)
        return NULL;
    char *json = quoted(text);
    struct policy *p = policy_parse(json, strlen(json), err);
    free(json);
    free(text);
    return p;
}

/* ---- requests ---- */

struct said {
    unsigned status;
    char code[32], detail[INSPECT_DETAIL_MAX];
    struct llm_call call;
};

static struct said asks(const char *rule, const char *path, const char *body)
{
    struct err err = {0};
    char rules[1024];
    snprintf(rules, sizeof rules, "'rules':[{'allow':'a.com',%s}]", rule);
    struct policy *p = policy_of(rules, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    const struct inspection *in = policy_rule(p, 0)->inspection;
    char *text = body ? quoted(body) : NULL;
    struct inspect_request r = {.method = SLICE("POST"),
                                .path = slice_str(path),
                                .n_types = 1,
                                .type = SLICE("application/json"),
                                .has_body = body != NULL,
                                .length = body ? strlen(text) : 0};
    struct inspect_result why = {0};
    enum inspect_answer a = inspect_head(in, &r, &why);
    if (a == INSPECT_MORE)
        a = inspect_body(in, &r, slice_str(text), true, &why);
    struct said s = {.status = a == INSPECT_REFUSED ? why.status : 0, .call = why.call};
    if (why.code)
        snprintf(s.code, sizeof s.code, "%s", why.code);
    memcpy(s.detail, why.detail, sizeof s.detail);
    free(text);
    policy_free(p);
    return s;
}

static void is_call(const char *rule, const char *path, const char *body, enum llm_form form,
                    const char *models, unsigned tools, bool streamed, uint64_t max)
{
    struct said s = asks(rule, path, body);
    if (s.status || s.call.form != form || strcmp(s.call.models, models) != 0 ||
        s.call.tools != tools || s.call.streamed != streamed || s.call.max != max)
        printf("# %s: %u %s %s, form %d, '%s', %u tools, streamed %d, max %llu\n", body, s.status,
               s.code, s.detail, s.call.form, s.call.models, s.call.tools, s.call.streamed,
               (unsigned long long)s.call.max);
    CU_ASSERT_EQUAL(s.status, 0);
    CU_ASSERT_EQUAL(s.call.form, form);
    CU_ASSERT_STRING_EQUAL(s.call.models, models);
    CU_ASSERT_EQUAL(s.call.tools, tools);
    CU_ASSERT_EQUAL(s.call.streamed, streamed);
    CU_ASSERT_EQUAL(s.call.max, max);
    CU_ASSERT_EQUAL(s.call.max_said, max > 0);
}

static void test_requests(void)
{
    static const char openai[] = "'llm':'openai'", azure[] = "'llm':'azure'",
                      gemini[] = "'llm':'gemini'", bedrock[] = "'llm':'bedrock'",
                      ollama[] = "'llm':'ollama'", both[] = "'llm':['openai','anthropic']";
    is_call(openai, "/v1/chat/completions",
            "{'model':'gpt-x','messages':[],'max_tokens':5,'max_completion_tokens':9,'stream':true,"
            "'tools':[{'type':'function'},{'type':'function'}]}",
            LLM_CHAT, "gpt-x", 2, true, 9);
    is_call(openai, "/v1/chat/completions", "{'model':'a','models':['b','c'],'stream':null}",
            LLM_CHAT, "a\nb\nc", 0, false, 0);
    is_call(openai, "/v1/responses", "{'model':'gpt-x','input':'?','max_output_tokens':77}",
            LLM_RESPONSES, "gpt-x", 0, false, 77);
    is_call(openai, "/v1/embeddings", "{'model':'e','input':['a','b']}", LLM_EMBEDDINGS, "e", 0,
            false, 0);
    is_call(both, "/v1/messages",
            "{'model':'claude-x','max_tokens':1024,'stream':true,'tools':[{'name':'t'}]}",
            LLM_MESSAGES, "claude-x", 1, true, 1024);
    is_call(azure, "/openai/deployments/mine/chat/completions", "{'messages':[]}", LLM_CHAT, "mine",
            0, false, 0);
    is_call(azure, "/openai/deployments/mine/chat/completions", "{'model':'other'}", LLM_CHAT,
            "mine\nother", 0, false, 0);
    is_call(gemini, "/v1beta/models/gemini-x:streamGenerateContent",
            "{'contents':[],'tools':[{'functionDeclarations':[{},{}]},{'function_declarations':[{}]"
            "}],'generationConfig':{'maxOutputTokens':12}}",
            LLM_GEMINI, "gemini-x", 3, true, 12);
    is_call(gemini, "/v1/projects/p/locations/l/publishers/google/models/g:generateContent",
            "{'generation_config':{'max_output_tokens':12,'candidate_count':2}}", LLM_GEMINI, "g",
            0, false, 12);
    is_call(gemini, "/v1/projects/p/publishers/anthropic/models/claude:streamRawPredict",
            "{'max_tokens':3}", LLM_MESSAGES, "claude", 0, true, 3);
    is_call(bedrock, "/model/anthropic.claude-v1%3A0/converse",
            "{'messages':[],'inferenceConfig':{'maxTokens':8},'toolConfig':{'tools':[{}]}}",
            LLM_CONVERSE, "anthropic.claude-v1:0", 1, false, 8);
    is_call(bedrock, "/model/m/converse-stream", "{}", LLM_CONVERSE, "m", 0, true, 0);
    is_call(ollama, "/api/chat", "{'model':'l','options':{'num_predict':6}}", LLM_OLLAMA, "l", 0,
            true, 6);
    is_call(ollama, "/api/chat", "{'model':'l','stream':false,'options':{'num_predict':-1}}",
            LLM_OLLAMA, "l", 0, false, 0);
    CU_ASSERT_EQUAL(asks(both, "/v1/messages/count_tokens", "{'model':'c'}").call.form, LLM_NONE);
    CU_ASSERT_EQUAL(asks(openai, "/v1/files", "{}").status, 0);
    CU_ASSERT_EQUAL(asks(openai, "/v1/models", NULL).status, 0);
}

static void refuses(const char *rule, const char *path, const char *body, unsigned status,
                    const char *code, const char *detail)
{
    struct said s = asks(rule, path, body);
    if (s.status != status || strcmp(s.code, code) != 0 || strcmp(s.detail, detail) != 0)
        printf("# %s: %u %s '%s'\n", body, s.status, s.code, s.detail);
    CU_ASSERT_EQUAL(s.status, status);
    CU_ASSERT_STRING_EQUAL(s.code, code);
    CU_ASSERT_STRING_EQUAL(s.detail, detail);
}

static void test_limits(void)
{
    static const char chat[] = "/v1/chat/completions",
                      some[] = "'llm':{'api':'openai','models':['gpt-4*','o1']}",
                      least[] = "'llm':{'api':['openai','ollama'],'max_tokens':100}",
                      cloud[] = "'llm':{'api':['gemini','bedrock'],'models':'good*'}",
                      answer[] = "'llm':{'api':'gemini','max_tokens':100}";
    CU_ASSERT_EQUAL(asks(some, chat, "{'model':'gpt-4o'}").status, 0);
    CU_ASSERT_EQUAL(asks(some, "/v1/models", NULL).status, 0);
    refuses(some, chat, "{'model':'gpt-5'}", 403, "llm", "model gpt-5");
    refuses(some, chat, "{'model':'GPT-4o'}", 403, "llm", "model GPT-4o");
    refuses(some, chat, "{'model':'x y\\n'}", 403, "llm", "a model of no such name");
    refuses(some, chat, "{'model':'o1','models':['gpt-5']}", 403, "llm", "model gpt-5");
    refuses(some, chat, "{'messages':[]}", 403, "llm", "no model is named");
    refuses(some, chat, "[]", 403, "llm", "no call to a model");
    refuses(some, chat, "{'model':'o1','model':'gpt-5'}", 400, "body_ambiguous", "");
    refuses(some, chat, "{'model':'o1','Model':'gpt-5'}", 400, "body_ambiguous", "model");
    refuses(some, chat, "{'model':['o1']}", 400, "body_ambiguous", "model");
    refuses(some, chat, "{'model':'o1','models':'gpt-5'}", 403, "llm", "model gpt-5");
    refuses(some, chat, "{'model':'o1','models':{'a':'gpt-5'}}", 403, "llm", "model gpt-5");
    refuses(some, chat, "{'models':[null]}", 403, "llm", "no model is named");
    refuses(some, chat, "{'model':'o1','stream':'yes'}", 400, "body_ambiguous", "stream");
    refuses(some, "/v1/completion", "{'model':'o1'}", 403, "llm",
            "no call to a model that the rule knows");
    refuses(some, "/v1/chat/completions/", "{'model':'gpt-5'}", 403, "llm",
            "no call to a model that the rule knows");
    refuses(cloud, "/v1/models/bad:generateContent", "{}", 403, "llm", "model bad");
    refuses(cloud, "/v1/models/bad:countTokens", "{}", 403, "llm", "model bad");
    refuses(cloud, "/model/b%61d/converse", "{}", 403, "llm", "model bad");
    refuses(cloud, "/model/good/x/converse", "{}", 403, "llm",
            "no call to a model that the rule knows");
    CU_ASSERT_EQUAL(asks(cloud, "/v1/models/good-1:countTokens", "{}").status, 0);
    CU_ASSERT_EQUAL(asks(least, chat, "{'model':'m','max_tokens':100}").status, 0);
    refuses(least, chat, "{'model':'m','max_tokens':101}", 403, "llm",
            "too many tokens are asked for");
    refuses(least, chat, "{'model':'m','max_tokens':1,'max_completion_tokens':1e9}", 403, "llm",
            "too many tokens are asked for");
    refuses(least, chat, "{'model':'m'}", 403, "llm",
            "no maximum of tokens is asked for: max_tokens");
    refuses(least, chat, "{'model':'m','max_tokens':'9'}", 400, "body_ambiguous", "max_tokens");
    refuses(least, chat, "{'model':'m','max_tokens':1,'MAX_tokens':999}", 400, "body_ambiguous",
            "max_tokens");
    refuses(least, "/api/chat", "{'model':'m','options':{'num_predict':-1}}", 403, "llm",
            "no maximum of tokens is asked for: num_predict");
    refuses(answer, "/v1/models/g:generateContent",
            "{'generationConfig':{'maxOutputTokens':1},'generation_config':{'max_output_tokens':"
            "999}}",
            403, "llm", "too many tokens are asked for");
    refuses(answer, "/v1/models/g:generateContent", "{'generationConfig':[]}", 400,
            "body_ambiguous", "generationConfig");
}

/* Where the model stands in the path, no other spelling of it is another call. */
static void test_paths(void)
{
    static const char *const rules[] = {
        "'llm':{'api':'azure','models':'cheap'}",
        "'llm':{'api':['azure','openai'],'models':'cheap'}",
        "'llm':{'api':['azure','openai','gemini','bedrock','ollama'],'models':'cheap'}",
    };
    static const char *const bad[] = {
        "/openai/%64eployments/dear/chat/completions",
        "/openai/Deployments/dear/chat/completions",
        "/openai/DEPLOYMENTS/dear/embeddings",
        "/openai/deployments/dear/extensions/chat/completions",
        "/openai/deployments;x/dear/chat/completions",
        "/openai/deployments%2Fdear/chat/completions",
        "/openai/deployments%2Fdear/openai/v1/chat/completions",
        "/openai/deployments/dear/openai/v1/chat/completions",
        "/openai/deployments/dear/deployments/cheap/chat/completions",
        "/openai/Deployments/dear/deployments/cheap/chat/completions",
        "/openai/%64eployments/dear/deployments/cheap/chat/completions",
    };
    static const char gemini[] = "'llm':{'api':['gemini','openai'],'models':'cheap'}",
                      all[] = "'llm':{'api':['azure','gemini','bedrock'],'models':'*cheap'}";
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        for (size_t k = 0; k < ARRAY_LEN(bad); k++)
            refuses(rules[i], bad[k], "{'model':'cheap'}", 403, "llm",
                    "no call to a model that the rule knows");
    static const char *const good[] = {"/openai/v1/chat/completions", "/openai/v1/responses",
                                       "/openai/v1/embeddings",       "/openai/responses",
                                       "/models/chat/completions",    "/models/embeddings"};
    for (size_t k = 0; k < ARRAY_LEN(good); k++)
        CU_ASSERT_EQUAL(asks(rules[0], good[k], "{'model':'cheap'}").status, 0);
    refuses(rules[0], "/v1/chat/completions", "{'model':'cheap'}", 403, "llm",
            "no call to a model that the rule knows");
    refuses(gemini, "/v1/%6Dodels/dear/x/chat/completions", "{'model':'cheap'}", 403, "llm",
            "no call to a model that the rule knows");
    refuses(gemini, "/v1/Models/dear/models/cheap:generateContent", "{}", 403, "llm",
            "no call to a model that the rule knows");
    CU_ASSERT_EQUAL(asks(gemini, "/v1beta/openai/chat/completions", "{'model':'cheap'}").status, 0);
    refuses("'llm':{'api':'gemini','models':'cheap'}",
            "/v1/projects/p/endpoints/dear/chat/completions", "{'model':'cheap'}", 403, "llm",
            "no call to a model that the rule knows");
    refuses("'llm':{'api':'azure','models':'*cheap'}",
            "/openai/deployments/dear%2Fcheap/chat/completions", "{}", 403, "llm",
            "a model of no such name");
    refuses(all, "/model/dear%253Fcheap/converse", "{}", 403, "llm", "a model of no such name");
    refuses(all, "/model/dear%3Fcheap/converse", "{}", 403, "llm", "a model of no such name");
    CU_ASSERT_EQUAL(asks(all, "/model/arn%3Aaws%3Aprofile%2Fcheap/converse", "{}").status, 0);
}

static void test_no_maxima(void)
{
    static const char chat[] = "'llm':{'api':'openai','max_tokens':100}",
                      ollama[] = "'llm':{'api':'ollama','max_tokens':100}";
    static const char *const none[] = {"0", "-5", "0.5", "-0.0"};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        char body[200];
        snprintf(body, sizeof body, "{'model':'m','max_tokens':%s}", none[i]);
        refuses(chat, "/v1/chat/completions", body, 403, "llm",
                "no maximum of tokens is asked for: max_tokens");
        CU_ASSERT_FALSE(asks("'llm':'openai'", "/v1/chat/completions", body).call.max_said);
        snprintf(body, sizeof body, "{'model':'m','options':{'num_predict':%s}}", none[i]);
        refuses(ollama, "/api/chat", body, 403, "llm",
                "no maximum of tokens is asked for: num_predict");
    }
    refuses(ollama, "/v1/chat/completions", "{'model':'m','max_completion_tokens':9}", 403, "llm",
            "no maximum of tokens is asked for: max_tokens");
    refuses(ollama, "/v1/chat/completions",
            "{'model':'m','max_tokens':1,'max_completion_tokens':101}", 403, "llm",
            "too many tokens are asked for");
    CU_ASSERT_EQUAL(asks(ollama, "/v1/chat/completions", "{'model':'m','max_tokens':9}").status, 0);
    CU_ASSERT_EQUAL(
        asks(chat, "/v1/chat/completions", "{'model':'m','max_completion_tokens':9}").status, 0);
}

/* What is answered later, and elsewhere. */
static void test_hides(void)
{
    static const char path[] = "/v1/responses";
    struct said s = asks("'llm':'openai'", path, "{'model':'m','background':true}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(s.call.hides);
    CU_ASSERT_STRING_EQUAL(s.call.hides, "background");
    CU_ASSERT_PTR_NULL(asks("'llm':'openai'", path, "{'model':'m','background':false}").call.hides);
    CU_ASSERT_PTR_NULL(asks("'llm':'openai'", path, "{'model':'m','background':null}").call.hides);
    refuses("'llm':'openai'", path, "{'model':'m','background':1}", 400, "body_ambiguous",
            "background");
    refuses("'llm':'openai'", path, "{'model':'m','Background':true}", 400, "body_ambiguous",
            "background");
}

/* Wherever a body names a model that may answer, but where it is spoken to one, or in a schema. */
static void test_other_models(void)
{
    static const char some[] = "'llm':{'api':['openai','anthropic'],'models':['cheap*','image']}";
    static const struct {
        const char *path, *body, *refused;
    } rows_of[] = {
        {"/v1/messages", "'fallbacks':[{'model':'dear'}]", "model dear"},
        {"/v1/messages", "'fallbacks':['cheap-2',{'model':'dear','max_tokens':9}]", "model dear"},
        {"/v1/messages", "'fallbacks':'default'", "model default"},
        {"/v1/messages", "'models':['dear']", "model dear"},
        {"/v1/messages", "'tools':[{'type':'advisor_20260301','name':'a','model':'dear'}]",
         "model dear"},
        {"/v1/responses", "'tools':[{'type':'namespace','tools':[{'type':'x','model':'dear'}]}]",
         "model dear"},
        {"/v1/chat/completions", "'models':'dear'", "model dear"},
        {"/v1/chat/completions", "'fallbacks':['dear']", "model dear"},
        {"/v1/chat/completions", "'providerOptions':{'gateway':{'models':['dear']}}", "model dear"},
        {"/v1/chat/completions", "'plugins':[{'id':'p','model':'dear'}]", "model dear"},
        {"/v1/messages/count_tokens", "'fallbacks':[{'model':'dear'}]", "model dear"},
        {"/v1/chat/completions", "'compound':{'models':{'reasoning':'dear'}}", "model dear"},
        {"/v1/chat/completions", "'fallbacks':[{'cheap':['cheap-2','dear']}]", "model dear"},
        {"/v1/messages", "'fallbacks':[{'model':'cheap-2','messages':'dear'}],'models':null", NULL},
        {"/v1/responses", "'tools':[{'type':'image_generation','model':'image'}]", NULL},
        {"/v1/messages", "'messages':[{'content':[{'type':'tool_use','input':{'model':'dear'}}]}]",
         NULL},
        {"/v1/messages",
         "'tools':[{'name':'t','input_schema':{'properties':{'model':{'default':'dear'}}}}]", NULL},
        {"/v1/chat/completions", "'metadata':{'model':'dear'},'response_format':{'model':'dear'}",
         NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows_of); i++) {
        char body[256];
        snprintf(body, sizeof body, "{'model':'cheap','max_tokens':9,%s}", rows_of[i].body);
        if (rows_of[i].refused)
            refuses(some, rows_of[i].path, body, 403, "llm", rows_of[i].refused);
        else
            CU_ASSERT_EQUAL(asks(some, rows_of[i].path, body).status, 0);
    }
    refuses(some, "/v1/messages", "{'model':'cheap','Fallbacks':['dear']}", 403, "llm",
            "model dear");
    refuses(some, "/v1/messages", "{'model':'cheap','x':{'Model':'dear'}}", 400, "body_ambiguous",
            "model");
    refuses(some, "/v1/messages", "{'model':'cheap','tools':[{'MODEL':'dear'}]}", 400,
            "body_ambiguous", "model");
    is_call("'llm':'anthropic'", "/v1/messages",
            "{'fallbacks':[{'model':'b'},{'model':'a'}],'model':'a','max_tokens':5}", LLM_MESSAGES,
            "a\nb", 0, false, 5);
    is_call("'llm':'openai'", "/v1/responses/compact", "{'model':'m','input':[]}", LLM_RESPONSES,
            "m", 0, false, 0);
    is_call("'llm':'azure'", "/openai/v1/responses/compact", "{'model':'m'}", LLM_RESPONSES, "m", 0,
            false, 0);
}

/* What is served at another price than its model's. */
static void test_dear(void)
{
    static const struct {
        const char *rule, *path, *body, *dear;
    } rows_of[] = {
        {"'llm':'openai'", "/v1/responses", "'service_tier':'priority'", "service_tier"},
        {"'llm':'openai'", "/v1/responses", "'Service_Tier':'fast'", "service_tier"},
        {"'llm':'openai'", "/v1/responses", "'service_tier':'flex'", NULL},
        {"'llm':'openai'", "/v1/responses", "'service_tier':null", NULL},
        {"'llm':'openai'", "/v1/chat/completions",
         "'providerOptions':{'openai':{'serviceTier':'priority'}}", "serviceTier"},
        {"'llm':'anthropic'", "/v1/messages", "'speed':'fast'", "speed"},
        {"'llm':'anthropic'", "/v1/messages", "'speed':'standard','service_tier':'auto'", NULL},
        {"'llm':'anthropic'", "/v1/messages", "'inference_geo':'us'", "inference_geo"},
        {"'llm':'anthropic'", "/v1/messages", "'messages':[{'speed':'fast'}]", NULL},
        {"'llm':'gemini'", "/v1/models/g:generateContent", "'serviceTier':'PRIORITY'",
         "serviceTier"},
        {"'llm':'gemini'", "/v1/models/g:generateContent",
         "'generationConfig':{'responseSchema':{'properties':{'speed':{'type':'STRING'}}}}", NULL},
        {"'llm':'bedrock'", "/model/m/converse", "'serviceTier':{'type':'priority'}",
         "serviceTier"},
        {"'llm':'bedrock'", "/model/m/converse", "'performanceConfig':{'latency':'optimized'}",
         "performanceConfig"},
        {"'llm':'bedrock'", "/model/m/converse", "'serviceTier':{'type':'default'}", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows_of); i++) {
        char body[256];
        snprintf(body, sizeof body, "{'model':'m','max_tokens':9,%s}", rows_of[i].body);
        const char *dear = asks(rows_of[i].rule, rows_of[i].path, body).call.dear;
        if (!dear != !rows_of[i].dear)
            printf("# %s: %s\n", rows_of[i].body, dear ? dear : "plain");
        CU_ASSERT_EQUAL(!dear, !rows_of[i].dear);
        if (dear && rows_of[i].dear)
            CU_ASSERT_STRING_EQUAL(dear, rows_of[i].dear);
    }
}

static void test_tools(void)
{
    static const char chat[] = "/v1/responses",
                      search[] = "{'model':'m','tools':[{'type':'web_search'}]}",
                      none[] = "'llm':'openai','server_tools':[]",
                      one[] = "'llm':'openai','server_tools':['web_search']";
    refuses(none, chat, search, 403, "server_tool", "web_search");
    CU_ASSERT_EQUAL(asks(one, chat, search).status, 0);
    CU_ASSERT_EQUAL(asks("'llm':'openai'", chat, search).status, 0);
    refuses("'llm':'openai','with':{'bearer':'s'}", chat, search, 403, "server_tool", "web_search");
    refuses(none, "/v1/other", search, 403, "server_tool", "web_search");
    static const char *const openrouter[] = {
        "{'model':'m:online'}", "{'model':'m:OnLine'}", "{'model':'m','models':['a','b:online']}",
        "{'model':'m','plugins':[{'id':'web'}]}", "{'model':'m','Plugins':[{}]}"};
    for (size_t i = 0; i < ARRAY_LEN(openrouter); i++) {
        refuses(none, chat, openrouter[i], 403, "server_tool", "web_search");
        CU_ASSERT_NOT_EQUAL(asks(one, chat, openrouter[i]).status, 403);
        refuses("'server_tools':[]", "/v1/other", openrouter[i], 403, "server_tool", "web_search");
    }
    CU_ASSERT_EQUAL(asks(none, chat, "{'model':'m:free','plugins':[]}").status, 0);
    CU_ASSERT_EQUAL(asks(none, chat, "{'model':'m','x':{'plugins':{'type':'array'}}}").status, 0);
}

static uint64_t estimate_of(const char *before, const char *text, const char *after)
{
    char *body = NULL;
    CU_ASSERT_FATAL(asprintf(&body, "{'model':'m',%s%s%s}", before, text, after) > 0);
    struct said s = asks("'llm':'openai'", "/v1/chat/completions", body);
    CU_ASSERT_EQUAL(s.status, 0);
    free(body);
    return s.call.estimate;
}

/* How many answers a call asks for. */
static void test_many(void)
{
    static const struct {
        const char *path, *body;
        uint64_t many;
    } rows_of[] = {
        {"/v1/chat/completions", "{'model':'m','n':3}", 3},
        {"/v1/completions", "{'model':'m','prompt':'a','n':2,'best_of':20}", 20},
        {"/v1/completions", "{'model':'m','prompt':['a','b','c']}", 3},
        {"/v1/completions", "{'model':'m','prompt':[[1,2],[3]],'n':4}", 8},
        {"/v1/completions", "{'model':'m','prompt':[1,2,3]}", 1},
        {"/v1/completions", "{'model':'m','prompt':[]}", 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows_of); i++) {
        struct said s = asks("'llm':'openai'", rows_of[i].path, rows_of[i].body);
        CU_ASSERT_EQUAL(s.status, 0);
        CU_ASSERT_EQUAL(s.call.many, rows_of[i].many);
    }
    refuses("'llm':'openai'", "/v1/completions", "{'model':'m','prompt':'a','Prompt':['a','b']}",
            400, "body_ambiguous", "prompt");
}

/* Four bytes a token; a file of base64 or a URL counts as an image does, and nothing else. */
static void test_estimate(void)
{
    enum { N = 40000 };
    static const struct {
        const char *before, *after;
    } files[] = {{"'image_url':{'url':'data:image/png;base64,", "'}"},
                 {"'image_url':'https://a.com/x.png?", "'"},
                 {"'images':['", "']"},
                 {"'file':{'file_data':'", "'}"},
                 {"'source':{'bytes':'", "'}"},
                 {"'source':{'type':'base64','media_type':'image/png','data':'", "'}"}},
      texts[] = {{"'image':'", "'"},
                 {"'content':'", "'"},
                 {"'url':'a\\n", "'"},
                 {"'url':'a b", "'"},
                 {"'data':'\u00a0", "'"},
                 {"'url':'data:text/plain;base64,", "'"},
                 {"'source':{'type':'text','data':'", "'}"},
                 {"'inline':{'mimeType':'text/plain','data':'", "'}"}};
    char blob[N + 1];
    struct said s;
    s = asks("'llm':'openai'", "/v1/chat/completions",
             "{'model':'m','messages':[{'role':'user','content':'sixteen letters!'}]}");
    CU_ASSERT(s.call.estimate >= 10 && s.call.estimate < 30);
    memset(blob, 'A', N);
    blob[N] = 0;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        uint64_t n = estimate_of(files[i].before, blob, files[i].after);
        CU_ASSERT(n >= LLM_ENCODED_TOKENS && n < LLM_ENCODED_TOKENS + 40);
    }
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        CU_ASSERT(estimate_of(texts[i].before, blob, texts[i].after) >= N / 4);
    for (size_t i = 99; i < N; i += 100)
        blob[i] = '|';
    CU_ASSERT(estimate_of(files[0].before, blob, files[0].after) >= N / 4);
}

static void test_rules(void)
{
    static const struct {
        const char *rest, *says;
    } bad[] = {
        {"'rules':[{'allow':'a.com','llm':'bard'}]", "one of"},
        {"'rules':[{'allow':'a.com','llm':{}}]", "needs 'api'"},
        {"'rules':[{'allow':'a.com','llm':'openai','mcp':{'tools':[]}}]", "keep one"},
        {"'rules':[{'allow':'a.com','llm':'anthropic','websocket':true}]", "WebSocket"},
        {"'rules':[{'allow':'a.com','llm':{'api':'openai','max_tokens':0}}]", "max_tokens"},
        {"'rules':[{'allow':'a.com','budget':{'tokens':'5/h'}}]", "has 'llm'"},
        {"'rules':[{'allow':'a.com','llm':'openai','budget':{'cost':'5/h'}}]", "prices"},
        {"'rules':[],'budget':{'cost':'5/d'}", "prices"},
        {"'rules':[],'budget':{'requests':'5/d per sandbox'}", "per sandbox"},
        {"'rules':[],'budget':{'requests':'5/d per label team'}", "per label"},
        {"'rules':[],'budget':{'tokens':'5/d per label a b'}", "not a key of a label"},
        {"'rules':[],'budget':{'tokens':'5/d per label '}", "not a key of a label"},
        {"'rules':[],'budget':{'tokens':'5/d per labels'}", "no such limit"},
        {"'rules':[],'budget':{'tokens':['5/d per label a','6/d per label a']}", "two limits"},
        {"'rules':[],'budget':{'tokens':'5MB/d'}", "no such limit"},
        {"'rules':[],'prices':[{'model':'m','in':'1'}]", "needs 'out'"},
        {"'rules':[],'prices':[{'model':'m','in':'1','out':'0.1234567'}]", "not a price"},
        {"'rules':[],'prices':[{'model':'m','in':-1,'out':1}]", "not a price"},
        {"'rules':[],'prices':[{'model':'m','in':10001,'out':1}]", "not a price"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = {0};
        struct policy *p = policy_of(bad[i].rest, &err);
        if (p || strstr(err.text, bad[i].says) == NULL)
            printf("# %s: %s\n", bad[i].rest, p ? "taken" : err.text);
        CU_ASSERT(p == NULL && strstr(err.text, bad[i].says) != NULL);
        policy_free(p);
    }
}

static void test_prices(void)
{
    struct err err = {0};
    char text[PRICE_TEXT], words[200];
    uint64_t n;
    struct policy *p =
        policy_of("'rules':[],'budget':{'tokens':['2M/d','5K/h per label a/b.c_d-e'],"
                  "'cost':['20/d','2.50/d per sandbox','8/d per label team','9/d per label of']},"
                  "'prices':[{'model':'gpt-4o-mini*','in':0.15,'out':'0.60','cached':'0.075'},"
                  "{'model':'GPT-*','in':2.5,'out':10,'cache_write':3}]",
                  &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    const struct price *mini = price_find(policy_prices(p), SLICE("gpt-4o-mini-2024")),
                       *other = price_find(policy_prices(p), SLICE("gpt-4o"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(mini);
    CU_ASSERT_PTR_NOT_NULL_FATAL(other);
    CU_ASSERT_PTR_EQUAL(price_find(policy_prices(p), SLICE("GPT-4o-Mini-2024")), mini);
    CU_ASSERT_EQUAL(mini->in, 150000);
    CU_ASSERT_EQUAL(mini->out, 600000);
    CU_ASSERT_EQUAL(mini->cached, 75000);
    CU_ASSERT_EQUAL(mini->written, 150000);
    CU_ASSERT_EQUAL(other->cached, 2500000);
    CU_ASSERT_EQUAL(other->written, 3000000);
    CU_ASSERT_PTR_NULL(price_find(policy_prices(p), SLICE("o1")));
    CU_ASSERT_STRING_EQUAL(
        budget_text(policy_budget(p), words, sizeof words),
        "tokens 2000000/d, tokens 5000/h per label a/b.c_d-e, cost 20/d, "
        "cost 2.5/d per sandbox, cost 8/d per label team, cost 9/d per label of");
    CU_ASSERT_EQUAL(price_of(2500000, 1000), 2500);
    CU_ASSERT_EQUAL(price_of(150000, 1), 1); /* rounded up */
    CU_ASSERT_EQUAL(price_of(UINT64_C(10000000000), LLM_TOKENS_MAX),
                    UINT64_C(10000) * LLM_TOKENS_MAX);
    CU_ASSERT(price_amount(SLICE("0.000001"), 10, &n) == 0 && n == 1);
    CU_ASSERT(price_amount(SLICE("1."), 1 << 30, &n) < 0);
    CU_ASSERT(price_amount(SLICE(".5"), 1 << 30, &n) < 0);
    CU_ASSERT_STRING_EQUAL(price_text(1000000, text, sizeof text), "1");
    CU_ASSERT_STRING_EQUAL(price_text(1050000, text, sizeof text), "1.05");
    policy_free(p);
}

/* ---- replies ---- */

static const char events[] = "text/event-stream; charset=utf-8", whole_json[] = "application/json";

static struct llm_usage read_reply(enum llm_form form, const char *type, struct slice text,
                                   size_t piece, bool close)
{
    struct inspect_request facts = {.n_types = 1, .type = slice_str(type)};
    struct llm_reply *r = llm_reply_new(form, &facts);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    while (text.n > 0) {
        size_t n = piece < text.n ? piece : text.n;
        llm_reply_feed(r, (struct slice){text.p, n});
        text = (struct slice){text.p + n, text.n - n};
    }
    if (close)
        llm_reply_close(r);
    struct llm_usage u = llm_reply_usage(r);
    llm_reply_free(r);
    return u;
}

/* The same in pieces of any size. */
static void says_bytes(enum llm_form form, const char *type, struct slice text, uint64_t in,
                       uint64_t cached, uint64_t written, uint64_t out)
{
    static const size_t pieces[] = {1, 2, 3, 7, 4096};
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        struct llm_usage u = read_reply(form, type, text, pieces[i], true);
        if (!u.known || u.in != in || u.out != out || u.cached != cached || u.written != written)
            printf("# form %d by %zu: known %d, %llu in, %llu cached, %llu written, %llu out\n",
                   form, pieces[i], u.known, (unsigned long long)u.in, (unsigned long long)u.cached,
                   (unsigned long long)u.written, (unsigned long long)u.out);
        CU_ASSERT(u.known && u.in == in && u.out == out && u.cached == cached &&
                  u.written == written);
    }
}

static void says(enum llm_form form, const char *type, const char *text, uint64_t in,
                 uint64_t cached, uint64_t written, uint64_t out)
{
    char *t = quoted(text);
    says_bytes(form, type, slice_str(t), in, cached, written, out);
    free(t);
}

static void silent(enum llm_form form, const char *type, const char *text)
{
    char *t = quoted(text);
    struct llm_usage u = read_reply(form, type, slice_str(t), 5, true);
    if (u.known)
        printf("# known: %s\n", text);
    CU_ASSERT_FALSE(u.known);
    free(t);
}

#define CHAT_STREAM                                                                             \
    ": keep\n\ndata: {'id':'c','choices':[{'delta':{'content':'The \\'usage\\': {'}}],"         \
    "'usage':null}\n\ndata: {'id':'c','choices':[{'delta':{'content':'}'}}],'usage':null}\n\n"  \
    "data: {'choices':[],'usage':{'prompt_tokens':19,'completion_tokens':10,'total_tokens':29," \
    "'prompt_tokens_details':{'cached_tokens':4,'audio_tokens':0},"                             \
    "'completion_tokens_details':{'reasoning_tokens':3}}}\n\ndata: [DONE]\n\n"

/* A conversation that was made shorter on the way. */
#define STEPS                                                                             \
    "'input_tokens':23000,'output_tokens':1000,'iterations':[{'type':'compaction',"       \
    "'input_tokens':180000,'output_tokens':3500},{'type':'message','input_tokens':23000," \
    "'output_tokens':1000}]"

#define MESSAGES_STREAM                                                                       \
    "event: message_start\ndata: {'type':'message_start','message':{'id':'m','usage':{"       \
    "'input_tokens':25,'cache_creation_input_tokens':7,'cache_read_input_tokens':100,"        \
    "'cache_creation':{'ephemeral_5m_input_tokens':7},'output_tokens':1}}}\n\n"               \
    "event: ping\ndata: {'type': 'ping'}\n\nevent: content_block_delta\ndata: {'type':"       \
    "'content_block_delta','index':0,'delta':{'type':'text_delta','text':'x'}}\n\n"           \
    "event: message_delta\ndata: {'type':'message_delta','delta':{'stop_reason':'end_turn'}," \
    "'usage':{'output_tokens':15}}\n\nevent: message_stop\ndata: {'type':'message_stop'}\n\n"

static void test_replies(void)
{
    says(LLM_CHAT, whole_json,
         "{'id':'c','choices':[{'message':{'content':'hi \\\\ {[','tool_calls':[]}}],'usage':{"
         "'prompt_tokens':9,'completion_tokens':12,'total_tokens':21}}",
         9, 0, 0, 12);
    says(LLM_CHAT, events, CHAT_STREAM, 19, 4, 0, 10);
    says(LLM_EMBEDDINGS, whole_json,
         "{'data':[{'embedding':[0.1,-2e-3]}],'usage':{'prompt_tokens':8,'total_tokens':8}}", 8, 0,
         0, 0);
    says(LLM_RESPONSES, whole_json,
         "{'object':'response','output':[],'usage':{'input_tokens':36,'input_tokens_details':{"
         "'cached_tokens':6},'output_tokens':87,'output_tokens_details':{'reasoning_tokens':9}}}",
         36, 6, 0, 87);
    says(LLM_RESPONSES, events,
         "event: response.created\r\ndata: {'type':'response.created','response':{'usage':null}}"
         "\r\n\r\nevent: response.completed\r\ndata: {'type':'response.completed','response':{"
         "'output':[],'usage':{'input_tokens':37,'input_tokens_details':{'cached_tokens':0},"
         "'output_tokens':11,'total_tokens':48}}}\r\n\r\n",
         37, 0, 0, 11);
    says(LLM_MESSAGES, whole_json,
         "{'type':'message','content':[],'usage':{'input_tokens':10,'cache_read_input_tokens':90,"
         "'cache_creation_input_tokens':0,'output_tokens':6,'service_tier':'standard'}}",
         100, 90, 0, 6);
    says(LLM_MESSAGES, events, MESSAGES_STREAM, 132, 100, 7, 15);
    says(LLM_MESSAGES, whole_json, "{'content':[],'usage':{" STEPS "}}", 203000, 0, 0, 4500);
    says(LLM_MESSAGES, events,
         "data: {'type':'message_start','message':{'usage':{'input_tokens':3,'output_tokens':1}}}"
         "\n\ndata: {'type':'message_delta','usage':{" STEPS "}}\n\n",
         203000, 0, 0, 4500);
    says(LLM_MESSAGES, whole_json,
         "{'usage':{'input_tokens':9,'output_tokens':1,'iterations':[{'input_tokens':4,"
         "'cache_read_input_tokens':30,'cache_creation_input_tokens':7,'output_tokens':1},"
         "{'input_tokens':5,'output_tokens':1}],'cache_read_input_tokens':2}}",
         46, 30, 7, 2);
    says(LLM_MESSAGES, whole_json, "{'usage':{'input_tokens':9,'output_tokens':8,'iterations':[]}}",
         9, 0, 0, 8);
    says(LLM_GEMINI, whole_json,
         "{'candidates':[],'usageMetadata':{'promptTokenCount':5,'candidatesTokenCount':7,"
         "'thoughtsTokenCount':20,'toolUsePromptTokenCount':2,'cachedContentTokenCount':3,"
         "'totalTokenCount':34}}",
         7, 3, 0, 27);
    says(LLM_GEMINI, events,
         "data: {'candidates':[{}],'usageMetadata':{'promptTokenCount':5,'totalTokenCount':5}}\r\n"
         "\r\ndata: {'usageMetadata':{'promptTokenCount':5,'candidatesTokenCount':9}}\r\n\r\n",
         5, 0, 0, 9);
    says(LLM_GEMINI, whole_json,
         "[{'usageMetadata':{'promptTokenCount':5}},\n{'x':{},'usageMetadata':{'promptTokenCount':"
         "5,'candidatesTokenCount':8}}]",
         5, 0, 0, 8);
    says(LLM_CONVERSE, whole_json,
         "{'output':{},'usage':{'inputTokens':30,'outputTokens':628,'totalTokens':658,"
         "'cacheReadInputTokens':1,'cacheWriteInputTokens':2}}",
         33, 1, 2, 628);
    says(LLM_OLLAMA, "application/x-ndjson",
         "{'message':{'content':'a'},'done':false}\n{'done':true,'prompt_eval_count':26,"
         "'eval_count':259}\n",
         26, 0, 0, 259);
    says(LLM_OLLAMA, "application/json; charset=utf-8", "{'done':true,'eval_count':4}", 0, 0, 0, 4);
}

/* However it is cut, a bare CR in a string is no JSON, and one before a text is a blank. */
static void test_lines_cr(void)
{
    static const char bad[] = "{\"eval_count\":4,\"\rx\":1}\n",
                      good[] = "\r\r{\"eval_count\":4}\r\n";
    for (size_t piece = 1; piece < sizeof bad; piece++) {
        struct llm_usage no =
            read_reply(LLM_OLLAMA, "application/x-ndjson", slice_str(bad), piece, true);
        CU_ASSERT_FALSE(no.known);
        struct llm_usage u =
            read_reply(LLM_OLLAMA, "application/x-ndjson", slice_str(good), piece, true);
        CU_ASSERT(u.out == 4);
    }
}

/* An event of Amazon's binary stream. */
static size_t put_frame(unsigned char *to, const char *payload)
{
    static const char heads[] = "\x0b:event-type\x07\0\x08metadata";
    char *text = quoted(payload);
    size_t n = strlen(text), h = sizeof heads - 1, all = 12 + h + n + 4;
    memset(to, 0, all);
    to[2] = (unsigned char)(all >> 8);
    to[3] = (unsigned char)all;
    to[7] = (unsigned char)h;
    memcpy(to + 12, heads, h);
    memcpy(to + 12 + h, text, n);
    free(text);
    return all;
}

static void test_binary(void)
{
    unsigned char b[1024];
    static const char type[] = "application/vnd.amazon.eventstream";
    size_t n = put_frame(b, "{'role':'assistant'}");
    n += put_frame(b + n, "{'contentBlockIndex':0,'delta':{'text':'hi'}}");
    n += put_frame(b + n, "{'metrics':{'latencyMs':1},'usage':{'inputTokens':3,'outputTokens':4}}");
    says_bytes(LLM_CONVERSE, type, (struct slice){(char *)b, n}, 3, 0, 0, 4);
    b[0] = 0x7f; /* a length that no event has */
    CU_ASSERT_FALSE(read_reply(LLM_CONVERSE, type, (struct slice){(char *)b, n}, 9, true).known);
}

/* What is not known with certainty is not known. */
static void test_unknown(void)
{
    silent(LLM_CHAT, events, "data: {'choices':[]}\n\ndata: [DONE]\n\n"); /* it was not asked for */
    silent(LLM_CHAT, whole_json, "{'usage':{'prompt_tokens':9}}");
    silent(LLM_CHAT, whole_json, "{'usage':{'prompt_tokens':9,'completion_tokens':'1'}}");
    silent(LLM_CHAT, whole_json, "{'usage':{'prompt_tokens':-9,'completion_tokens':1}}");
    silent(LLM_CHAT, whole_json, "{'usage':{'prompt_tokens':9.5,'completion_tokens':1}}");
    silent(LLM_CHAT, whole_json,
           "{'usage':{'prompt_tokens':99999999999999,'completion_tokens':1}}");
    silent(LLM_CHAT, whole_json,
           "{'usage':{'prompt_tokens':9,'completion_tokens':1,'completion_tokens':90}}");
    silent(LLM_CHAT, whole_json, "{'usage':{'prompt_tokens':9,'completion_tokens':1}");
    silent(LLM_CHAT, whole_json, "{'usage':{'prompt_tokens':9,'completion_tokens':1}}}");
    silent(LLM_CHAT, whole_json, "{'usage':{'prompt_tokens':9,'completion_tokens':1,}}");
    silent(LLM_CHAT, whole_json, "{'usage':{'prompt_tokens':09,'completion_tokens':1}}");
    silent(LLM_CHAT, whole_json,
           "{'usage':{'prompt_tokens':9,'completion_tokens':1,'prompt_tokens_details':{"
           "'cached_tokens':10}}}");
    silent(LLM_CHAT, "text/html", "{'usage':{'prompt_tokens':9,'completion_tokens':1}}");
    silent(LLM_CHAT, events,
           "data: {'usage':{'prompt_tokens':9,'completion_tokens':1}}\n\ndata: {broken\n\n");
    silent(LLM_MESSAGES, events,
           "data: {'message':{'usage':{'input_tokens':25,'output_tokens':1}}}\n\n");
    silent(LLM_MESSAGES, whole_json, "{'message':{'usage':{'input_tokens':25,'output_tokens':1}}}");
}

/* A stream that ends anywhere is known from where it has said all, and never wrongly. */
static void test_cut(void)
{
    static const struct {
        enum llm_form form;
        const char *text, *known;
        uint64_t in, out;
    } all[] = {{LLM_CHAT, CHAT_STREAM, "[DONE]", 19, 10},
               {LLM_MESSAGES, MESSAGES_STREAM, "'output_tokens':15}}", 132, 15}};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        char *t = quoted(all[i].text), *mark = quoted(all[i].known);
        size_t n = strlen(t), from = (size_t)(strstr(t, mark) - t) + strlen(mark);
        for (size_t k = 0; k <= n; k++) {
            struct llm_usage u = read_reply(all[i].form, events, (struct slice){t, k}, 64, false);
            CU_ASSERT(u.known == (k > from + 1));
            CU_ASSERT(!u.known || (u.in == all[i].in && u.out == all[i].out));
        }
        free(t);
        free(mark);
    }
}

/* What came of an answer that does not say what it took. */
static void test_seen(void)
{
    static const struct {
        enum llm_form form;
        const char *type, *text;
        uint64_t least, most;
    } all[] = {
        {LLM_CHAT, "text/event-stream",
         "data: {'id':'abcdefghijklmnopqrstuvwxyz','choices':[{'delta':{'content':'"
         "0123456789012345678901234567890123456789\\n'}}]}\n\ndata: [DONE]\n\n",
         10, 13},
        {LLM_CHAT, "text/event-stream",
         "data: {'choices':[{'delta':{'tool_calls':[{'function':{'arguments':'"
         "0123456789012345678901234567890123456789'}}]}}]}\n\n",
         10, 11},
        {LLM_CHAT, "text/event-stream",
         "data: {'choices':[{'delta':{'content':'a'}}]}\n\n"
         "data: {'choices':[{'delta':{'content':'b'}}]}\n\n"
         "data: {'choices':[{'delta':{'content':'c'}}]}\n\n",
         3, 3},
        {LLM_CHAT, "application/json", "{'choices':[{'message':{'content':'0123456789012345", 4, 4},
        {LLM_MESSAGES, "text/event-stream",
         "data: {'type':'content_block_delta','delta':{'text':'0123456789012345'}}\n\n", 4, 5},
        {LLM_GEMINI, "application/json", "[{'candidates':[{'text':'0123456789012345'}]}", 4, 5},
        {LLM_OLLAMA, "application/x-ndjson", "{'response':'0123456789012345'}\n", 4, 5},
        {LLM_CONVERSE, "application/json", "{'output':{'text':'0123456789012345'}}", 4, 5},
        {LLM_RESPONSES, "text/event-stream", "data: {'delta':'0123456789012345'}\n\n", 4, 5},
        {LLM_CHAT, "text/plain", "0123456789012345", 4, 4},
        {LLM_CHAT, "application/json", "{]0123456789012345", 4, 6},
        {LLM_EMBEDDINGS, "application/json", "{'data':['0123456789012345']}", 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        char *t = quoted(all[i].text);
        for (size_t piece = 1; piece <= 64; piece += 21) {
            struct llm_usage u = read_reply(all[i].form, all[i].type, slice_str(t), piece, false);
            if (u.known || u.seen < all[i].least || u.seen > all[i].most)
                printf("# %s: %llu by %zu\n", t, (unsigned long long)u.seen, piece);
            CU_ASSERT(!u.known && u.seen >= all[i].least && u.seen <= all[i].most);
        }
        free(t);
    }
    struct inspect_request coded = {.n_types = 1, .type = SLICE("application/json"), .coded = true};
    struct llm_reply *r = llm_reply_new(LLM_CHAT, &coded);
    llm_reply_feed(r, SLICE("0123456789"));
    CU_ASSERT_EQUAL(llm_reply_usage(r).seen, 10);
    llm_reply_free(r);
}

static void test_depth(void)
{
    char deep[800];
    for (int levels = 60; levels <= 80; levels += 20) {
        size_t n = (size_t)snprintf(deep, sizeof deep,
                                    "{'usage':{'prompt_tokens':1,"
                                    "'completion_tokens':1},'a':");
        for (int i = 0; i < levels; i++)
            n += (size_t)snprintf(deep + n, sizeof deep - n, "{'a':");
        deep[n++] = '1';
        memset(deep + n, '}', (size_t)levels + 1);
        deep[n + (size_t)levels + 1] = 0;
        if (levels == 60)
            says(LLM_CHAT, whole_json, deep, 1, 0, 0, 1);
        else
            silent(LLM_CHAT, whole_json, deep);
    }
}

static void suite_llm(void)
{
    CU_pSuite s = CU_add_suite("llm", NULL, NULL);
    CU_add_test(s, "what requests ask for", test_requests);
    CU_add_test(s, "models and maxima", test_limits);
    CU_add_test(s, "one call by one path", test_paths);
    CU_add_test(s, "maxima that are none", test_no_maxima);
    CU_add_test(s, "replies that hide what they took", test_hides);
    CU_add_test(s, "other models that a body names", test_other_models);
    CU_add_test(s, "another price than the model's", test_dear);
    CU_add_test(s, "tools of the provider's", test_tools);
    CU_add_test(s, "how many answers are asked for", test_many);
    CU_add_test(s, "estimates", test_estimate);
    CU_add_test(s, "rules that are none", test_rules);
    CU_add_test(s, "prices and budgets", test_prices);
    CU_add_test(s, "usage in six vendors' replies", test_replies);
    CU_add_test(s, "usage in Amazon's events", test_binary);
    CU_add_test(s, "usage that is unknown", test_unknown);
    CU_add_test(s, "streams that are cut", test_cut);
    CU_add_test(s, "what came of an answer", test_seen);
    CU_add_test(s, "depth", test_depth);
    CU_add_test(s, "lines and CR", test_lines_cr);
}

void tap_suites(void)
{
    suite_llm();
}
