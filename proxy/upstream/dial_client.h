/* The asking side of the dialer: whoever needs a connection (gate, injector, vault, exporter). */
#ifndef DURWARD_DIAL_CLIENT_H
#define DURWARD_DIAL_CLIENT_H

#include "authority.h"
#include "err.h"
#include "slice.h"
#include "trace.h"

enum {
    DIALS_MAX = 4096,  /* under way in one channel to the dialer, */
    DIALS_OWNER = 256, /* and of one owner */
};
/* Of the names that W_DIAL carries, with terminators. */
enum { DIAL_NAME_MAX = 128, DIAL_REQUEST_MAX = 65 };

struct event_base;
struct ipc;
struct dial_client;
struct dial_wait;
struct budget_channel;

/* fd >= 0: a connected, non-blocking TCP socket, the callback owns it; address is its peer as text.
 * fd < 0: code is a constant ("denied", "blocked_ip", "resolve", "connect", "timeout", "overload",
 * "share_used" (the owner has its part of all that are being made), "audit" (the dialer could not
 * record it), "dialer_gone"), detail is for the audit record. */
typedef void (*dial_fn)(void *arg, int fd, const char *address, const char *code,
                        const char *detail);

struct dial_client *dial_client_new(struct event_base *base, unsigned seconds);
void dial_client_free(struct dial_client *c); /* waits are dropped without a call */
void dial_client_attach(struct dial_client *c, int dialer_fd,
                        uint32_t number); /* owned; replaces a dead one */
/* Who is told of the number when that channel ends (peer_lost). */
void dial_client_lost_to(struct dial_client *c, struct ipc *parent);
/* Never calls fn before it returns. owner: whose part it takes of what may be under way. token: ""
 * for local sandboxes. NULL when memory is out. */
struct dial_wait *dial_client_get(struct dial_client *c, struct slice owner,
                                  const struct authority *a, const char *id, const char *token,
                                  dial_fn fn, void *arg);
/* Budgets, on the same channel; owned by the client. */
struct budget_channel *dial_client_budget_channel(const struct dial_client *c);
/* Its steps are wanted, also those of an attempt that is still to come. NULL is fine. */
void dial_client_trace(struct dial_wait *w, const struct trace *t);
void dial_client_cancel(struct dial_wait *w); /* NULL is fine */

#endif
