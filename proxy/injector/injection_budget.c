/* An injection under a budget: the dialer's leave comes before the secret, and before *admitted*.
 */
#include "injection_internal.h"

#include "dial_client.h"
#include "policy.h"
#include "budget_client.h"

#include <stdio.h>

static const struct budget *own(const struct injection *g)
{
    return g->decided.rule->budget;
}

static void on_decided(void *arg, unsigned status, const char *code, unsigned retry)
{
    struct injection *g = arg;
    char text[INSPECT_DETAIL_MAX + 160] = "", limits[128];
    if (code == NULL) {
        injection_proceed(g);
        return;
    }
    const struct budget *b = budget_client_spent(g->relay.budget_client);
    if (b && b == g->tool_budget)
        snprintf(text, sizeof text, "%s: %s", g->message_text,
                 budget_text(b, limits, sizeof limits));
    else if (b)
        budget_text(b, text, sizeof text);
    g->retry = retry;
    injection_deny(g, status, code, text);
}

static void on_more(void *arg, bool up)
{
    struct injection *g = arg;
    if (up)
        relay_wanted(g);
    else
        relay_resume(g);
}

/* Only where bytes still wait for leave. A body that was held is whole within it by then, and so is
 * a reply that is being captured: what was asked for beyond is not needed. */
static void on_over(void *arg, unsigned retry)
{
    struct injection *g = arg;
    if (g->relay.upstream.ops) {
        g->retry = retry;
        injection_abandon(g, 429, "budget");
    } else if (g->state == G_BODY) {
        g->retry = retry;
        injection_deny(g, 429, "budget", "");
    }
}

bool injection_budget(struct injection *g)
{
    const struct budget_client_owner owner = {on_decided, on_more, on_over, g};
    const struct budget *whole = policy_budget(g->decided.policy);
    const struct head *h = &g->head;
    if (g->relay.budget_client || (own(g) == NULL && whole == NULL && g->tool_budget == NULL))
        return false;
    struct budget_call call;
    bool known = (h->body == BODY_LENGTH || h->body == BODY_NONE) && h->upgrade == UPGRADE_NONE;
    struct budget_channel *budget_channel = dial_client_budget_channel(g->injector->dial);
    enum quota_end end = quota_take(budget_channel_leases(budget_channel), &g->relay.lease,
                                    slice_str(g->decided.sandbox), 1);
    if (end != QUOTA_TAKEN) {
        injection_deny_full(g, end, "requests with a budget");
        return true;
    }
    injection_set_state(g, G_BUDGET);
    g->waited = true;
    struct budget_need need = {.bytes = h->body == BODY_LENGTH ? h->length : 0,
                               .known = known,
                               .call = injection_llm_call(g, &call) ? &call : NULL,
                               .tool = g->tool_budget,
                               .caller = g->decided.sandbox[0] ? g->decided.sandbox : "-"};
    g->relay.budget_client = budget_client_new(budget_channel, own(g), whole, &need, &owner);
    if (g->relay.budget_client == NULL)
        injection_deny(g, 503, "memory", "");
    return true;
}
