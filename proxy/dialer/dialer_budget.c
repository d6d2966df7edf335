/* Budgets at the dialer: asked for by gates and injectors before they admit a request that has one,
 * and for more bytes as they relay. */
#include "dialer_internal.h"

#include "budget_ledger.h"
#include "budget_client.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Bytes that a channel holds for one request. Its death leaves them spent. */
struct lease {
    uint32_t id;
    uint64_t key, at; /* of the latest grant */
    uint64_t up, down;
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

/* Which budgets a key means in the policy of now. False: it has none of that key. */
static bool wish_of(const struct channel *c, uint64_t key, struct budget_wish *w)
{
    const struct policy *p = c->policy->policy;
    *w = (struct budget_wish){.policy = c->policy->name, .whole = policy_budget(p)};
    if (key == 0)
        return w->whole != NULL;
    w->own = policy_budget_find(p, key);
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

int dialer_budget_ask(struct channel *c, struct msg *m)
{
    uint32_t id;
    uint64_t key, need;
    uint8_t request, up, down;
    struct budget_wish w;
    struct budget_grant g = {.end = BUDGET_UNKNOWN};
    if (msg_get_u32(m, &id) < 0 || msg_get_u64(m, &key) < 0 || msg_get_u8(m, &request) < 0 ||
        msg_get_u64(m, &need) < 0 || msg_get_u8(m, &up) < 0 || msg_get_u8(m, &down) < 0 ||
        msg_end(m) < 0 || request > 1 || up > 1 || down > 1)
        return -1;
    if (wish_of(c, key, &w)) {
        struct lease *l = lease_get(c, id, key);
        uint64_t now = now_us();
        w.request = request;
        w.need = need;
        w.up = up;
        w.down = down;
        g.end = BUDGET_FULL;
        if (l)
            budget_ledger_ask(c->dialer->book, &w, now, &g);
        if (l && g.end == BUDGET_GRANTED) {
            l->at = now;
            l->up += counted(g.up);
            l->down += counted(g.down);
        }
        if (l && l->up == 0 && l->down == 0)
            drop(c, l);
    }
    answer(c, id, &g);
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
    if (wish_of(c, l->key, &w))
        budget_ledger_back(c->dialer->book, &w, l->at, now_us(), up, down);
    drop(c, l);
    return 0;
}
