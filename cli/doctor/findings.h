/* What `durward doctor` found: a line each, with the one-line remedy where something is amiss. */
#ifndef DURWARD_FINDINGS_H
#define DURWARD_FINDINGS_H

#include <jansson.h>

#include "compiler.h"

enum finding_state {
    FINDING_OK,
    FINDING_NOTE, /* not there, and nothing breaks: what is lost is said */
    FINDING_WARN, /* works, with less than it should */
    FINDING_FAIL, /* breaks */
};

struct findings {
    json_t *list; /* owned; NULL until the first */
    unsigned fails, warns;
};

/* fix: one line, NULL when there is nothing to do. Texts may hold what came from outside; they are
 * cleaned for the terminal when they are shown. */
void findings_add(struct findings *f, const char *check, enum finding_state s, const char *fix,
                  const char *fmt, ...) PRINTF(5, 6);
/* On stdout. 0, or -1 when it cannot be written (reported). */
int findings_print(const struct findings *f, bool json);
void findings_done(struct findings *f);

#endif
