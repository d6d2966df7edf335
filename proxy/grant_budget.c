/* A grant under a budget: the dialer's leave comes before the secret, and before *admitted*. */
#include "grant_internal.h"

#include "dial_client.h"
#include "policy.h"
#include "spend.h"

static const struct budget *own(const struct grant *g)
{
    return g->decided.rule->budget;
}

static void on_decided(void *arg, unsigned status, const char *code, unsigned retry)
{
    struct grant *g = arg;
    char text[160] = "";
    if (code == NULL) {
        grant_proceed(g);
        return;
    }
    const struct budget *b = own(g) ? own(g) : policy_budget(g->decided.policy);
    if (b && status == 429)
        budget_text(b, text, sizeof text);
    g->retry = retry;
    grant_deny(g, status, code, text);
}

static void on_more(void *arg, bool up)
{
    struct grant *g = arg;
    if (up)
        relay_wanted(g);
    else
        relay_resume(g);
}

/* Only where bytes still wait for leave. A body that was held is whole within it by then, and so is
 * a reply that is being captured: what was asked for beyond is not needed. */
static void on_over(void *arg, unsigned retry)
{
    struct grant *g = arg;
    if (g->relay.back.ops) {
        g->retry = retry;
        grant_abandon(g, 429, "budget");
    } else if (g->state == G_BODY) {
        g->retry = retry;
        grant_deny(g, 429, "budget", "");
    }
}

bool grant_budget(struct grant *g)
{
    const struct spend_owner owner = {on_decided, on_more, on_over, g};
    const struct budget *whole = policy_budget(g->decided.policy);
    const struct head *h = &g->head;
    if (g->relay.spend || (own(g) == NULL && whole == NULL))
        return false;
    bool known = (h->body == BODY_LENGTH || h->body == BODY_NONE) && h->upgrade == UPGRADE_NONE;
    grant_set_state(g, G_BUDGET);
    g->waited = true;
    g->relay.spend = spend_new(dial_client_spender(g->injector->dial), own(g), whole,
                               h->body == BODY_LENGTH ? h->length : 0, known, &owner);
    if (g->relay.spend == NULL)
        grant_deny(g, 503, "memory", "");
    return true;
}
