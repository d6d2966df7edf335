/* Requests that an `ask` rule holds until somebody decides: the injector's end of its channel to
 * the controller, which tells people and brings their answers.
 *
 * The answer comes on that channel and on no other, for the number that this process chose for the
 * very request it holds in memory: nothing that a gate says can stand for it. Without a controller
 * a request waits for the next one, and is denied when its time is over.
 * What both say is in proxy/link/held.h. */
#ifndef DURWARD_PENDING_APPROVAL_H
#define DURWARD_PENDING_APPROVAL_H

#include "held.h"
#include "slice.h"

struct event_base;
struct pending_approval;
struct pending_approvals;

enum { PENDING_APPROVALS_MAX = 256 }; /* each sandbox has its part */

/* What is shown of it. Texts are cut and cleaned by the controller, who shows them. */
struct pending_approval_summary {
    const char *sandbox, *scheme, *authority, *rule, *credential;
    struct slice method, path, query, type;
    uint64_t length; /* of the body; PENDING_APPROVAL_UNKNOWN */
};

/* Once; the hold is gone when it runs. who: "uid 1000 (API)"; "" where nobody did. */
typedef void (*pending_approval_fn)(void *arg, enum pending_approval_end end, const char *who);

/* each: of one sandbox at a time. */
struct pending_approvals *pending_approvals_new(struct event_base *base, unsigned seconds,
                                                unsigned each);
void pending_approvals_free(struct pending_approvals *h); /* no fn runs */
/* A channel to the controller; replaces one that died: what is held is told again. Owns fd. */
void pending_approvals_attach(struct pending_approvals *h, int fd);
/* fn does not run before this returns. NULL: out of memory, or too many, of all or of the sandbox.
 */
struct pending_approval *pending_approval_new(struct pending_approvals *h,
                                              const struct pending_approval_summary *s,
                                              pending_approval_fn fn, void *arg);
void pending_approval_cancel(struct pending_approval *k); /* fn does not run; NULL is fine */
/* This sandbox is to end: what it got back says why. */
void pending_approvals_kill(struct pending_approvals *h, const char *sandbox, const char *why);
/* A call to a model is over; said to the controller on the same channel, for summaries alone. */
void pending_approvals_called(struct pending_approvals *h, const char *sandbox, uint64_t tokens_in,
                              uint64_t tokens_out, uint64_t cost);

#endif
