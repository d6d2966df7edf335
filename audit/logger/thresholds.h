/* Thresholds over what the log says of each sandbox (`audit.notify.when`), in windows that slide.
 *
 * The logger sees every record once, so nothing is missed while it lives; a logger that is started
 * again begins to count from nothing. Bounded: so many sandboxes at a time (of the policy that has
 * most of them the one that was silent longest is forgotten first), so many crossings that nobody
 * has taken yet. A window is counted in twenty parts, and up to a twentieth too long. What a
 * sandbox had sent of a request that still lasts counts with each `progress` record. */
#ifndef DURWARD_THRESHOLDS_H
#define DURWARD_THRESHOLDS_H

#include "config.h"
#include "record_read.h"
#include "render.h"
#include "suppression.h"

enum { THRESHOLDS_BOXES = 1024, THRESHOLDS_PENDING = 64 };

/* A threshold was reached. */
struct crossing {
    size_t index;   /* in the list */
    uint64_t value; /* what was counted within the window */
    char sandbox[RENDER_NAME_MAX + 1], policy[RENDER_NAME_MAX + 1]; /* "" for none */
    char request[40];                                               /* whose record it was */
};

struct thresholds;

/* n is 1 to NOTIFY_MAX; the list is copied. NULL: out of memory. */
struct thresholds *thresholds_new(const struct config_threshold *list, size_t n);
void thresholds_free(struct thresholds *t); /* NULL is fine */
/* What is left out of windows that only notify; one that ends or pauses a sandbox counts it all the
 * same. Copied. */
void thresholds_suppress(struct thresholds *t, const struct suppressions *list);
/* line: bytes of it in the log. now: monotonic seconds. */
void thresholds_note(struct thresholds *t, const struct record_view *v,
                     const struct render_source *from, size_t line, uint64_t now);
/* The oldest that was not taken. After one the window is empty again; one that only notifies is
 * then silent for as long as its window is. */
bool thresholds_take(struct thresholds *t, struct crossing *ret);
/* The list's entry. */
const struct config_threshold *thresholds_at(const struct thresholds *t, size_t index);

#endif
