/* Shared by dialer.c (channels and dials), dialer_policy.c, dialer_budget.c, dialer_fleet.c and
 * dialer_labels.c only. */
#ifndef DURWARD_DIALER_INTERNAL_H
#define DURWARD_DIALER_INTERNAL_H

#include "budget_client.h"
#include "dial.h"
#include "dialer.h"
#include "host_files.h"
#include "ipc.h"
#include "policy.h"
#include "proc.h"

#include <openssl/evp.h>
#include <sys/queue.h>

struct budget_ledger;
struct dialer_fleet;
struct event;
struct revoked;
struct sandbox_labels;

/* A policy by name, shared by its channels, so that a reload reaches all of them at once. */
struct named_policy {
    char name[DIAL_NAME_MAX];
    uint32_t generation;
    struct policy *policy;
    LIST_ENTRY(named_policy) link;
};

/* The far end is one gate or one injector; which, the parent has said. */
struct channel {
    struct dialer *dialer;
    struct ipc *ipc;
    uint32_t number;
    uint32_t wire; /* its account: the far end cannot choose it, nor leave it by losing channels */
    enum role kind;
    char sandbox[DIAL_NAME_MAX];
    bool needs_token; /* the gate of a token listener */
    struct named_policy *policy;
    struct tracing tracing; /* the ask that comes next */
    unsigned n_asks;
    LIST_HEAD(, ask) asks;
    unsigned n_leases;
    LIST_HEAD(, lease) leases; /* of budgets */
    LIST_ENTRY(channel) link;
};

/* One W_DIAL under way. */
struct ask {
    struct channel *channel;
    uint32_t req;
    struct dial *dial;
    LIST_ENTRY(ask) link;
};

enum { DIALER_LABELLED_BUCKETS = 256 };
LIST_HEAD(labelled_list, labelled);

enum dialer_state { DIALER_NEW, DIALER_READY, DIALER_FAILED, DIALER_OVER };

struct dialer {
    struct event_base *base;
    struct dialer_options options;
    enum dialer_state state;
    struct ipc *control;
    struct dial_means means;
    EVP_PKEY *token_key;     /* NULL: no token is accepted */
    struct revoked *revoked; /* NULL: none */
    struct budget_ledger *book;
    struct dialer_fleet *fleet; /* NULL: budgets are this host's alone */
    struct event *refresh;
    struct host_files host; /* as they were when we were confined to them */
    struct event *watch;    /* NULL: nothing holds us to them */
    unsigned n_channels, n_policies;
    LIST_HEAD(, channel) channels;
    LIST_HEAD(, named_policy) policies;
    struct labelled_list labelled[DIALER_LABELLED_BUCKETS]; /* dialer_labels.c */
};

/* Diagnostics, by way of the parent. */
void dialer_tell_operator(struct dialer *d, const char *text);

/* dialer_policy.c */
struct named_policy *dialer_policy_find(struct dialer *d, const char *name);
int dialer_policy_message(struct dialer *d, struct msg *m); /* W_POLICY; -1: bad */
void dialer_policies_free(struct dialer *d);

/* dialer_labels.c: W_LABELS and W_SANDBOX_GONE; -1: bad. */
int dialer_labels_message(struct dialer *d, struct msg *m);
int dialer_labels_gone(struct dialer *d, struct msg *m);
/* NULL: nobody has said any, not even that there are none. */
struct sandbox_labels *dialer_labels_of(struct dialer *d, const char *sandbox);
void dialer_labels_free(struct dialer *d);

/* A call of a model or a tool, as it is asked for or over: who makes it, and how much of what.
 * Injectors alone count calls: what a gate would say of them, its sandbox could have made it say.
 */
struct dialer_call {
    char sandbox[BUDGET_SANDBOX_MAX + 1];
    uint64_t tokens, cost, tool;
};

/* A W_BUDGET_ASK as it came. */
struct dialer_wish {
    uint32_t id;
    uint64_t key, need;
    uint8_t request, up, down;
    struct dialer_call call;
};

/* dialer_budget.c: W_BUDGET_ASK, W_BUDGET_SETTLE and W_BUDGET_BACK; -1: bad. */
int dialer_budget_ask(struct channel *c, struct msg *m);
int dialer_budget_settle(struct channel *c, struct msg *m);
int dialer_budget_back(struct channel *c, struct msg *m);
/* Answers a wish; false: the fleet is to be asked first. last: it is answered in any case. */
bool dialer_budget_decide(struct channel *c, const struct dialer_wish *wish, bool last);
void dialer_leases_free(struct channel *c); /* what they held is spent */

/* dialer_fleet.c. hold: seconds. NULL: out of memory. */
struct dialer_fleet *dialer_fleet_new(struct dialer *d, unsigned hold);
void dialer_fleet_free(struct dialer_fleet *f);     /* NULL is fine */
void dialer_fleet_attach(struct dialer *d, int fd); /* the role's channel; owned */
void dialer_fleet_leave(struct dialer *d);
bool dialer_fleet_leased(const struct dialer *d); /* what is held counts now */
/* The wish is decided later. False: it cannot wait. */
bool dialer_fleet_wait(struct channel *c, const struct dialer_wish *wish);
void dialer_fleet_more(struct dialer *d);          /* asks for what is kept ahead */
void dialer_fleet_forget(const struct channel *c); /* its wishes wait no longer */

#endif
