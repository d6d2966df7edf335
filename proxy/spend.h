/* A request's use of budgets, in the process that admits it (a gate or an injector): one more
 * request, and the bytes of its body and its reply, by leave of the dialer.
 *
 * Bytes are counted where they enter this process, and no more of them are let in than were
 * granted: room is what the owner would give, cut to what is left. More is asked for ahead. */
#ifndef DURWARD_SPEND_H
#define DURWARD_SPEND_H

#include "budget.h"

#include <stddef.h>

struct ipc;
struct msg;
struct spend;
struct spender; /* of one channel to the dialer */

/* Of a dial client; it tells when the channel comes and goes. */
struct spender *spender_new(void);
void spender_free(struct spender *s); /* no callback runs */
/* NULL: it is gone. What was asked on it is asked again on the next one. */
void spender_channel(struct spender *s, struct ipc *ch);
int spender_message(struct spender *s, struct msg *m); /* W_BUDGET. -1: bad */

struct spend_owner {
    /* Once, from the event loop: it may go (code NULL), or the refusal. retry: seconds, 0: unknown.
     * The spend may be freed in it. */
    void (*decided)(void *arg, unsigned status, const char *code, unsigned retry);
    void (*more)(void *arg, bool up); /* after no room there is some again */
    /* Nothing is left while bytes flow: the exchange is to end. */
    void (*over)(void *arg, unsigned retry);
    void *arg;
};

/* need: bytes up that are known to come; known: there are no others. NULL: out of memory. */
struct spend *spend_new(struct spender *s, const struct budget *own, const struct budget *whole,
                        uint64_t need, bool known, const struct spend_owner *owner);
void spend_free(struct spend *p); /* gives back what is left; NULL is fine */

/* How many of these bytes may come in; all of them for NULL. */
size_t spend_up_room(struct spend *p, size_t room);
size_t spend_down_room(struct spend *p, size_t room);
void spend_up(struct spend *p, size_t n); /* they came in */
void spend_down(struct spend *p, size_t n);

#endif
