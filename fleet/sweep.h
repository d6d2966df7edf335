/* What is held by hosts that are gone. One of the roles that reach the database sweeps for all of
 * them: it watches the beats of holders by its own clock, so that no clock of a database or of
 * another host decides when a lease is over. A holder whose beat has not changed for its lease is
 * marked as gone, and each of its shares is free when, after that, the limit's time is over, too:
 * what the host used up last is in no window any more. */
#ifndef DURWARD_SWEEP_H
#define DURWARD_SWEEP_H

struct database;
struct event_base;
struct sweep;

enum { SWEEP_HOLDERS_MAX = 16384 };

struct sweep *sweep_new(struct event_base *base, struct database *d); /* NULL: out of memory */
void sweep_free(struct sweep *s);                                     /* NULL is fine */
/* The connection is another one now: who sweeps is found out anew. */
void sweep_begin(struct sweep *s);

#endif
