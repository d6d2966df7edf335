/* `budget` of a rule or of a policy: how much of it may be used up in a time.
 *
 * A budget is counted for the whole host (all sandboxes of the policy together), by the dialer
 * (proxy/link/budget_ledger.h), or for a fleet of hosts (proxy/link/budget_share.h). Bytes are
 * those of bodies and of WebSocket connections, not of heads. Tokens and money are of calls to a
 * model (`llm`), which injectors alone count.
 */
#ifndef DURWARD_BUDGET_H
#define DURWARD_BUDGET_H

#include "err.h"

struct arena;
struct node;

enum budget_kind {
    BUDGET_REQUESTS = 0,
    BUDGET_UPLOAD,
    BUDGET_DOWNLOAD,
    BUDGET_TOKENS,
    BUDGET_COST, /* millionths of the unit that prices are in */
    BUDGET_KINDS
};
enum { BUDGET_LIMITS_MAX = 12, BUDGET_SECONDS_MAX = 86400, BUDGET_LABEL_MAX = 63 };

struct budget_limit {
    enum budget_kind kind;
    unsigned seconds;  /* of the window, 1 to BUDGET_SECONDS_MAX */
    uint64_t amount;   /* requests, bytes, tokens in any time as long as that; at least 1 */
    bool each;         /* of each sandbox; tokens, cost, and calls of a tool only, as `label` */
    const char *label; /* of all sandboxes that have the same value of it; NULL: of no label's */
};

struct budget {
    uint64_t key; /* which one of its policy; never 0. The same after a reload of the same rule */
    size_t n;
    struct budget_limit limits[BUDGET_LIMITS_MAX];
    bool fleet; /* its limits are of all hosts of the fleet together, but for those of a sandbox */
};

/* { requests: 1000/h, upload: 50MB/h, download: [1MB/s, 10GB/d], tokens: 2M/d,
 *   cost: [20/d, 2.50/d per sandbox, 10/d per label team] }. of: the mapping that the budget
 * stands in, which the key is made from. *ret is the arena's. */
int budget_read(struct arena *a, const struct node *n, const struct node *of,
                const struct budget **ret, struct err *err);
/* `calls` of a tool: [10/h, 50/d per sandbox], of requests alone. of: what the key is made from. */
int budget_read_calls(struct arena *a, const struct node *n, const struct node *of,
                      const struct budget **ret, struct err *err);
bool budget_has(const struct budget *b, enum budget_kind kind); /* NULL: no */
bool budget_of_calls(const struct budget *b);                   /* of tokens or of money */
bool budget_of_fleet(const struct budget *b,
                     const struct budget_limit *l); /* that limit of it is */
bool budget_by_label(const struct budget *b);       /* some limit is; NULL: no */
/* "1000 requests/h, 50MB up/h", for people. Returns buf. */
char *budget_text(const struct budget *b, char *buf, size_t size);
const char *budget_kind_name(enum budget_kind kind); /* as the key is written */

#endif
