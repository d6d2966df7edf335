/* The controller's end of what the hosts of a fleet tell one another (lib/note.h): puts notes until
 * the database has them, reads those of all hosts, and knows up to when nothing was missed.
 *
 * A note may come more than once, after each new connection, and it is whoever may write to the
 * database that says it: what it means is for its reader to judge. */
#ifndef DURWARD_FLEET_NOTES_H
#define DURWARD_FLEET_NOTES_H

#include "err.h"
#include "note.h"

struct controller;
struct fleet_notes;
struct msg;

enum { FLEET_NOTES_WAITING_MAX = 8192 };

/* Each kind has one reader. */
struct fleet_reader {
    const char *kind;
    void (*note)(void *arg, const char *id, struct slice body);
    /* What was put is there; mine false: another one of that id, and this one is not. NULL: nobody
     * asks. */
    void (*kept)(void *arg, const char *id, bool mine);
    void *arg;
};

/* NULL: out of memory, or the registry cannot be read. What it holds is put again. */
struct fleet_notes *fleet_notes_new(struct controller *c, struct err *err);
void fleet_notes_free(struct fleet_notes *n); /* NULL is fine */
void fleet_notes_reader(struct fleet_notes *n, const struct fleet_reader *r);
/* A channel to the fleet's role, instead of the one before. Owns fd. */
void fleet_notes_attach(struct fleet_notes *n, int fd);
/* durable: kept in the registry until the database has it. -1: too many wait, or it cannot be
 * kept. */
int fleet_notes_put(struct fleet_notes *n, const char *kind, const char *id, struct slice body,
                    uint32_t seconds, bool durable, struct err *err);
/* By a reader: what it was given could not be applied. Nothing is known before it was given all of
 * it again. n NULL is fine. */
void fleet_notes_again(struct fleet_notes *n);
void fleet_notes_forget(struct fleet_notes *n, const char *kind, const char *id);
/* What takes the place of what this host said before (note_replaces); nothing, while that is under
 * way. */
void fleet_notes_renew(struct fleet_notes *n, const char *kind, const char *id, struct slice body,
                       uint32_t seconds);
/* It waits to be said: the database may not have it. */
bool fleet_notes_waits(const struct fleet_notes *n, const char *kind, const char *id);
/* By a reader: what it was given is said again, should the database lose it within that time. What
 * this host has said itself is so by itself. */
void fleet_notes_keep(struct fleet_notes *n, const char *kind, const char *id, struct slice body,
                      uint32_t seconds);
/* n NULL: there is no fleet, and nothing to know. */
bool fleet_notes_stale(const struct fleet_notes *n);
bool fleet_notes_up(const struct fleet_notes *n);
/* When all was asked for that was read whole, us of CLOCK_BOOTTIME; 0: never. */
uint64_t fleet_notes_read_at(const struct fleet_notes *n);
/* W_SHARES_ASK; fn is given the answer. -1 from it: malformed. */
void fleet_notes_on_shares(struct fleet_notes *n, int (*fn)(void *arg, struct msg *m), void *arg);
void fleet_notes_ask_shares(struct fleet_notes *n);

#endif
