/* A request's use of budgets, in the process that admits it (a gate or an injector): one more
 * request, and the bytes of its body and its reply, by leave of the dialer.
 *
 * Bytes are counted where they enter this process, and no more of them are let in than were
 * granted: room is what the owner would give, cut to what is left. More is asked for ahead. A call
 * to a model asks for its estimate in tokens and money, and says at its end what it took. */
#ifndef DURWARD_BUDGET_CLIENT_H
#define DURWARD_BUDGET_CLIENT_H

#include "budget.h"

#include <stddef.h>

struct ipc;
struct msg;
struct quota;
struct budget_client;
struct budget_channel; /* of one channel to the dialer */

enum { BUDGET_CLIENT_LEASES_MAX = 2048 }; /* of a channel, at a time */

/* Of a dial client; it tells when the channel comes and goes. */
struct budget_channel *budget_channel_new(void);
void budget_channel_free(struct budget_channel *s); /* no callback runs */
/* NULL: it is gone. What was asked on it is asked again on the next one. */
void budget_channel_attach(struct budget_channel *s, struct ipc *ch);
int budget_channel_message(struct budget_channel *s, struct msg *m); /* W_BUDGET. -1: bad */

struct budget_client_owner {
    /* Once, from the event loop: it may go (code NULL), or the refusal. retry: seconds, 0: unknown.
     * The client may be freed in it. */
    void (*decided)(void *arg, unsigned status, const char *code, unsigned retry);
    void (*more)(void *arg, bool up); /* after no room there is some again */
    /* Nothing is left while bytes flow: the exchange is to end. */
    void (*over)(void *arg, unsigned retry);
    void *arg;
};

/* Each request with a budget takes one of these, on its sandbox's account, before
 * budget_client_new. */
struct quota *budget_channel_leases(struct budget_channel *s);
/* A call to a model, by its estimate. Of injectors only. */
struct budget_call {
    const char *sandbox; /* not empty; copied, at most BUDGET_SANDBOX_MAX bytes of it */
    uint64_t tokens, cost;
};
enum { BUDGET_SANDBOX_MAX = 64 };
/* What a request is to be charged beside itself. */
struct budget_need {
    uint64_t bytes;                 /* up, that are known to come */
    bool known;                     /* there are no others */
    const struct budget_call *call; /* NULL: it is none */
    const struct budget *tool;      /* of the MCP tool that is called, of injectors only; or NULL */
    const char *caller;             /* the sandbox that calls it; copied */
};
/* NULL: out of memory. The budgets are used while it is there. */
struct budget_client *budget_client_new(struct budget_channel *s, const struct budget *own,
                                        const struct budget *whole, const struct budget_need *need,
                                        const struct budget_client_owner *owner);
/* When it was refused with 429: by which of the three. */
const struct budget *budget_client_spent(const struct budget_client *p);
/* It took so much; what is not said before budget_client_free is charged as estimated. */
void budget_client_took(struct budget_client *p, uint64_t tokens, uint64_t cost);
void budget_client_free(struct budget_client *p); /* gives back what is left; NULL is fine */

/* How many of these bytes may come in; all of them for NULL. */
size_t budget_client_up_room(struct budget_client *p, size_t room);
size_t budget_client_down_room(struct budget_client *p, size_t room);
void budget_client_up(struct budget_client *p, size_t n); /* they came in */
void budget_client_down(struct budget_client *p, size_t n);

#endif
