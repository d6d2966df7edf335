/* Shared by resident.c (states), resident_row.c (the registry's side), resident_sleep.c (pause,
 * stop, resume), resident_copy.c (files from elsewhere). */
#ifndef DURWARD_RESIDENT_INTERNAL_H
#define DURWARD_RESIDENT_INTERNAL_H

#include "registry.h"
#include "resident.h"

/* resident.c: the one setter; the row first. */
void resident_set_state(struct resident *r, enum resident_state to);
/* A fresh one in the controller's list, without a row. NULL: out of memory. */
struct resident *resident_blank(struct controller *c);
/* Have its sandbox made, or (adopt) taken over from the builder. */
int resident_begin(struct resident *r, bool adopt, struct err *err);
/* The next of its ends: set the timer. */
void resident_arm(struct resident *r);
int64_t resident_idle_end(const struct resident *r); /* CLOCK_BOOTTIME; INT64_MAX: never */
/* What a time of CLOCK_BOOTTIME is by the wall clock as it stands; so when r expires. */
int64_t resident_date(int64_t at);
int64_t resident_expires(struct resident *r);
/* From a row: what is left by the wall clock, at most its whole time to live. */
void resident_load_times(struct resident *r, int64_t expires);
/* STOPPING and nothing of it runs: remove its files, then the row. */
void resident_dispose(struct resident *r);
void resident_tell(struct resident_waits *q, struct resident *r, const char *why);
int resident_wait_in(struct resident_waits *q, resident_fn fn, void *arg);

/* resident_copy.c: have a new one's files copied from where the wish says; then it begins. */
int resident_copy(struct resident *r, const struct resident_wish *w, struct err *err);
/* Has `restoring` come to be? The builder is asked; until it has answered, the sandbox is busy, and
 * who wants it to run waits (RESUMING). Nothing of it runs. */
void resident_confirm(struct resident *r);
/* Is that not known, and nobody at it who will tell? */
bool resident_unsure(const struct resident *r);
/* CREATING, and it cannot be. */
void resident_fail(struct resident *r, const char *why);

/* resident_row.c */
int resident_row_add(struct resident *r, struct err *err);
int resident_row_save(struct resident *r, struct err *err);
/* The same with a new generation; a failure goes to the log. */
void resident_row_note(struct resident *r);
int resident_row_load(void *controller, const struct registry_sandbox *row);

#endif
