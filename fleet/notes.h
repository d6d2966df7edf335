/* Notes that all hosts of a fleet see: rows of one table, each with a kind, an id that is its own
 * within its kind, and a text. Whoever puts one first has put it; nobody changes one, but for what
 * a host says of itself (note_replaces). They are read
 * in the order in which they were committed, and again from the beginning on each connection, so a
 * notification is a hint and no more.
 *
 * What a note means, and whether it is believed, is the controller's matter: this role carries
 * texts of the letters that note.h says. */
#ifndef DURWARD_NOTES_H
#define DURWARD_NOTES_H

#include "note.h"

struct database;
struct event_base;
struct ipc;
struct notes;
struct held_shares;

/* control: the parent is told there when the controller's channel ends. shares live longer. NULL:
 * out of memory. */
struct notes *notes_new(struct event_base *base, struct database *d, struct ipc *control,
                        const struct held_shares *shares);
void notes_free(struct notes *n); /* NULL is fine */
/* A channel to the controller, instead of the one before. Owns fd. */
void notes_attach(struct notes *n, int fd, uint32_t channel);
void notes_begin(struct notes *n); /* the connection to the database is another one */
/* Somebody's NOTIFY on this channel. */
void notes_notified(struct notes *n, struct slice channel);
/* A row: "PLACE KIND ID BODY". -1: it is none. */
struct note_row {
    uint64_t place;
    char kind[NOTE_KIND_MAX + 1], id[NOTE_ID_MAX + 1];
    struct slice body;
};
int note_row_read(struct slice line, struct note_row *ret);

#endif
