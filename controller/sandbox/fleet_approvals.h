/* Requests that wait for somebody's word, seen and answered on all hosts of a fleet that know one
 * another's keys. Where a request is held is decided what becomes of it, once, by what comes first:
 * a word of that host's own people, or the answer of a host that its configuration names.
 *
 * Notes, sealed (fleet_seal.h):
 *   "asked"     id of the approval: what a person is shown; of the host that holds it
 *   "answered"  ID-KEY (of the host that answers): {asked: digest of that note's text, allow, who}
 *   "ended"     id: {asked, end, by: KEY of whose answer it was; "": nobody else's}
 * An answer counts for the request whose note it names by its digest, and for no other. */
#ifndef DURWARD_FLEET_APPROVALS_H
#define DURWARD_FLEET_APPROVALS_H

#include <jansson.h>

#include "err.h"

struct controller;
struct fleet_approvals;

enum {
    FLEET_ANSWERS_MAX = 64,
    FLEET_ANSWER_SECONDS = 3,
    FLEET_SHOWN_MAX = 1024, /* of this host, until ten minutes after their end, */
    FLEET_SHOWN_EACH = 128, /* and of one sandbox: what is more is shown on its own host alone */
};

/* What became of an answer for a request of another host. WAITS: it is said, and that host has not
 * taken it. */
enum fleet_answer { FLEET_ANSWER_TAKEN, FLEET_ANSWER_OTHER, FLEET_ANSWER_WAITS };
typedef void (*fleet_answer_fn)(void *arg, enum fleet_answer end);

struct fleet_approvals *fleet_approvals_new(struct controller *c, struct err *err);
void fleet_approvals_free(struct fleet_approvals *f); /* who waits is told WAITS; NULL is fine */
/* f NULL: nobody else is told. v: what is shown; the reference stays the caller's. */
void fleet_approvals_held(struct fleet_approvals *f, const char *id, const json_t *v);
void fleet_approvals_over(struct fleet_approvals *f, const char *id, const char *end);
/* Of another host's request. 0: fn runs later; -1 with err. who: at most 120 bytes. */
int fleet_approvals_answer(struct fleet_approvals *f, const char *id, bool allow, const char *who,
                           fleet_answer_fn fn, void *arg, struct err *err);

#endif
