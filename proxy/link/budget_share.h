/* What this host may use up of limits that are the fleet's: its shares. Hosts hold shares of a
 * limit whose sum is never more than the limit; each grants by its own counters what its share
 * leaves, so that no window sees more than the sum of shares. A share grows only by the word of the
 * fleet's role, and never beyond the limit itself; it counts until the lease is over, by a clock
 * that goes on while the host sleeps.
 *
 * They lie in the ledger's memory (budget_ledger.h), so that a dialer that is started again goes on
 * with them. */
#ifndef DURWARD_BUDGET_SHARE_H
#define DURWARD_BUDGET_SHARE_H

#include "budget.h"

#include <stddef.h>

enum {
    BUDGET_SHARES_MAX = 256,
    BUDGET_SHARE_POLICY = 72,
    BUDGET_HOLDER = 32, /* characters of a holder's name */
    BUDGET_SHARE_TRIES = 3,
    BUDGET_SHARE_DRY_US = 1000000, /* for so long nobody asks again for what was not there */
};

/* Of one limit. Zeroes: free. */
struct budget_share {
    char policy[BUDGET_SHARE_POLICY];
    uint64_t key, whose; /* as of a counter */
    uint32_t kind, seconds;
    uint64_t amount; /* the limit */
    uint64_t held;   /* at most so much of it in any window */
    uint64_t need;   /* somebody waits for so much in all; 0: nobody does */
    uint64_t want;   /* to be asked for, more than what is held; 0: nothing is */
    uint64_t dry;    /* CLOCK_MONOTONIC, us: until then nothing is asked for */
    uint32_t asked;  /* the question that is open; 0: none */
    uint32_t tries;  /* that brought less than what is needed */
    uint32_t idle;   /* beats since it was last asked of */
    uint32_t unsaid; /* what is held was not said on this channel */
};

struct budget_shares {
    char holder[BUDGET_HOLDER + 1]; /* "": nobody's yet */
    uint8_t known;                  /* the database has had that name */
    uint64_t until;                 /* CLOCK_BOOTTIME, us */
    struct budget_share list[BUDGET_SHARES_MAX];
};

/* Found or made. NULL: there is no room. */
struct budget_share *budget_share_get(struct budget_shares *s, const char *policy, uint64_t key,
                                      uint64_t whose, const struct budget_limit *l);
/* What is kept ahead of need. */
uint64_t budget_share_slack(const struct budget_share *s);
/* So much in all is needed at once; false: nobody is to be asked for it now. now: us. */
bool budget_share_lacks(struct budget_share *s, uint64_t need, uint64_t now);
/* So much is used, and the next ones come soon. */
void budget_share_ahead(struct budget_share *s, uint64_t used);
/* The answer to what was asked: so much is held now. */
void budget_share_answer(struct budget_share *s, uint64_t held, uint64_t now);
/* What is not used, but for what is kept ahead, is held no longer: true if that is less than it
 * was. */
bool budget_share_trim(struct budget_share *s, uint64_t used, bool ahead);

#endif
