/* Records that wait for a journal: of what happened while the logger was not there yet, or was
 * being replaced, or gave no credit. Only for what is recorded after the fact (lifecycle records);
 * a request waits for nothing, it is refused.
 *
 * Bounded: BACKLOG_BYTES. What finds no room is counted, and told by a record of its own
 * ("records_lost", with "count") as soon as one can be written. Their time is when they were
 * written. */
#ifndef DURWARD_BACKLOG_H
#define DURWARD_BACKLOG_H

#include "record.h"

struct backlog;
struct event_base;
struct journal;

enum { BACKLOG_BYTES = 256 * 1024 };

/* Of this journal, which outlives it; NULL: out of memory. */
struct backlog *backlog_new(struct event_base *base, struct journal *journal);
/* Writes what it can; the rest is lost. NULL is fine. */
void backlog_free(struct backlog *b);

/* After all that wait. 0: written, or it waits; -1: there was no room, it is counted as lost. */
int backlog_note(struct backlog *b, const struct record *r);
/* There is a journal: write what waits. */
void backlog_write(struct backlog *b);

#endif
