/* A list of limits, each with what is held of it. */
#include "held_shares.h"

#include "budget.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct one {
    char name[SHARE_POLICY_MAX + 80]; /* "": the place is free */
    char policy[SHARE_POLICY_MAX];
    uint64_t amount, held;
    uint32_t seconds, number; /* number: of the question that is open; 0: none */
    uint8_t kind;
};

struct held_shares {
    struct one list[HELD_SHARES_MAX];
};

int share_name_get(struct msg *m, struct share_name *s)
{
    if (msg_get_str(m, s->policy, sizeof s->policy) < 0 || msg_get_u64(m, &s->key) < 0 ||
        msg_get_u64(m, &s->whose) < 0 || msg_get_u8(m, &s->kind) < 0 ||
        msg_get_u32(m, &s->seconds) < 0 || s->kind >= BUDGET_KINDS || s->seconds == 0 ||
        s->seconds > SHARE_SECONDS_MAX || s->policy[0] == 0)
        return -1;
    for (const char *p = s->policy; *p; p++) /* it stands in a text of SQL */
        if (!ascii_is_alnum(*p) && strchr("_.-", *p) == NULL)
            return -1;
    snprintf(s->text, sizeof s->text, "%s/%016llx/%016llx/%u/%u", s->policy,
             (unsigned long long)s->key, (unsigned long long)s->whose, s->kind, s->seconds);
    return 0;
}

struct held_shares *held_shares_new(void)
{
    return calloc(1, sizeof(struct held_shares));
}

void held_shares_free(struct held_shares *s)
{
    free(s);
}

void held_shares_clear(struct held_shares *s)
{
    memset(s, 0, sizeof *s);
}

/* Of that name, or a free place. NULL: there is no room. */
static struct one *find(struct held_shares *s, const char *name)
{
    struct one *at = NULL;
    for (size_t i = 0; i < HELD_SHARES_MAX; i++) {
        if (strcmp(s->list[i].name, name) == 0)
            return &s->list[i];
        if (at == NULL && s->list[i].name[0] == 0)
            at = &s->list[i];
    }
    return at;
}

/* The database may say more than there is, and a limit may have been lowered: nobody is shown that.
 */
static uint64_t at_most(uint64_t held, uint64_t amount)
{
    return held < amount ? held : amount;
}

void held_shares_asked(struct held_shares *s, const struct share_name *n, uint64_t amount,
                       uint64_t held, uint32_t number)
{
    struct one *o = find(s, n->text);
    if (o == NULL)
        return;
    *o = (struct one){.amount = amount,
                      .held = at_most(held, amount),
                      .seconds = n->seconds,
                      .number = number,
                      .kind = n->kind};
    memcpy(o->name, n->text, sizeof o->name);
    memcpy(o->policy, n->policy, sizeof o->policy);
}

void held_shares_answered(struct held_shares *s, uint32_t number, uint64_t held)
{
    for (size_t i = 0; i < HELD_SHARES_MAX; i++) {
        struct one *o = &s->list[i];
        if (o->name[0] == 0 || o->number != number)
            continue;
        o->number = 0;
        o->held = at_most(held, o->amount);
        if (o->held == 0)
            memset(o, 0, sizeof *o);
        return;
    }
}

void held_shares_put(const struct held_shares *s, struct msg *m)
{
    uint32_t n = 0;
    for (size_t i = 0; i < HELD_SHARES_MAX; i++)
        n += s->list[i].held > 0;
    msg_put_u32(m, n);
    for (size_t i = 0; i < HELD_SHARES_MAX; i++) {
        const struct one *o = &s->list[i];
        if (o->held == 0)
            continue;
        msg_put_str(m, o->policy);
        msg_put_u8(m, o->kind);
        msg_put_u32(m, o->seconds);
        msg_put_u64(m, o->amount);
        msg_put_u64(m, o->held);
    }
}
