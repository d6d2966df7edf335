/* Shared by managed_sandbox.c (states), managed_sandbox_time.c (when it ends),
 * managed_sandbox_row.c (the registry's side),
 * managed_sandbox_sleep.c (pause, stop, resume), managed_sandbox_copy.c (files from elsewhere). */
#ifndef DURWARD_MANAGED_SANDBOX_INTERNAL_H
#define DURWARD_MANAGED_SANDBOX_INTERNAL_H

#include "registry.h"
#include "managed_sandbox.h"

/* managed_sandbox.c: the one setter; the row first. */
void managed_sandbox_set_state(struct managed_sandbox *r, enum managed_sandbox_state to);
/* A fresh one in the controller's list, without a row. NULL: out of memory. */
struct managed_sandbox *managed_sandbox_blank(struct controller *c);
/* Have its sandbox made, or (adopt) taken over from the builder. */
int managed_sandbox_begin(struct managed_sandbox *r, bool adopt, struct err *err);

/* managed_sandbox_time.c: a timer that ends it, or has it sleep. NULL: out of memory. */
struct event *managed_sandbox_timer(struct managed_sandbox *r);
/* The next of its ends: set the timer. */
void managed_sandbox_arm(struct managed_sandbox *r);
/* Its time to live begins now; its soft one. */
void managed_sandbox_live(struct managed_sandbox *r);
void managed_sandbox_live_soft(struct managed_sandbox *r);
/* By CLOCK_BOOTTIME; INT64_MAX: never, or it does not run. */
int64_t managed_sandbox_idle_end(const struct managed_sandbox *r);
int64_t managed_sandbox_soft_end(const struct managed_sandbox *r);
/* What a time of CLOCK_BOOTTIME is by the wall clock as it stands; so when r expires. */
int64_t managed_sandbox_date(int64_t at);
int64_t managed_sandbox_expires(struct managed_sandbox *r);
/* Into a row that is written now; from one, when ttl, soft_ttl and idle_ttl are. Of another boot:
 * what is left by the wall clock, at most its whole time to live. */
void managed_sandbox_row_times(struct managed_sandbox *r, struct registry_sandbox *row);
void managed_sandbox_load_times(struct managed_sandbox *r, const struct registry_sandbox *row);

/* managed_sandbox.c */
/* STOPPING and nothing of it runs: remove its files, then the row. */
void managed_sandbox_dispose(struct managed_sandbox *r);

/* managed_sandbox_copy.c: have a new one's files copied from where the wish says; then it begins.
 */
int managed_sandbox_copy(struct managed_sandbox *r, const struct managed_sandbox_wish *w,
                         struct err *err);
/* Has `restoring` come to be? The builder is asked; until it has answered, the sandbox is busy, and
 * who wants it to run waits (RESUMING). Nothing of it runs. */
void managed_sandbox_confirm(struct managed_sandbox *r);
/* Is that not known, and nobody at it who will tell? */
bool managed_sandbox_unsure(const struct managed_sandbox *r);
/* CREATING, and it cannot be. */
void managed_sandbox_fail(struct managed_sandbox *r, const char *why);

/* managed_sandbox_row.c */
int managed_sandbox_row_add(struct managed_sandbox *r, struct err *err);
int managed_sandbox_row_save(struct managed_sandbox *r, struct err *err);
/* The same with a new generation; a failure goes to the log. */
void managed_sandbox_row_note(struct managed_sandbox *r);
int managed_sandbox_row_load(void *controller, const struct registry_sandbox *row);

#endif
