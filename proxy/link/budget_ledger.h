/* What budgets have been used up: the dialer's, since every gate and injector talks to it.
 *
 * A limit of N in a time T holds for *any* time as long as T, not for the clock's hours: the past T
 * is kept in 64 parts and the present one, and all 65 count. So never more than N goes out in any
 * T, and what was used comes back at most a 64th of T late. Bytes are handed out in portions before
 * they are used (leases); what was not used is taken back, if its holder lives to say so.
 *
 * The counters lie in memory that the parent keeps (a memfd), so that a dialer that is started
 * again goes on with them. Times are CLOCK_MONOTONIC, which all of a host share. */
#ifndef DURWARD_BUDGET_LEDGER_H
#define DURWARD_BUDGET_LEDGER_H

#include "budget.h"

#include <stddef.h>

struct budget_ledger;
struct budget_share;
struct budget_shares;
struct sandbox_labels;

enum { BUDGET_PORTION_MIN = 1024, BUDGET_PORTION_MAX = 256 * 1024 };

enum budget_end {
    BUDGET_GRANTED = 0,
    BUDGET_SPENT,       /* retry says when it is worth asking again */
    BUDGET_FULL,        /* no room for another counter */
    BUDGET_UNKNOWN,     /* the policy has no such budget (any more) */
    BUDGET_SPENT_WHOLE, /* as BUDGET_SPENT; but it is the policy's, and the rule's own is not */
    BUDGET_SPENT_TOOL,  /* as BUDGET_SPENT; but it is the tool's */
    BUDGET_SHORT,       /* the host's share of a limit of the fleet's leaves too little; the dialer
                           asks for more, and says it to nobody */
};

struct budget_wish {
    const char *policy;
    const struct budget *own, *whole; /* of the rule, of its policy; each may be NULL */
    const struct budget *tool;        /* of the MCP tool that is called; NULL: none */
    bool request;                     /* one more */
    uint64_t need;                    /* bytes up that must be had at once */
    bool up, down;                    /* a portion of each */
    uint64_t tokens, cost;            /* of a call: its estimate */
    const char *sandbox;              /* whose call, of a model or of that tool; NULL: it is none */
    const struct sandbox_labels *labels; /* that sandbox's; NULL: it has none */
    bool leased;                         /* what is held of the fleet's limits counts now */
};

struct budget_grant {
    enum budget_end end;
    uint64_t up, down; /* bytes; UINT64_MAX where there is no limit */
    unsigned retry;    /* seconds; of what is spent */
};

/* Bytes that the memory needs. */
size_t budget_ledger_size(void);
/* Maps it. The descriptor stays the caller's. NULL with err. */
struct budget_ledger *budget_ledger_open(int fd, struct err *err);
/* What lies beside the counters: shares of limits that are the fleet's. */
struct budget_shares *budget_ledger_shares(struct budget_ledger *b);
/* How much of that limit is used up here. */
uint64_t budget_ledger_used(struct budget_ledger *b, const struct budget_share *s, uint64_t now);
void budget_ledger_close(struct budget_ledger *b); /* NULL is fine */
/* All of the wish or nothing. now: microseconds. */
void budget_ledger_ask(struct budget_ledger *b, const struct budget_wish *w, uint64_t now,
                       struct budget_grant *ret);
/* Bytes of a grant at that time were not used. */
void budget_ledger_back(struct budget_ledger *b, const struct budget_wish *of, uint64_t at,
                        uint64_t now, uint64_t up, uint64_t down);
/* The call of that wish, asked for at that time, is over: it took so much. */
void budget_ledger_settle(struct budget_ledger *b, const struct budget_wish *of, uint64_t at,
                          uint64_t now, uint64_t tokens, uint64_t cost);

#endif
