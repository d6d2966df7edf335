/* Budgets at the dialer: asked for by gates and injectors before they admit a request that has one,
 * and for more bytes as they relay. */
#include "dialer_internal.h"

#include "budget_ledger.h"
#include "budget_client.h"
#include "sandbox_labels.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Bytes that a channel holds for one request. Its death leaves them spent. */
struct lease {
    uint32_t id;
    uint64_t key, at; /* of the latest grant */
    uint64_t up, down;
    bool call;                     /* to a model, */
    uint64_t tokens, cost;         /* charged so much, */
    struct sandbox_labels *labels; /* where its sandbox had these */
    LIST_ENTRY(lease) link;
};

static uint64_t now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static struct lease *find(struct channel *c, uint32_t id)
{
    struct lease *l;
    LIST_FOREACH(l, &c->leases, link)
    if (l->id == id)
        return l;
    return NULL;
}

static void drop(struct channel *c, struct lease *l)
{
    LIST_REMOVE(l, link);
    c->n_leases--;
    sandbox_labels_unref(l->labels);
    free(l);
}

void dialer_leases_free(struct channel *c)
{
    while (!LIST_EMPTY(&c->leases))
        drop(c, LIST_FIRST(&c->leases));
}

static void answer(struct channel *c, uint32_t id, const struct budget_grant *g)
{
    struct msg m;
    msg_init(&m, W_BUDGET);
    msg_put_u32(&m, id);
    msg_put_u8(&m, (uint8_t)g->end);
    msg_put_u64(&m, g->up);
    msg_put_u64(&m, g->down);
    msg_put_u32(&m, g->retry);
    (void)ipc_send(c->ipc, &m);
}

/* Which budgets the keys mean in the policy of now; tool: 0 where none is called. False: it has
 * none of such a key. */
static bool wish_of(const struct channel *c, uint64_t key, uint64_t tool, struct budget_wish *w)
{
    const struct policy *p = c->policy->policy;
    *w = (struct budget_wish){.policy = c->policy->name, .whole = policy_budget(p)};
    if (tool && (w->tool = policy_budget_find(p, tool, true)) == NULL)
        return false;
    if (key == 0)
        return w->whole || w->tool;
    w->own = policy_budget_find(p, key, false);
    return w->own != NULL;
}

static struct lease *lease_get(struct channel *c, uint32_t id, uint64_t key)
{
    struct lease *l = find(c, id);
    if (l)
        return l->key == key ? l : NULL;
    l = c->n_leases < BUDGET_CLIENT_LEASES_MAX ? calloc(1, sizeof *l) : NULL;
    if (l == NULL)
        return NULL;
    l->id = id;
    l->key = key;
    LIST_INSERT_HEAD(&c->leases, l, link);
    c->n_leases++;
    return l;
}

static uint64_t counted(uint64_t n)
{
    return n == UINT64_MAX ? 0 : n;
}

static int read_amounts(struct msg *m, uint64_t *tokens, uint64_t *cost)
{
    static const uint64_t most = UINT64_C(1) << 50;
    return msg_get_u64(m, tokens) < 0 || msg_get_u64(m, cost) < 0 || *tokens > most || *cost > most
               ? -1
               : 0;
}

static int read_call(const struct channel *c, struct msg *m, struct dialer_call *ret)
{
    if (read_amounts(m, &ret->tokens, &ret->cost) < 0 ||
        msg_get_str(m, ret->sandbox, sizeof ret->sandbox) < 0 || msg_get_u64(m, &ret->tool) < 0)
        return -1;
    bool is_one = ret->sandbox[0] || ret->tokens || ret->cost || ret->tool;
    return is_one && (c->kind != ROLE_INJECTOR || ret->sandbox[0] == 0) ? -1 : 0;
}

/* The parent says a sandbox's labels before it binds the sandbox's gate. Who asks before we have
 * read that asks again. */
static bool take_labels(const struct channel *c, struct budget_wish *w, struct sandbox_labels **ret)
{
    bool by_label =
        budget_by_label(w->own) || budget_by_label(w->whole) || budget_by_label(w->tool);
    bool local = w->sandbox && strncmp(w->sandbox, "sb-", 3) == 0;
    w->labels = *ret = local ? dialer_labels_of(c->dialer, w->sandbox) : NULL;
    return !by_label || !local || *ret;
}

static void grant(struct channel *c, struct lease *l, const struct budget_wish *w,
                  struct sandbox_labels *labels, struct budget_grant *g)
{
    uint64_t now = now_us();
    g->end = BUDGET_FULL;
    if (l == NULL)
        return;
    budget_ledger_ask(c->dialer->book, w, now, g);
    if (g->end == BUDGET_GRANTED) {
        l->at = now;
        l->up += counted(g->up);
        l->down += counted(g->down);
        if (w->sandbox) {
            l->call = true;
            l->tokens = w->tokens;
            l->cost = w->cost;
            sandbox_labels_unref(l->labels);
            l->labels = sandbox_labels_ref(labels);
        }
    }
    if (l->up == 0 && l->down == 0 && !l->call)
        drop(c, l);
}

bool dialer_budget_decide(struct channel *c, const struct dialer_wish *wish, bool last)
{
    struct budget_wish w;
    struct budget_grant g = {.end = BUDGET_UNKNOWN};
    struct sandbox_labels *labels;
    if (wish_of(c, wish->key, wish->call.tool, &w)) {
        w.request = wish->request;
        w.need = wish->need;
        w.up = wish->up;
        w.down = wish->down;
        w.tokens = wish->call.tokens;
        w.cost = wish->call.cost;
        w.sandbox = wish->call.sandbox[0] ? wish->call.sandbox : NULL;
        w.leased = dialer_fleet_leased(c->dialer);
        if (take_labels(c, &w, &labels))
            grant(c, lease_get(c, wish->id, wish->key), &w, labels, &g);
    }
    if (g.end == BUDGET_SHORT && !last)
        return false;
    if (g.end == BUDGET_SHORT) {
        g.end = BUDGET_SPENT;
        g.retry = 1;
    }
    answer(c, wish->id, &g);
    return true;
}

int dialer_budget_ask(struct channel *c, struct msg *m)
{
    struct dialer_wish w;
    if (msg_get_u32(m, &w.id) < 0 || msg_get_u64(m, &w.key) < 0 || msg_get_u8(m, &w.request) < 0 ||
        msg_get_u64(m, &w.need) < 0 || msg_get_u8(m, &w.up) < 0 || msg_get_u8(m, &w.down) < 0 ||
        read_call(c, m, &w.call) < 0 || msg_end(m) < 0 || w.request > 1 || w.up > 1 || w.down > 1)
        return -1;
    if (!dialer_budget_decide(c, &w, false) && !dialer_fleet_wait(c, &w))
        (void)dialer_budget_decide(c, &w, true);
    dialer_fleet_more(c->dialer);
    return 0;
}

/* Of a lease that a dialer before us gave, only what is beyond its estimate is charged: that it was
 * charged at all is the word of the far end. */
int dialer_budget_settle(struct channel *c, struct msg *m)
{
    uint32_t id;
    uint64_t key, tokens, cost, now = now_us();
    struct dialer_call call;
    struct budget_wish w;
    if (c->kind != ROLE_INJECTOR || msg_get_u32(m, &id) < 0 || msg_get_u64(m, &key) < 0 ||
        msg_get_str(m, call.sandbox, sizeof call.sandbox) < 0 || call.sandbox[0] == 0 ||
        read_amounts(m, &call.tokens, &call.cost) < 0 || read_amounts(m, &tokens, &cost) < 0 ||
        msg_end(m) < 0)
        return -1;
    struct lease *l = find(c, id);
    bool known = l && l->call && l->key == key;
    if (!wish_of(c, key, 0, &w))
        return 0;
    w.sandbox = call.sandbox;
    w.labels = known ? l->labels : dialer_labels_of(c->dialer, call.sandbox);
    w.tokens = known ? l->tokens : call.tokens;
    w.cost = known ? l->cost : call.cost;
    if (!known && tokens < w.tokens)
        tokens = w.tokens;
    if (!known && cost < w.cost)
        cost = w.cost;
    budget_ledger_settle(c->dialer->book, &w, known ? l->at : now, now, tokens, cost);
    if (known)
        l->call = false; /* once */
    return 0;
}

int dialer_budget_back(struct channel *c, struct msg *m)
{
    uint32_t id;
    uint64_t up, down;
    struct budget_wish w;
    if (msg_get_u32(m, &id) < 0 || msg_get_u64(m, &up) < 0 || msg_get_u64(m, &down) < 0 ||
        msg_end(m) < 0)
        return -1;
    struct lease *l = find(c, id);
    if (l == NULL)
        return 0; /* of a dialer that died: spent */
    if (up > l->up || down > l->down)
        return -1; /* more than it was ever given */
    if (wish_of(c, l->key, 0, &w))
        budget_ledger_back(c->dialer->book, &w, l->at, now_us(), up, down);
    drop(c, l);
    return 0;
}
