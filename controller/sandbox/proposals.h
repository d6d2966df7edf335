/* Requests that somebody would like a policy to allow from now on: asked for inside a sandbox
 * (http://durward.internal/proposals) or by an operator, of a record. Each is a rule to be read by
 * a person. What is accepted is not yet allowed: that it is when whoever may write the
 * configuration has put it there (`durward proposals accept --write`) and it was read again.
 *
 * They live as long as the controller; the log keeps who asked for what, and who decided. A
 * sandbox's words are shown as such. Each owner (who asked the API; else the sandbox) has
 * PROPOSALS_EACH that wait, and never more than are left for all others, and makes one in a second
 * at most: a policy is compiled for each. None lifts what a rule of the policy asks: where it would
 * go before an allow rule that is not as plain as itself, it is WIRE_PROPOSED_ALLOWED. */
#ifndef DURWARD_PROPOSALS_H
#define DURWARD_PROPOSALS_H

#include <jansson.h>

#include "err.h"
#include "ipc_msg.h"
#include "wire.h"

struct controller;
struct ipc;
struct proposals;
struct sandbox;

enum {
    PROPOSALS_MAX = 512, /* that wait */
    PROPOSALS_EACH = 16,
    PROPOSALS_DECIDED_MAX = 256, /* the newest of those that were decided */
    PROPOSAL_ID_MAX = 24,
    PROPOSAL_PATH_MAX = 512,
    PROPOSAL_REASON_MAX = 280,
};

struct proposal_ask {
    const char *sandbox; /* "": of none */
    const char *policy;
    const char *method, *scheme, *authority, *path, *reason;
    const char *by; /* "": the sandbox itself; else an operator, at most 120 bytes */
};

struct proposals *proposals_new(struct controller *c); /* NULL: out of memory */
void proposals_free(struct proposals *p);

/* id: of the one that was taken, or of the same one that is known; else "". */
enum wire_proposed proposals_add(struct proposals *p, const struct proposal_ask *ask,
                                 char id[PROPOSAL_ID_MAX + 1]);
/* It is gone for good: what its own programs asked for and nobody decided is dropped, on record. */
void proposals_sandbox_ended(struct proposals *p, const char *sandbox);
void proposals_reloaded(struct proposals *p); /* the configuration is another one */
/* A sandbox_owner's `proposed`; arg: the controller. */
int proposals_of_gate(void *controller, struct sandbox *s, struct ipc *gate, struct msg *m);

json_t *proposals_json(const struct proposals *p);
json_t *proposals_show(const struct proposals *p, const char *id); /* NULL: there is none */
/* 0; 1: there is none of that id; 2: it was decided otherwise. */
int proposals_decide(struct proposals *p, const char *id, bool accept, const char *who);

#endif
