/* What the dialer holds of the fleet's budgets, by what it said last: for people, who are shown it
 * by the controller. Nothing is decided by it. */
#ifndef DURWARD_HELD_SHARES_H
#define DURWARD_HELD_SHARES_H

#include "ipc_msg.h"

enum { HELD_SHARES_MAX = 256, SHARE_POLICY_MAX = 72, SHARE_SECONDS_MAX = 86400 };

/* A limit, by a name that means it on every host with the same rule. */
struct share_name {
    char policy[SHARE_POLICY_MAX], text[SHARE_POLICY_MAX + 80];
    uint64_t key, whose;
    uint8_t kind;
    uint32_t seconds;
};

struct held_shares;

/* -1: it is none, or nothing that may stand in a text of SQL. */
int share_name_get(struct msg *m, struct share_name *ret);

struct held_shares *held_shares_new(void); /* NULL: out of memory */
void held_shares_free(struct held_shares *s);
void held_shares_clear(struct held_shares *s); /* another dialer, or another name of it */
/* It holds so much of the limit, and asks for another share with that number. */
void held_shares_asked(struct held_shares *s, const struct share_name *n, uint64_t amount,
                       uint64_t held, uint32_t number);
void held_shares_answered(struct held_shares *s, uint32_t number, uint64_t held);
/* Adds the fields of W_SHARES. */
void held_shares_put(const struct held_shares *s, struct msg *m);

#endif
