/* Keeps counters in sets of fixed size in the shared memory: a wish is weighed against all limits
 * that it falls under, and charged to all or to none. */
#include "budget_ledger.h"

#include "budget_share.h"
#include "sandbox_labels.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Counters of single sandboxes, and of labels' values, have at most WAYS_EACH ways of a set, those
 * of one policy 8 of them: however many sandboxes there are, or are named, others have room. */
enum { PARTS = 64, SLOTS = PARTS + 1, SETS = 4096, WAYS = 16, NAME_MAX_ = 72 };
enum { WAYS_EACH = 12, WAYS_EACH_POLICY = 8 };

/* One limit of one budget. Zeroes: free. */
struct counter {
    char policy[NAME_MAX_];
    uint64_t key,
        whose; /* whose: of a sandbox's name or a label's value, where it is theirs; else 0 */
    uint32_t kind, seconds;
    uint64_t newest; /* number of the present part since the clock's zero */
    uint64_t slots[SLOTS];
};

struct budget_ledger {
    struct counter (*sets)[WAYS];
    struct budget_shares *shares; /* behind them */
};

static size_t counters_size(void)
{
    return sizeof(struct counter) * SETS * WAYS;
}

size_t budget_ledger_size(void)
{
    return counters_size() + sizeof(struct budget_shares);
}

struct budget_ledger *budget_ledger_open(int fd, struct err *err)
{
    struct stat st;
    struct budget_ledger *b = NULL;
    void *p = MAP_FAILED;
    if (fstat(fd, &st) == 0 && (uint64_t)st.st_size >= budget_ledger_size())
        p = mmap(NULL, budget_ledger_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p != MAP_FAILED)
        b = calloc(1, sizeof *b);
    if (b == NULL) {
        if (p != MAP_FAILED)
            munmap(p, budget_ledger_size());
        err_set(err, ERR_INTERNAL, "no memory for budgets");
        return NULL;
    }
    b->sets = p;
    b->shares = (struct budget_shares *)((char *)p + counters_size());
    return b;
}

void budget_ledger_close(struct budget_ledger *b)
{
    if (b)
        munmap(b->sets, budget_ledger_size());
    free(b);
}

struct budget_shares *budget_ledger_shares(struct budget_ledger *b)
{
    return b->shares;
}

/* ---- one counter ---- */

static uint64_t part_of(const struct counter *c, uint64_t at)
{
    return at * PARTS / ((uint64_t)c->seconds * 1000000);
}

/* Parts that are over are emptied. */
static void advance(struct counter *c, uint64_t now)
{
    uint64_t part = part_of(c, now);
    if (part <= c->newest)
        return;
    if (part - c->newest >= SLOTS)
        memset(c->slots, 0, sizeof c->slots);
    else
        for (uint64_t i = c->newest + 1; i <= part; i++)
            c->slots[i % SLOTS] = 0;
    c->newest = part;
}

static uint64_t used(const struct counter *c)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < SLOTS; i++)
        sum += c->slots[i];
    return sum;
}

/* Seconds until n more are within the limit. */
static unsigned retry_after(const struct counter *c, const struct budget_limit *l, uint64_t n,
                            uint64_t now)
{
    uint64_t sum = used(c), width = (uint64_t)c->seconds * 1000000;
    if (n > l->amount)
        return c->seconds; /* never, in truth */
    for (uint64_t i = SLOTS - 1; i > 0; i--) {
        if (c->newest < i)
            continue;
        sum -= c->slots[(c->newest - i) % SLOTS];
        if (sum + n > l->amount)
            continue;
        uint64_t free_at = (c->newest - i + SLOTS) * width / PARTS;
        uint64_t wait = free_at > now ? (free_at - now + 999999) / 1000000 : 0;
        return wait > 0 ? (unsigned)wait : 1;
    }
    return c->seconds + 1;
}

static uint64_t whose_of(const struct budget_limit *l, const struct budget_wish *w)
{
    uint64_t h = 0xcbf29ce484222325u;
    if (l->label)
        return sandbox_labels_count(w->labels, l->label);
    if (!l->each)
        return 0;
    for (const char *p = w->sandbox ? w->sandbox : ""; *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    return h ? h : 1;
}

static bool is_it(const struct counter *c, const char *policy, uint64_t key, uint64_t whose,
                  const struct budget_limit *l)
{
    return c->key == key && c->whose == whose && c->kind == l->kind && c->seconds == l->seconds &&
           strcmp(c->policy, policy) == 0;
}

static struct counter *set_of(struct budget_ledger *b, const char *policy, uint64_t key,
                              uint64_t whose, const struct budget_limit *l)
{
    uint64_t h = (key ^ whose ^ ((uint64_t)l->kind << 32 | l->seconds)) * 0x9e3779b97f4a7c15u;
    for (const char *p = policy; *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    return b->sets[(h >> 40) % SETS];
}

/* Found, or made in a place that is free or whose time is over. NULL: there is none. */
static struct counter *counter_get(struct budget_ledger *b, const char *policy, uint64_t key,
                                   uint64_t whose, const struct budget_limit *l, uint64_t now)
{
    struct counter *set = set_of(b, policy, key, whose, l), *free_one = NULL;
    size_t eaches = 0, own = 0;
    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].policy[0] && is_it(&set[i], policy, key, whose, l)) {
            advance(&set[i], now);
            return &set[i];
        }
        if (set[i].policy[0])
            advance(&set[i], now);
        bool is_free = set[i].policy[0] == 0 || used(&set[i]) == 0;
        if (free_one == NULL && is_free)
            free_one = &set[i];
        if (!is_free && set[i].whose) {
            eaches++;
            own += strcmp(set[i].policy, policy) == 0;
        }
    }
    if (free_one == NULL || strlen(policy) >= sizeof free_one->policy ||
        (whose && (eaches >= WAYS_EACH || own >= WAYS_EACH_POLICY)))
        return NULL;
    memset(free_one, 0, sizeof *free_one);
    memcpy(free_one->policy, policy, strlen(policy) + 1);
    free_one->key = key;
    free_one->whose = whose;
    free_one->kind = (uint32_t)l->kind;
    free_one->seconds = l->seconds;
    advance(free_one, now);
    return free_one;
}

uint64_t budget_ledger_used(struct budget_ledger *b, const struct budget_share *s, uint64_t now)
{
    const struct budget_limit l = {.kind = (enum budget_kind)s->kind, .seconds = s->seconds};
    struct counter *set = set_of(b, s->policy, s->key, s->whose, &l);
    for (size_t i = 0; i < WAYS; i++)
        if (set[i].policy[0] && is_it(&set[i], s->policy, s->key, s->whose, &l)) {
            advance(&set[i], now);
            return used(&set[i]);
        }
    return 0;
}

/* ---- a wish ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool is_of_calls(const struct budget_limit *l)
{
    return l->kind == BUDGET_TOKENS || l->kind == BUDGET_COST;
}

/* Of a limit of bytes, at a time. */
static uint64_t portion(uint64_t amount)
{
    uint64_t n = amount / 16;
    return n < BUDGET_PORTION_MIN ? BUDGET_PORTION_MIN : least(n, BUDGET_PORTION_MAX);
}

static bool is_of(const struct budget_limit *l, const struct budget *b)
{
    return b && l >= b->limits && l < b->limits + b->n;
}

/* A tool's come first, and those of a rule before those of its policy. */
static enum budget_end spent_of(const struct budget_limit *l, const struct budget_wish *w)
{
    return is_of(l, w->tool)              ? BUDGET_SPENT_TOOL
           : w->own && is_of(l, w->whole) ? BUDGET_SPENT_WHOLE
                                          : BUDGET_SPENT;
}

/* One more than there is: of the fleet's there may be more to be had. */
static void lacks(const struct counter *c, const struct budget_limit *l,
                  const struct budget_wish *w, uint64_t now, uint64_t need,
                  struct budget_share *share, struct budget_grant *g)
{
    uint64_t sum = used(c);
    bool may_come = share && need <= l->amount && sum <= l->amount - need;
    if (may_come && budget_share_lacks(share, sum + need, now)) {
        if (g->end == BUDGET_GRANTED)
            g->end = BUDGET_SHORT;
        return;
    }
    unsigned retry = may_come ? l->seconds / PARTS + 1 : retry_after(c, l, need, now);
    if (g->end == BUDGET_GRANTED || g->end == BUDGET_SHORT)
        g->end = spent_of(l, w);
    g->retry = retry > g->retry ? retry : g->retry;
}

/* What one limit has to say: grant may shrink, or end. */
static void weigh(const struct counter *c, const struct budget_limit *l,
                  const struct budget_wish *w, uint64_t now, struct budget_share *share,
                  struct budget_grant *g)
{
    uint64_t amount = share == NULL ? l->amount : w->leased ? least(share->held, l->amount) : 0;
    uint64_t sum = used(c), left = amount > sum ? amount - sum : 0, need = 0;
    uint64_t *to = l->kind == BUDGET_UPLOAD ? &g->up : &g->down;
    if (l->kind == BUDGET_REQUESTS)
        need = w->request;
    else if (is_of_calls(l))
        need = l->kind == BUDGET_TOKENS ? w->tokens : w->cost;
    else if (l->kind == BUDGET_UPLOAD && w->need > 0)
        need = w->need;
    else
        need = l->kind == BUDGET_UPLOAD ? w->up : w->down;
    if (need > left) {
        lacks(c, l, w, now, need, share, g);
    } else if (l->kind == BUDGET_UPLOAD && w->need > 0) {
        *to = least(*to, w->need);
    } else if (l->kind != BUDGET_REQUESTS && !is_of_calls(l)) {
        *to = need ? least(*to, least(left, portion(l->amount))) : 0;
    }
}

/* share: NULL of a limit that is this host's alone */
typedef void (*each_fn)(struct counter *c, const struct budget_limit *l, struct budget_share *share,
                        void *arg);

/* Every limit that the wish falls under. -1: no room. */
static int each(struct budget_ledger *b, const struct budget_wish *w, uint64_t now, each_fn fn,
                void *arg)
{
    const struct budget *all[] = {w->tool, w->own, w->whole};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        for (size_t k = 0; all[i] && k < all[i]->n; k++) {
            const struct budget_limit *l = &all[i]->limits[k];
            if (is_of_calls(l) && (w->sandbox == NULL || w->tool))
                continue;
            uint64_t whose = whose_of(l, w);
            struct counter *c = counter_get(b, w->policy, all[i]->key, whose, l, now);
            bool shared = budget_of_fleet(all[i], l);
            struct budget_share *share =
                shared ? budget_share_get(b->shares, w->policy, all[i]->key, whose, l) : NULL;
            if (c == NULL || (shared && share == NULL))
                return -1;
            fn(c, l, share, arg);
        }
    return 0;
}

struct asking {
    const struct budget_wish *wish;
    struct budget_grant *injection;
    uint64_t now;
};

static void on_weigh(struct counter *c, const struct budget_limit *l, struct budget_share *share,
                     void *arg)
{
    struct asking *a = arg;
    weigh(c, l, a->wish, a->now, share, a->injection);
}

static void on_charge(struct counter *c, const struct budget_limit *l, struct budget_share *share,
                      void *arg)
{
    const struct asking *a = arg;
    uint64_t n = l->kind == BUDGET_REQUESTS ? a->wish->request
                 : l->kind == BUDGET_TOKENS ? a->wish->tokens
                 : l->kind == BUDGET_COST   ? a->wish->cost
                 : l->kind == BUDGET_UPLOAD ? a->injection->up
                                            : a->injection->down;
    c->slots[c->newest % SLOTS] += n;
    if (share)
        budget_share_ahead(share, used(c));
}

void budget_ledger_ask(struct budget_ledger *b, const struct budget_wish *w, uint64_t now,
                       struct budget_grant *ret)
{
    struct asking a = {w, ret, now};
    *ret = (struct budget_grant){BUDGET_GRANTED, UINT64_MAX, UINT64_MAX, 0};
    if (each(b, w, now, on_weigh, &a) < 0)
        ret->end = BUDGET_FULL;
    if (ret->end == BUDGET_GRANTED && each(b, w, now, on_charge, &a) < 0)
        ret->end = BUDGET_FULL; /* cannot be: they are all there */
    if (ret->end != BUDGET_GRANTED)
        ret->up = ret->down = 0;
}

struct returning {
    uint64_t at, up, down;
};

static void on_back(struct counter *c, const struct budget_limit *l,
                    struct budget_share *share UNUSED, void *arg)
{
    const struct returning *r = arg;
    uint64_t part = part_of(c, r->at);
    if (l->kind == BUDGET_REQUESTS || is_of_calls(l) || part > c->newest ||
        c->newest - part >= SLOTS)
        return;
    uint64_t *slot = &c->slots[part % SLOTS];
    *slot -= least(*slot, l->kind == BUDGET_UPLOAD ? r->up : r->down);
}

void budget_ledger_back(struct budget_ledger *b, const struct budget_wish *of, uint64_t at,
                        uint64_t now, uint64_t up, uint64_t down)
{
    struct returning r = {at, up, down};
    (void)each(b, of, now, on_back, &r);
}

struct settling {
    const struct budget_wish *of;
    uint64_t at, tokens, cost;
};

/* More than was charged counts from now on; less is taken back from where it was charged. */
static void on_settle(struct counter *c, const struct budget_limit *l, struct budget_share *share,
                      void *arg)
{
    const struct settling *s = arg;
    uint64_t took = l->kind == BUDGET_TOKENS ? s->tokens : s->cost,
             held = l->kind == BUDGET_TOKENS ? s->of->tokens : s->of->cost,
             part = part_of(c, s->at);
    if (!is_of_calls(l))
        return;
    if (took > held) {
        c->slots[c->newest % SLOTS] += took - held;
        if (share) /* others are to know of it */
            budget_share_ahead(share, used(c));
    } else if (part <= c->newest && c->newest - part < SLOTS) {
        c->slots[part % SLOTS] -= least(c->slots[part % SLOTS], held - took);
    }
}

void budget_ledger_settle(struct budget_ledger *b, const struct budget_wish *of, uint64_t at,
                          uint64_t now, uint64_t tokens, uint64_t cost)
{
    struct settling s = {of, at, tokens, cost};
    (void)each(b, of, now, on_settle, &s);
}
