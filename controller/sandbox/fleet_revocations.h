/* What one host of a fleet revokes, all refuse: tokens of remote sandboxes (rt-…), and those for
 * the API (tk-…), which are known where they were made alone.
 *
 * Note "revoked", its id the token's: "EXPIRES.KEY", seconds since 1970 and the first half of the
 * public key's hash in hex by which the token was signed; KEY "-": not known where it was said. */
#ifndef DURWARD_FLEET_REVOCATIONS_H
#define DURWARD_FLEET_REVOCATIONS_H

#include "err.h"
#include "slice.h"

struct controller;
struct fleet_revocations;

/* In the hour that a token lives at most: so many of which it is not known whose they are, and of
 * these so many said on one host. */
enum { FLEET_FOREIGN_MAX = 1024, FLEET_FOREIGN_OWN = 256 };

struct fleet_revocations *fleet_revocations_new(struct controller *c); /* NULL: out of memory */
void fleet_revocations_free(struct fleet_revocations *f);              /* NULL is fine */
/* Who ends a token for the API, where there is one of that id. */
void fleet_revocations_on_api(struct fleet_revocations *f, void (*fn)(void *arg, const char *id),
                              void *arg);
/* It was revoked here. f NULL: there is no fleet. -1: it holds here, and will not be said. */
int fleet_revocations_say(struct fleet_revocations *f, const char *id, int64_t expires,
                          struct err *err);
/* One that is none of this host's: refused here, and said. 1: it is not the id of a token; -1:
 * ERR_UNREADY, too many. */
int fleet_revocations_foreign(struct fleet_revocations *f, const char *id, struct err *err);
/* A row's text. -1: it is none. key: 16 digits and its end, or "-". */
enum { FLEET_REVOCATION_KEY = 17 };
int fleet_revocation_read(struct slice body, int64_t *expires, char key[FLEET_REVOCATION_KEY]);

#endif
