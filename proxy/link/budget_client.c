/* Asks the dialer, ahead of need, for what a request will use, and gives back what was left. When a
 * dialer dies, the open questions are put to the next one. */
#include "budget_client.h"

#include "budget_ledger.h"
#include "ipc.h"
#include "quota.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

enum { AHEAD = 32 * 1024 /* bytes left at which more are asked for */ };

struct way {
    bool limited;
    bool settled; /* all that comes was had at once: no more is asked for */
    bool wanted;  /* somebody had no room */
    uint64_t left;
    uint64_t got; /* the latest portion; 0 once one was refused: then nothing is asked ahead */
};

struct budget_client {
    struct budget_channel *of;
    uint32_t id;
    uint64_t key, tool, need;
    struct way up, down;
    bool asked;            /* an answer is awaited */
    bool decided;          /* the first one has come */
    bool ask_up, ask_down; /* what the open question is about */
    bool leased;           /* the dialer knows of bytes, or of a call */
    bool called, took;     /* it is a call; what that took was said */
    char sandbox[BUDGET_SANDBOX_MAX + 1];
    uint64_t tokens, cost, took_tokens, took_cost;
    bool left;    /* its owner has freed it; only the answer is awaited */
    bool calling; /* its owner is being called */
    bool ended;   /* and has freed it then: it goes after the call */
    const struct budget *own, *whole, *of_tool, *spent; /* its owner's policy holds them */
    struct budget_client_owner owner;
    LIST_ENTRY(budget_client) link;
};

struct budget_channel {
    struct ipc *ch;
    uint32_t last;
    struct quota leases;
    LIST_HEAD(, budget_client) list;
};

struct budget_channel *budget_channel_new(void)
{
    struct budget_channel *s = calloc(1, sizeof *s);
    if (s)
        s->leases =
            (struct quota){.total = BUDGET_CLIENT_LEASES_MAX, .each = BUDGET_CLIENT_LEASES_MAX};
    return s;
}

struct quota *budget_channel_leases(struct budget_channel *s)
{
    return &s->leases;
}

static void drop(struct budget_client *p)
{
    if (p->of)
        LIST_REMOVE(p, link);
    free(p);
}

/* Those that nobody owns any more. */
static void drop_left(struct budget_channel *s)
{
    struct budget_client *p, *next;
    for (p = LIST_FIRST(&s->list); p; p = next) {
        next = LIST_NEXT(p, link);
        if (p->left)
            drop(p);
    }
}

void budget_channel_free(struct budget_channel *s)
{
    struct budget_client *p;
    if (s == NULL)
        return;
    drop_left(s);
    while ((p = LIST_FIRST(&s->list)) != NULL) {
        LIST_REMOVE(p, link);
        p->of = NULL; /* its owner still frees it */
    }
    free(s);
}

static void send(const struct budget_client *p)
{
    struct msg m;
    if (p->of->ch == NULL)
        return; /* budget_channel_attach sends it */
    msg_init(&m, W_BUDGET_ASK);
    msg_put_u32(&m, p->id);
    msg_put_u64(&m, p->key);
    msg_put_u8(&m, !p->decided);
    msg_put_u64(&m, p->decided ? 0 : p->need);
    msg_put_u8(&m, p->ask_up);
    msg_put_u8(&m, p->ask_down);
    bool called = p->called && !p->decided;
    msg_put_u64(&m, called ? p->tokens : 0);
    msg_put_u64(&m, called ? p->cost : 0);
    msg_put_str(&m, p->decided ? "" : p->sandbox);
    msg_put_u64(&m, p->decided ? 0 : p->tool);
    (void)ipc_send(p->of->ch, &m);
}

static void ask(struct budget_client *p, bool up, bool down)
{
    if (p->asked || p->of == NULL || !(up || down || !p->decided))
        return;
    p->asked = true;
    p->ask_up = up;
    p->ask_down = down;
    send(p);
}

void budget_channel_attach(struct budget_channel *s, struct ipc *ch)
{
    const struct budget_client *p;
    s->ch = ch;
    drop_left(s);
    LIST_FOREACH(p, &s->list, link)
    if (ch && p->asked)
        send(p);
}

struct budget_client *budget_client_new(struct budget_channel *s, const struct budget *own,
                                        const struct budget *whole, const struct budget_need *need,
                                        const struct budget_client_owner *owner)
{
    struct budget_client *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->of = s;
    p->id = ++s->last;
    p->key = own ? own->key : 0;
    p->own = own;
    p->whole = whole;
    p->owner = *owner;
    p->up.limited = budget_has(own, BUDGET_UPLOAD) || budget_has(whole, BUDGET_UPLOAD);
    p->down.limited = budget_has(own, BUDGET_DOWNLOAD) || budget_has(whole, BUDGET_DOWNLOAD);
    p->need = p->up.limited ? need->bytes : 0;
    p->up.settled = need->known;
    if (need->tool) {
        p->of_tool = need->tool;
        p->tool = need->tool->key;
        snprintf(p->sandbox, sizeof p->sandbox, "%s", need->caller);
    }
    if (need->call) {
        p->called = true;
        p->tokens = need->call->tokens;
        p->cost = need->call->cost;
        snprintf(p->sandbox, sizeof p->sandbox, "%s", need->call->sandbox);
    }
    LIST_INSERT_HEAD(&s->list, p, link);
    ask(p, p->up.limited && !need->known && need->bytes == 0, p->down.limited);
    return p;
}

const struct budget *budget_client_spent(const struct budget_client *p)
{
    return p ? p->spent : NULL;
}

void budget_client_took(struct budget_client *p, uint64_t tokens, uint64_t cost)
{
    if (p == NULL || !p->called)
        return;
    p->took = true;
    p->took_tokens = tokens;
    p->took_cost = cost;
}

static void settle(const struct budget_client *p)
{
    struct msg m;
    msg_init(&m, W_BUDGET_SETTLE);
    msg_put_u32(&m, p->id);
    msg_put_u64(&m, p->key);
    msg_put_str(&m, p->sandbox);
    msg_put_u64(&m, p->tokens);
    msg_put_u64(&m, p->cost);
    msg_put_u64(&m, p->took_tokens);
    msg_put_u64(&m, p->took_cost);
    (void)ipc_send(p->of->ch, &m);
}

static void give_back(const struct budget_client *p)
{
    struct msg m;
    if (p->of == NULL || p->of->ch == NULL || !p->leased)
        return;
    if (p->took)
        settle(p);
    msg_init(&m, W_BUDGET_BACK);
    msg_put_u32(&m, p->id);
    msg_put_u64(&m, p->up.limited ? p->up.left : 0);
    msg_put_u64(&m, p->down.limited ? p->down.left : 0);
    (void)ipc_send(p->of->ch, &m);
}

static void finish(struct budget_client *p)
{
    if (p->asked && p->of && p->of->ch) {
        p->left = true; /* what the answer grants goes back with the rest */
        if (!p->decided && !p->took)
            budget_client_took(p, 0, 0);
        return;
    }
    give_back(p);
    drop(p);
}

void budget_client_free(struct budget_client *p)
{
    if (p && p->calling)
        p->ended = true;
    else if (p)
        finish(p);
}

/* ---- answers ---- */

static void take(struct way *w, uint64_t n)
{
    if (!w->limited || n == 0 || n == UINT64_MAX) /* the latter cannot be, where it is limited */
        return;
    w->left += n;
    w->got = n;
}

/* Is it this that nobody could go on for? */
static bool stuck(const struct way *w)
{
    return w->limited && w->wanted && w->left == 0;
}

static void refused(struct budget_client *p, enum budget_end end, unsigned retry)
{
    if (p->decided) {
        p->up.got = p->ask_up ? 0 : p->up.got;
        p->down.got = p->ask_down ? 0 : p->down.got;
        if ((p->ask_up && stuck(&p->up)) || (p->ask_down && stuck(&p->down)))
            p->owner.over(p->owner.arg, retry);
        else
            ask(p, stuck(&p->up), stuck(&p->down));
    } else if (end == BUDGET_SPENT || end == BUDGET_SPENT_WHOLE || end == BUDGET_SPENT_TOOL) {
        p->spent = end == BUDGET_SPENT_TOOL        ? p->of_tool
                   : end == BUDGET_SPENT && p->own ? p->own
                                                   : p->whole;
        p->owner.decided(p->owner.arg, 429, "budget", retry);
    } else {
        p->owner.decided(p->owner.arg, 503, end == BUDGET_FULL ? "overload" : "policy_changed", 0);
    }
}

/* There is some again: somebody waited for it. */
static bool wake(struct way *w)
{
    bool was = w->wanted && w->left > 0;
    if (was)
        w->wanted = false;
    return was;
}

static void granted(struct budget_client *p, uint64_t up, uint64_t down)
{
    bool first = !p->decided;
    take(&p->up, up);
    take(&p->down, down);
    p->leased = p->leased || p->sandbox[0] || (p->up.limited && up) || (p->down.limited && down);
    p->decided = true;
    if (p->left) {
        give_back(p);
        drop(p);
        return;
    }
    bool woken_up = wake(&p->up), woken_down = wake(&p->down);
    ask(p, stuck(&p->up), stuck(&p->down));
    p->calling = true;
    if (first)
        p->owner.decided(p->owner.arg, 0, NULL, 0);
    else if (woken_up)
        p->owner.more(p->owner.arg, true);
    if (!p->ended && !first && woken_down)
        p->owner.more(p->owner.arg, false);
    p->calling = false;
    if (p->ended)
        finish(p);
}

int budget_channel_message(struct budget_channel *s, struct msg *m)
{
    struct budget_client *p;
    uint32_t id, retry;
    uint64_t up, down;
    uint8_t end;
    if (msg_get_u32(m, &id) < 0 || msg_get_u8(m, &end) < 0 || msg_get_u64(m, &up) < 0 ||
        msg_get_u64(m, &down) < 0 || msg_get_u32(m, &retry) < 0 || msg_end(m) < 0 ||
        end > BUDGET_SPENT_TOOL)
        return -1;
    LIST_FOREACH(p, &s->list, link)
    if (p->id == id && p->asked)
        break;
    if (p == NULL)
        return 0; /* asked of a dialer that died, and again */
    p->asked = false;
    if (end == BUDGET_GRANTED) {
        granted(p, up, down);
    } else if (p->left) {
        give_back(p);
        drop(p);
    } else {
        refused(p, (enum budget_end)end, retry);
    }
    return 0;
}

/* ---- bytes ---- */

static size_t room_of(struct budget_client *p, struct way *w, bool up, size_t room)
{
    if (!w->limited || room == 0)
        return room;
    if (w->left == 0) {
        w->wanted = !w->settled;
        if (!w->settled)
            ask(p, up, !up);
        return 0;
    }
    return room < w->left ? room : (size_t)w->left;
}

static void use(struct budget_client *p, struct way *w, bool up, size_t n)
{
    if (!w->limited)
        return;
    w->left -= n < w->left ? n : w->left;
    if (!w->settled && w->left < AHEAD && w->left < w->got / 2)
        ask(p, up, !up);
}

size_t budget_client_up_room(struct budget_client *p, size_t room)
{
    return p ? room_of(p, &p->up, true, room) : room;
}

size_t budget_client_down_room(struct budget_client *p, size_t room)
{
    return p ? room_of(p, &p->down, false, room) : room;
}

void budget_client_up(struct budget_client *p, size_t n)
{
    if (p)
        use(p, &p->up, true, n);
}

void budget_client_down(struct budget_client *p, size_t n)
{
    if (p)
        use(p, &p->down, false, n);
}
