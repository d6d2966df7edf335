/* What the secrets of a policy were and are, for as long as its injector lives: an origin may give
 * back tomorrow what it got today. Of each configured secret the value of now and those before it;
 * of captured ones the newest of each sandbox that fit. A value that fell out is not searched for
 * any more. */
#ifndef DURWARD_RECALL_H
#define DURWARD_RECALL_H

#include "secret.h"

enum {
    RECALL_VALUES = 5,                 /* of one secret and sandbox, the newest ones */
    RECALL_CAPTURED = 256,             /* captured values together, */
    RECALL_CAPTURED_BYTES = 32 * 1024, /* and their bytes */
};

struct recall;

struct recall *recall_new(void);    /* NULL: out of memory */
void recall_free(struct recall *r); /* NULL is fine */
/* sandbox: whose, of a captured one, "" where the vault did not say; NULL: it is the policy's. 1:
 * it is a new one, 0: it was known, -1: out of memory. Where captured ones are too many, the oldest
 * of the sandbox that has most goes.
 */
int recall_put(struct recall *r, const char *name, const char *sandbox,
               struct secret *value) WUNUSED;
/* The values of a name, whosever they are; *at NULL first. Borrowed until the next recall_put.
 * NULL: no more. */
struct recalled;
/* All that the vault has of a captured name was put in. */
bool recall_is_listed(const struct recall *r, const char *name);
int recall_mark_listed(struct recall *r, const char *name) WUNUSED; /* -1: out of memory */
struct secret *recall_next(const struct recall *r, const char *name, const struct recalled **at);

#endif
