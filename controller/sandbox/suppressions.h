/* Suppressions of findings, as people handle them: written with a reason and a date of its end,
 * accepted by somebody, lifted or expired. Only what was accepted hides anything, from notices and
 * from the first view of the console; the log keeps every finding, and who did what here.
 *
 * Who wrote one by a token or the console does not accept it by the same: a stolen session silences
 * nothing. The daemon's owner, by its socket, may. They outlive the daemon: rows of the registry.
 */
#ifndef DURWARD_SUPPRESSIONS_H
#define DURWARD_SUPPRESSIONS_H

#include <jansson.h>

#include "err.h"
#include "suppression.h"

struct controller;
struct suppressing;

enum {
    SUPPRESSIONS_EACH = 32,       /* that are open or active, of who wrote them */
    SUPPRESSIONS_ENDED_MAX = 256, /* the newest of those that were lifted or expired */
    SUPPRESSION_ID_MAX = 24,
    SUPPRESSION_REASON_MAX = 280,
    SUPPRESSION_SECONDS = 90 * 86400,
    SUPPRESSION_CRITICAL_SECONDS = 7 * 86400, /* of a code whose severity is critical */
};

enum suppression_end {
    SUPPRESSION_DONE = 0,
    SUPPRESSION_KNOWN, /* the same is there; its id */
    SUPPRESSION_NONE,  /* there is none of that id */
    SUPPRESSION_OVER,  /* it ended, or is not open any more */
    SUPPRESSION_OWN,   /* somebody else is to accept it */
    SUPPRESSION_FULL,
    SUPPRESSION_FAILED, /* err says why */
};

struct suppressing *suppressing_new(struct controller *c); /* NULL: out of memory */
void suppressing_free(struct suppressing *s);
int suppressing_load(struct suppressing *s, struct err *err); /* from the registry */
void suppressing_announce(const struct suppressing *s);       /* to the parent: those in force */

/* what: its expires is set here, seconds from now. who: at most 120 bytes. */
enum suppression_end suppressing_add(struct suppressing *s, const struct suppression *what,
                                     int64_t seconds, const char *reason, const char *who,
                                     char id[SUPPRESSION_ID_MAX + 1], struct err *err);
/* owner: it was asked on the daemon's own socket. */
enum suppression_end suppressing_accept(struct suppressing *s, const char *id, const char *who,
                                        bool owner, struct err *err);
enum suppression_end suppressing_lift(struct suppressing *s, const char *id, const char *who,
                                      struct err *err);

json_t *suppressing_json(const struct suppressing *s);
json_t *suppressing_show(const struct suppressing *s, const char *id); /* NULL: there is none */

#endif
