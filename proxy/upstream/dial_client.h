/* The asking side of the dialer: whoever needs a connection (gate, injector, vault, exporter). An
 * owner's dials beyond its part of what may be under way, or beyond its pace (pace.h), wait: each
 * owner's in order, owners by turns. */
#ifndef DURWARD_DIAL_CLIENT_H
#define DURWARD_DIAL_CLIENT_H

#include "authority.h"
#include "err.h"
#include "slice.h"
#include "trace.h"

enum {
    DIALS_MAX = 4096,  /* under way in one channel to the dialer, */
    DIALS_OWNER = 256, /* and of one owner */
    DIALS_WAITING = 8192,
    DIALS_WAITING_OWNER = 4096,
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
 * "share_used" (the owner had its part of all that are being made for as long as it waited, or its
 * part of those that wait), "audit" (the dialer could not record it), "dialer_gone"), detail is for
 * the audit record. */
typedef void (*dial_fn)(void *arg, int fd, const char *address, const char *code,
                        const char *detail);

/* seconds: how long one waits to begin at most, and, with a margin, for its answer. */
struct dial_client *dial_client_new(struct event_base *base, unsigned seconds);
void dial_client_free(struct dial_client *c); /* waits are dropped without a call */
void dial_client_attach(struct dial_client *c, int dialer_fd,
                        uint32_t number); /* owned; replaces a dead one */
/* Who is told of the number when that channel ends (peer_lost). */
void dial_client_lost_to(struct dial_client *c, struct ipc *parent);
/* Never calls fn before it returns. owner: whose part it takes of what may be under way, or wait.
 * token: "" for local sandboxes. NULL when memory is out. */
struct dial_wait *dial_client_get(struct dial_client *c, struct slice owner,
                                  const struct authority *a, const char *id, const char *token,
                                  dial_fn fn, void *arg);
/* Budgets, on the same channel; owned by the client. */
struct budget_channel *dial_client_budget_channel(const struct dial_client *c);
/* The next dial_client_get is of this request: its steps are told, from the first one on. */
void dial_client_next_trace(struct dial_client *c, const struct trace *t);
/* *at becomes the time (meter_now) when it has waited enough, to begin or not; it outlives w. */
void dial_client_begun(struct dial_wait *w, uint64_t *at);
void dial_client_cancel(struct dial_wait *w); /* NULL is fine */

#endif
