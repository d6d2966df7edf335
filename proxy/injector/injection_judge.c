/* An injection whose rule reads bodies here again (`mcp`, `llm`): whole, before anybody is asked
 * and before a secret is fetched, for the gate's word is not enough. */
#include "injection_internal.h"

#include "body_facts.h"
#include "llm.h"
#include "policy.h"

#include <stdio.h>

static const struct inspection *inspection(const struct injection *g)
{
    return g->decided.rule->inspection;
}

bool injection_judges(const struct injection *g)
{
    return rule_read_again(g->decided.rule);
}

static void allow(struct injection *g, bool ask)
{
    g->judged = true;
    (g->decided.rule->ask || ask ? injection_await_approval : injection_proceed)(g);
}

static void deny(struct injection *g, const struct inspect_result *why)
{
    injection_deny(g, why->status, why->code, why->detail);
}

/* At a path of no call to a model, tools are the gate's matter, as of a rule without `llm`. */
static bool is_unread(const struct injection *g)
{
    struct slice model;
    bool free;
    return rule_reads_calls(g->decided.rule) &&
           llm_form_of(inspection(g)->llm, g->head.path, &free, &model) == LLM_NONE;
}

size_t injection_judge_begin(struct injection *g)
{
    struct inspect_result why = {.rpc_id = ""};
    struct inspect_request facts = body_facts(&g->head);
    if (facts.upgrade && rule_reads_calls(g->decided.rule)) {
        if (injection_session_begin(g, &why))
            allow(g, false);
        return 0;
    }
    if (injection_mcp(g))
        injection_mcp_asked(g);
    bool unread = is_unread(g);
    const char *barred = unread ? injection_llm_barred(g, true) : NULL;
    enum inspect_answer a = inspect_head(inspection(g), &facts, &why);
    if (a == INSPECT_REFUSED)
        deny(g, &why);
    else if (barred)
        injection_deny(g, 403, "llm", barred);
    else if (a == INSPECT_PASS || unread)
        allow(g, false);
    else
        return inspect_bound(inspection(g));
    return 0;
}

/* What the tools of the server were. False: memory is out. */
static bool with_pins(const struct injection *g, struct inspect_request *facts,
                      char place[MCP_PIN_TEXT + 1])
{
    if (!injection_mcp(g))
        return true;
    facts->pins = injection_pins(g);
    facts->place = place;
    facts->sandbox = g->decided.sandbox;
    return facts->pins && injection_place(g, place);
}

void injection_judge(struct injection *g)
{
    struct inspect_result why = {.rpc_id = ""};
    struct inspect_request facts = body_facts(&g->head);
    char place[MCP_PIN_TEXT + 1];
    if (!with_pins(g, &facts, place)) {
        injection_deny(g, 503, "memory", "");
        return;
    }
    if (inspect_body(inspection(g), &facts, buf_slice(&g->body.body), true, &why) != INSPECT_PASS) {
        deny(g, &why);
        return;
    }
    g->head.body = BODY_LENGTH; /* it is whole, and a budget wants to know */
    g->head.length = buf_len(&g->body.body);
    snprintf(g->message_text, sizeof g->message_text, "%s", why.detail);
    g->tool_budget = why.budget;
    if (!rule_reads_calls(g->decided.rule) || injection_llm_take(g, &why.call))
        allow(g, why.ask);
}

bool injection_judge_still(const struct injection *g, const struct rule *rule)
{
    struct inspect_result why = {.rpc_id = ""};
    struct inspect_request facts = body_facts(&g->head);
    char place[MCP_PIN_TEXT + 1];
    if (!rule_read_again(rule))
        return false;
    if (!with_pins(g, &facts, place))
        return false;
    if (g->body.state == BODY_BUFFER_OFF)
        return inspect_head(rule->inspection, &facts, &why) == INSPECT_PASS;
    return inspect_body(rule->inspection, &facts, buf_slice(&g->body.body), true, &why) ==
           INSPECT_PASS;
}
