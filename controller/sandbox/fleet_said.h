/* Notes that the fleet's database has had, by this host's knowledge: of those that it lost
 * meanwhile (a replica that became primary before it had them, a backup that was put back) each is
 * said again, by every host that knows it. */
#ifndef DURWARD_FLEET_SAID_H
#define DURWARD_FLEET_SAID_H

#include "note.h"

enum { FLEET_SAID_MAX = 4096, FLEET_SAID_BYTES = 4 << 20 };

struct fleet_said;

struct fleet_said *fleet_said_new(void);    /* NULL: out of memory */
void fleet_said_free(struct fleet_said *k); /* NULL is fine */
/* It is there now, and wanted for that time from now on; us. One that is known stays as it is. -1:
 * there is no room. */
int fleet_said_add(struct fleet_said *k, const char *kind, const char *id, struct slice body,
                   uint64_t now, uint64_t us);
void fleet_said_forget(struct fleet_said *k, const char *kind, const char *id);
/* All that there is will be read, and of each note it is said that it was seen. */
void fleet_said_begin(struct fleet_said *k);
void fleet_said_seen(struct fleet_said *k, const char *kind, const char *id);
/* It was: fn is given each that was not seen, and for how long it is wanted still. */
void fleet_said_missing(struct fleet_said *k, uint64_t now,
                        void (*fn)(void *arg, const char *kind, const char *id, struct slice body,
                                   uint32_t seconds),
                        void *arg);

#endif
