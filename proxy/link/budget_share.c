/* Keeps shares in a table of fixed size, and says of each what is to be asked for or given back. */
#include "budget_share.h"

#include <string.h>

enum { SLACK_PART = 16, IDLE_BEATS = 3 };

/* Shares by a label's value, of which there may be many: so many at most, and of one policy. */
enum { WHOSE_MAX = BUDGET_SHARES_MAX * 3 / 4, WHOSE_POLICY_MAX = BUDGET_SHARES_MAX / 2 };

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool is_it(const struct budget_share *s, const char *policy, uint64_t key, uint64_t whose,
                  const struct budget_limit *l)
{
    return s->key == key && s->whose == whose && s->kind == (uint32_t)l->kind &&
           s->seconds == l->seconds && strcmp(s->policy, policy) == 0;
}

struct budget_share *budget_share_get(struct budget_shares *s, const char *policy, uint64_t key,
                                      uint64_t whose, const struct budget_limit *l)
{
    struct budget_share *to = NULL;
    size_t whoses = 0, own = 0;
    for (size_t i = 0; i < BUDGET_SHARES_MAX; i++) {
        struct budget_share *one = &s->list[i];
        if (one->policy[0] && is_it(one, policy, key, whose, l)) {
            one->amount = l->amount;
            return one;
        }
        if (to == NULL && one->policy[0] == 0)
            to = one;
        if (one->policy[0] && one->whose) {
            whoses++;
            own += strcmp(one->policy, policy) == 0;
        }
    }
    if (to == NULL || strlen(policy) >= sizeof to->policy ||
        (whose && (whoses >= WHOSE_MAX || own >= WHOSE_POLICY_MAX)))
        return NULL;
    memset(to, 0, sizeof *to);
    memcpy(to->policy, policy, strlen(policy) + 1);
    to->key = key;
    to->whose = whose;
    to->kind = (uint32_t)l->kind;
    to->seconds = l->seconds;
    to->amount = l->amount;
    return to;
}

uint64_t budget_share_slack(const struct budget_share *s)
{
    uint64_t n = s->amount / SLACK_PART;
    return n ? n : 1;
}

static void want(struct budget_share *s, uint64_t n)
{
    n = least(n, s->amount);
    if (n > s->held && n > s->want)
        s->want = n;
}

bool budget_share_lacks(struct budget_share *s, uint64_t need, uint64_t now)
{
    s->idle = 0;
    if (need > s->amount || s->dry > now)
        return false;
    if (need > s->need)
        s->need = need;
    want(s, need + budget_share_slack(s));
    return true;
}

void budget_share_ahead(struct budget_share *s, uint64_t used)
{
    uint64_t slack = budget_share_slack(s);
    s->idle = 0;
    if (s->held < used + (slack + 1) / 2)
        want(s, used + slack);
}

void budget_share_answer(struct budget_share *s, uint64_t held, uint64_t now)
{
    s->asked = 0;
    s->held = least(held, s->amount);
    s->want = 0;
    if (s->held >= s->need) {
        s->need = 0;
        s->tries = 0;
    } else if (++s->tries >= BUDGET_SHARE_TRIES) {
        s->need = 0;
        s->tries = 0;
        s->dry = now + BUDGET_SHARE_DRY_US;
    }
}

bool budget_share_trim(struct budget_share *s, uint64_t used, bool ahead)
{
    uint64_t keep = used + (ahead && ++s->idle <= IDLE_BEATS ? budget_share_slack(s) : 0);
    if (s->need || s->want || s->asked || s->held <= keep)
        return false;
    s->held = keep;
    return true;
}
