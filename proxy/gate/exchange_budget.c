/* An exchange without a credential under a budget: the dialer's leave comes before *admitted*. */
#include "exchange_internal.h"

#include "dial_client.h"
#include "policy.h"
#include "budget_client.h"

static void on_decided(void *arg, unsigned status, const char *code, unsigned retry)
{
    struct exchange *x = arg;
    if (code == NULL) {
        budget_client_up(x->relay.budget_client, (size_t)x->taken);
        exchange_open_plain(x);
        return;
    }
    x->retry = retry;
    const struct budget *b = budget_client_spent(x->relay.budget_client);
    if (b)
        budget_text(b, x->refuse_detail, sizeof x->refuse_detail);
    exchange_deny(x, status, code);
}

static void on_more(void *arg, bool up)
{
    struct exchange *x = arg;
    if (up)
        exchange_wanted(x);
    else
        relay_resume(x);
}

static void on_over(void *arg, unsigned retry)
{
    struct exchange *x = arg;
    x->retry = retry;
    exchange_end_record(x, RECORD_ABORTED, "budget");
    if (x->relay.upstream.ops)
        x->relay.upstream.ops->cancel(x->relay.upstream.self, "budget");
    exchange_tell_fail(x, 429, "budget");
}

void exchange_budget(struct exchange *x)
{
    const struct budget_client_owner owner = {on_decided, on_more, on_over, x};
    const struct head *h = &x->head;
    bool counted = h->body == BODY_LENGTH;
    bool known = (counted || h->body == BODY_NONE) && h->upgrade == UPGRADE_NONE;
    struct budget_need need = {.bytes = counted && h->length > x->taken ? h->length : x->taken,
                               .known = known};
    struct budget_channel *budget_channel = dial_client_budget_channel(x->who.route->dial);
    enum quota_end end = quota_take(budget_channel_leases(budget_channel), &x->relay.lease,
                                    slice_str(x->who.sandbox), 1);
    if (end != QUOTA_TAKEN) {
        exchange_deny(x, 503, end == QUOTA_SHARE ? "share_used" : "overload");
        return;
    }
    exchange_set_state(x, EXCHANGE_BUDGET);
    x->relay.budget_client =
        budget_client_new(budget_channel, x->rule->budget, policy_budget(x->policy), &need, &owner);
    if (x->relay.budget_client == NULL)
        exchange_deny(x, 503, "memory");
}
