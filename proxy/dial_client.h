/* The asking side of the dialer: used by the gate and the injector. */
#ifndef DURWARD_DIAL_CLIENT_H
#define DURWARD_DIAL_CLIENT_H

#include "authority.h"
#include "err.h"

struct event_base;
struct ipc;
struct dial_client;
struct dial_wait;
struct spender;

/* fd >= 0: a connected, non-blocking TCP socket, the callback owns it; address is its peer as text.
 * fd < 0: code is a constant ("denied", "blocked_ip", "resolve", "connect", "timeout", "overload",
 * "audit" (the dialer could not record it), "dialer_gone"), detail is for the audit record. */
typedef void (*dial_fn)(void *arg, int fd, const char *address, const char *code,
                        const char *detail);

struct dial_client *dial_client_new(struct event_base *base, unsigned seconds);
void dial_client_free(struct dial_client *c); /* waits are dropped without a call */
void dial_client_attach(struct dial_client *c, int dialer_fd,
                        uint32_t number); /* owned; replaces a dead one */
/* Who is told of the number when that channel ends (peer_lost). */
void dial_client_lost_to(struct dial_client *c, struct ipc *parent);
/* Never calls fn before it returns. token: "" for local sandboxes. NULL when memory is out. */
struct dial_wait *dial_client_get(struct dial_client *c, const struct authority *a, const char *id,
                                  const char *token, dial_fn fn, void *arg);
/* Budgets, on the same channel; owned by the client. */
struct spender *dial_client_spender(const struct dial_client *c);
void dial_client_cancel(struct dial_wait *w); /* NULL is fine */

#endif
