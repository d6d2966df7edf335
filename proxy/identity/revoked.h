/* Ids of remote sandboxes whose tokens are no longer good, until those would have expired anyway;
 * and up to when that is known.
 *
 * The controller says them, the parent keeps them and tells every role that looks at tokens. Where
 * there are more than the list holds, every token that could be among them is refused: the bound
 * fails closed.
 *
 * W_REVOKED: floor:u64, n × (id:str, expires:u64). Seconds since 1970. */
#ifndef DURWARD_REVOKED_H
#define DURWARD_REVOKED_H

#include "ipc.h"

struct revoked;

enum { REVOKED_MAX = 4096, REVOKED_REMEMBERED = 512, REVOKED_IN_MESSAGE = 512 };

struct revoked *revoked_new(void); /* NULL: out of memory */
void revoked_free(struct revoked *r);
/* expires: of its token, or later. Those that have expired at `now` are forgotten
 * when there are REVOKED_REMEMBERED, and every token that could be among them is refused. */
void revoked_add(struct revoked *r, const char *id, uint64_t expires, uint64_t now);
/* Is this sandbox's token, good until `expires`, refused? NULL r: no. */
bool revoked_has(const struct revoked *r, const char *id, uint64_t expires);
/* Of a host in a fleet: what others have revoked is known up to then (us of CLOCK_BOOTTIME); after
 * it every token is refused, whoever's. 0, as at the beginning: no fleet. */
void revoked_until(struct revoked *r, uint64_t us);
bool revoked_stale(const struct revoked *r);
uint64_t revoked_end(const struct revoked *r); /* up to when it is known; 0: no fleet */
/* NULL, or why this token is refused: "token_revoked", "fleet_unread". */
const char *revoked_why(const struct revoked *r, const char *id, uint64_t expires);
size_t revoked_count(const struct revoked *r);
/* Every token that expires up to then is refused, whoever's. */
void revoked_raise(struct revoked *r, uint64_t to);
/* Adds all of another list, its floor included. */
void revoked_merge(struct revoked *r, const struct revoked *other, uint64_t now);

/* Adds the fields, from that entry on; returns how many entries are in it. */
size_t revoked_put(const struct revoked *r, size_t from, struct msg *m);
/* Reads the whole message and adds what it says. -1: it is bad. */
int revoked_get(struct revoked *r, struct msg *m, uint64_t now);
/* W_REVOKED_TAKEN of the parent, answered: what came before it was taken. -1: it is bad. */
int revoked_taken(struct ipc *parent, struct msg *m);
/* The same into *r, which the first message makes. -1: it is bad, or memory is out. */
int revoked_take(struct revoked **r, struct msg *m, uint64_t now);
/* W_REVOKED_UNTIL likewise. */
int revoked_take_until(struct revoked **r, struct msg *m);

#endif
