/* Requests that `ask` rules hold, as people see them: listed, decided, given up.
 *
 * Each injector has a channel here (proxy/link/pending_approval.h); it holds the request
 * itself, and ends it by itself when its time is over or the client has left. What is listed here
 * is for reading only.
 *
 * W_HELD, controller → CLI of a private one (`durward run --ask`):
 *   id:str method:str url:str query:str rule:str credential:str type:str length:u64 seconds:u32 */
#ifndef DURWARD_APPROVALS_H
#define DURWARD_APPROVALS_H

#include <jansson.h>

#include "err.h"
#include "ipc_msg.h"

struct approvals;
struct client;
struct controller;
struct evhttp_request;

enum { APPROVALS_MAX = 512, APPROVALS_HOLDERS_MAX = 1024, APPROVAL_ID_MAX = 24 };

struct approvals *approvals_new(struct controller *c); /* NULL: out of memory */
void approvals_free(struct approvals *a);
/* The channel of an injector of that policy, or of a broker's back, which holds requests and does
 * nothing else. Owns fd. */
void approvals_holder(struct approvals *a, const char *policy, bool injector, int fd);

/* Held on another host of the fleet, which answers for what it says (fleet_approvals.h); for
 * reading only, too. v: as approvals_show gives it there. -1: there is one of that id, or no room,
 * or something is missing. */
int approvals_foreign(struct approvals *a, const char *id, const char *host, const json_t *v);
void approvals_foreign_over(struct approvals *a, const char *id);
/* Those that came after that number, oldest first: {approvals: […], next}. */
json_t *approvals_json(const struct approvals *a, uint64_t after);
json_t *approvals_show(const struct approvals *a, const char *id); /* NULL: there is none */
size_t approvals_held(const struct approvals *a);                  /* on this host */
/* Does a request of this sandbox wait to be decided? */
bool approvals_wait_for(const struct approvals *a, const char *sandbox);
/* 0; 1: there is none of that id that is held here (any more). who: at most 120 bytes. */
int approvals_decide(struct approvals *a, const char *id, bool allow, const char *who);
/* fn runs once, when one arrives or `seconds` are over; before approvals_free with gone set. NULL:
 * too many wait, of all or of the owner. */
struct approvals_wait;
typedef void (*approvals_fn)(void *arg, bool gone);
struct approvals_wait *approvals_await(struct approvals *a, struct slice owner, unsigned seconds,
                                       approvals_fn fn, void *arg);
void approvals_wait_cancel(struct approvals_wait *w);
bool approvals_any(const struct approvals *a, uint64_t after);

/* W_DECIDE of `durward run`. -1: bad. */
int approvals_client_message(struct approvals *a, struct client *cl, struct msg *m);

#endif
