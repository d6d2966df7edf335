/* A role's append-only journal. The file is made by the logger and arrives
 * with the first credit in W_JOURNAL. In durability `written` one whole write(2) within the credit
 * is the record; in `synced` the logger's acknowledgement after fsync is. */
#ifndef DURWARD_JOURNAL_H
#define DURWARD_JOURNAL_H

#include "ipc.h"
#include "record.h"

struct event_base;
struct journal;

/* ok: recorded. !ok: not recorded (no credit for 5 s, short write, no acknowledgement within 2 s,
 * logger gone): the caller answers 503 and writes no further record of that id; where an `admitted`
 * may have reached the file all the same, the journal or the logger writes its `aborted`. Runs once
 * this turn of the loop is written: whoever acts on a record acts after it. Where there is no file
 * it runs before journal_append returns. */
typedef void (*journal_done_fn)(void *arg, bool ok);

/* Without credit, and where the logger says that a sandbox has used up its share of the log
 * (W_PACE), a record that somebody waits for is held, so many of a sandbox, and written as soon as
 * it may be: who writes too much is slowed, and nothing goes unrecorded. */

/* A short write leaves a torn tail: the journal asks the logger to cut it off (W_REPAIR) and
 * refuses appends until that is done; a write that failed whole (ENOSPC) leaves it usable. */

/* A journal without a file yet: every append fails until journal_start. synced: durability. */
struct journal *journal_new(struct event_base *base, bool synced);
void journal_free(struct journal *j); /* pending callbacks run with ok=false */
/* The ends that wait for the next write are written: there will be none. For a process that ends
 * and frees no journal. What is not yet on record stays so. NULL is fine. */
void journal_leave(struct journal *j);
/* The channel to the logger (owned from here on). W_JOURNAL on it starts the file. When the channel
 * ends the journal is closed for appends until the next journal_attach. */
void journal_attach(struct journal *j, int logger_fd, uint32_t number);
/* Who is told of the number when that channel ends (peer_lost). */
void journal_lost_to(struct journal *j, struct ipc *parent);
bool journal_ready(const struct journal *j);
/* Run once each time a journal file arrives (the gate starts to listen then). */
void journal_on_ready(struct journal *j, void (*fn)(void *arg), void *arg);
/* Messages of the logger that are no journal's (W_WATCHED, W_FLEET_KNOWN) go to fn; -1 from it ends
 * the channel. */
void journal_on_other(struct journal *j, int (*fn)(void *arg, struct msg *m), void *arg);
/* W_WATCH: 0, or -1 when there is no logger. */
int journal_watch(struct journal *j, bool on);
/* W_FLEET_KNOWN_ASK: the same. */
int journal_ask_fleet(struct journal *j);
/* A fresh counter; the id's text is "<channel>-<counter>". 0 when there is no journal. Counters go
 * on across files: a record with one that was taken before the present file came is refused (the
 * logger has ended that id, or never heard of it). */
uint64_t journal_next(struct journal *j);
/* "<channel>-<counter>" into buf (32 bytes). */
char *journal_id(const struct journal *j, uint64_t counter, char *buf, size_t size);
uint32_t journal_channel(const struct journal *j);

/* Bytes of records that may be written before the logger gives more credit. Who writes much waits
 * for some rather than losing a record: the logger gives it each 100 ms. */
size_t journal_room(const struct journal *j);

struct journal_wait; /* cancel handle; NULL when the callback already ran */
/* The records of one turn of the loop leave in one write at its end, with the ends that wait. */
struct journal_wait *journal_append(struct journal *j, const struct record *r, journal_done_fn fn,
                                    void *arg);
/* The callback will not run. The record stays, and is written at once where it was not yet; the
 * journal writes the `aborted` of an `admitted`, with this code, so the caller writes nothing
 * further of that id.
 * One that is held for credit is forgotten. */
void journal_cancel(struct journal_wait *w, const char *code);
/* Append where nobody waits: 0 or -1. An end waits for the next write, at most 20 ms, in `synced`
 * until this turn of the loop is over; ends that find no room are kept and written as soon as there
 * is some, before anything else is admitted (bounded: beyond 256 KiB, -1). */
int journal_note(struct journal *j, const struct record *r);

#endif
